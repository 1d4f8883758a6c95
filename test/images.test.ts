import { createHash } from 'node:crypto'

import test from 'ava'
import { sql } from 'kysely'

import { execute, row } from '../src/database.ts'
import { encodeId, newId } from '../src/ids.ts'
import { startApi, type TestApi } from './helpers/api.ts'
import { gif, png } from './helpers/image-bytes.ts'
import { startWebServer, type WebPage, type WebServer } from './helpers/web-server.ts'

const pages: Record<string, WebPage> = {}
let web: WebServer
let api: TestApi

test.before(async () => {
  web = await startWebServer(pages)
  api = await startApi(web.allow)
})
test.after.always(async () => {
  await api?.close()
  web?.close()
})

/** Returns a JPEG without image data: JFIF, or EXIF with an orientation, then the frame header. */
function jpeg(width: number, height: number, orientation?: number): Buffer {
  const jfif = 'ffe000104a46494600010100000100010000'
  const tiff = `49492a0008000000010012010300010000000${String(orientation)}00000000000000`
  const exif = `ffe10022457869660000${tiff}`
  const frame = Buffer.from('ffc0001108000000000301220002110103110100', 'hex')
  frame.writeUInt16BE(height, 5)
  frame.writeUInt16BE(width, 7)
  return Buffer.concat([
    Buffer.from(`ffd8${orientation === undefined ? jfif : exif}`, 'hex'),
    frame,
    Buffer.from('ffd9', 'hex'),
  ])
}

function webp(width: number, height: number): Buffer {
  const body = Buffer.alloc(30)
  body.write('RIFF', 0)
  body.writeUInt32LE(22, 4)
  body.write('WEBPVP8X', 8)
  body.writeUInt32LE(10, 16)
  body.writeUIntLE(width - 1, 24, 3)
  body.writeUIntLE(height - 1, 27, 3)
  return body
}

async function fetchImage(url: string, headers: Record<string, string> = {}) {
  // With a conditional header, `fetch()` bypasses caches unless `cache-control` is set.
  const response = await fetch(url, { headers: { 'cache-control': 'max-age=0', ...headers } })
  return { response, bytes: Buffer.from(await response.arrayBuffer()) }
}

test('an image is fetched, judged by its bytes, and served for ever', async (t) => {
  const organization = await api.organization()
  for (const [path, bytes, contentType, ending] of [
    ['/a.png', png(640, 480), 'image/png', 'png'],
    ['/b.jpg', jpeg(640, 480), 'image/jpeg', 'jpg'],
    ['/c.gif', gif(640, 480), 'image/gif', 'gif'],
    ['/d.webp', webp(640, 480), 'image/webp', 'webp'],
  ] as const) {
    // The type that the server declares must not matter.
    pages[path] = { type: 'text/html', body: bytes }
    const { image } = await organization.data('upload_image', { url: web.url + path })
    t.like(image, { contentType, width: 640, height: 480, size: bytes.length, name: path.slice(1) })
    t.like(image, { description: null, capturePageId: null })
    t.true(image.url.startsWith(`${api.url}/i/`) && image.url.endsWith(`${image.id}.${ending}`))

    const { response, bytes: served } = await fetchImage(image.url)
    t.deepEqual(served, bytes)
    t.is(response.headers.get('content-type'), contentType)
    t.is(response.headers.get('cache-control'), 'public, max-age=31536000, immutable')
    t.is(response.headers.get('x-content-type-options'), 'nosniff')
    t.is(response.headers.get('content-security-policy'), "default-src 'none'; sandbox")
    const tag = response.headers.get('etag') ?? ''
    const again = await fetchImage(image.url, { 'if-none-match': tag })
    t.is(again.response.status, 304)
    t.is(again.bytes.length, 0)
    t.is((await fetchImage(image.url, { 'if-none-match': '"other"' })).response.status, 200)
    const head = await fetch(image.url, { method: 'HEAD' })
    t.is(head.headers.get('content-length'), String(bytes.length))
    const wrong = image.url.replace(`.${ending}`, '.svg')
    t.is((await fetch(wrong)).status, 404)
  }
})

test('the size is the one that is shown: an orientation turns it', async (t) => {
  const organization = await api.organization()
  pages['/turned.jpg'] = { body: jpeg(640, 480, 6) }
  const { image } = await organization.data('upload_image', { url: `${web.url}/turned.jpg` })
  t.like(image, { width: 480, height: 640 })
})

test('the same bytes are one image, in each organization its own', async (t) => {
  const [organization, other] = [await api.organization(), await api.organization()]
  const body = png(10, 10, Buffer.from('same'))
  pages['/one.png'] = { body }
  pages['/two.png'] = { body }
  const first = await organization.data('upload_image', {
    url: `${web.url}/one.png`,
    name: 'Logo',
    description: 'A logo',
  })
  const second = await organization.data('upload_image', { url: `${web.url}/two.png` })
  t.deepEqual(second.image, first.image)
  const renamed = await organization.data('upload_image', { url: `${web.url}/two.png`, name: 'New logo' })
  t.like(renamed.image, { id: first.image.id, name: 'New logo', description: 'A logo' })
  const foreign = await other.data('upload_image', { url: `${web.url}/two.png` })
  t.not(foreign.image.id, first.image.id)
  t.is((await other.data('list_images')).total, 1)
  const uploads = await Promise.all(
    Array.from(
      { length: 4 },
      async () => await organization.call('upload_image', { url: `${web.url}/one.png` }),
    ),
  )
  t.deepEqual(
    uploads.map(({ body: { data } }) => data.image.id),
    uploads.map(() => first.image.id),
  )
  const stored = await row<{ count: number }>(
    api.services.orm.em.fork(),
    sql`select count(*)::int as count from stored_file where organization_id = ${organization.id}`,
  )
  t.is(stored?.count, 1)
})

test('an upload that ended between the file and its record is completed by the next', async (t) => {
  const organization = await api.organization()
  const body = png(11, 11)
  const key = `images/${createHash('sha256').update(body).digest('hex')}`
  await api.services.storage.put(organization.id, key, body)
  t.is((await organization.data('list_images')).total, 0)
  pages['/again.png'] = { body }
  const { image } = await organization.data('upload_image', { url: `${web.url}/again.png` })
  t.deepEqual((await fetchImage(image.url)).bytes, body)
})

test('bombs and what is no image are refused by the header, and nothing is stored (S10)', async (t) => {
  const organization = await api.organization()
  const bombs: Record<string, WebPage> = {
    '/wide.png': { body: png(50_000, 50_000) },
    '/largest.png': { body: png(2 ** 31 - 1, 2 ** 31 - 1) },
    '/over.gif': { body: gif(5_001, 5_000) },
    '/bomb.webp': { body: webp(16_384, 16_384) },
    '/bomb.jpg': { body: jpeg(65_535, 65_535) },
    // A reader that searches for the next marker byte by byte needs a second for this one.
    '/unmarked.jpg': { body: Buffer.concat([jpeg(9, 9).subarray(0, 20), Buffer.alloc(1_900_000, 0x55)]) },
    '/segments.jpg': {
      body: Buffer.concat([jpeg(9, 9).subarray(0, 20), Buffer.alloc(1_900_000, 'ffe10002', 'hex')]),
    },
    '/empty.gif': { body: gif(0, 10) },
    '/cut.png': { body: png(10, 10).subarray(0, 20) },
    '/nothing.png': { body: '' },
    '/vector.svg': { type: 'image/svg+xml', body: '<svg xmlns="http://www.w3.org/2000/svg"/>' },
    '/named.png': { type: 'image/png', body: '<?xml version="1.0"?><svg><script>alert(1)</script></svg>' },
    '/page.png': { type: 'image/png', body: '<!doctype html><script>alert(1)</script>' },
    '/pdf': { body: '%PDF-1.7' },
    '/tiff': { body: Buffer.from('49492a00080000000000', 'hex') },
    '/bmp': { body: Buffer.concat([Buffer.from('BM'), Buffer.alloc(60)]) },
    '/avif': {
      body: Buffer.concat([Buffer.from('0000001c', 'hex'), Buffer.from('ftypavif'), Buffer.alloc(16)]),
    },
    '/gone.png': { body: png(1, 1), status: 404 },
  }
  Object.assign(pages, bombs)
  for (const path of Object.keys(bombs)) {
    const answer = await organization.call('upload_image', { url: web.url + path })
    t.true([400, 415].includes(answer.status), `${path}: ${JSON.stringify(answer.body)}`)
    t.is(answer.body.details[0].path, 'url')
  }
  const heavy = png(10, 10, Buffer.alloc(2_000_000 - png(10, 10).length - 12))
  t.is(heavy.length, 2_000_000)
  pages['/heavy.png'] = { body: heavy }
  t.is((await organization.call('upload_image', { url: `${web.url}/heavy.png` })).status, 413)
  pages['/light.png'] = { body: png(10, 10, Buffer.alloc(2_000_000 - png(10, 10).length - 13)) }
  t.is((await organization.data('upload_image', { url: `${web.url}/light.png` })).image.size, 1_999_999)
  pages['/most.gif'] = { body: gif(5_000, 5_000) }
  t.is((await organization.call('upload_image', { url: `${web.url}/most.gif` })).status, 200)
  const stored = await row<{ count: number }>(
    api.services.orm.em.fork(),
    sql`select count(*)::int as count from stored_file where organization_id = ${organization.id}`,
  )
  t.is(stored?.count, 2)
})

test('an address that is not public is refused, and a bad label before anything is fetched', async (t) => {
  const organization = await api.organization()
  for (const url of ['http://127.0.0.1:9/x.png', 'http://169.254.169.254/', 'file:///etc/passwd', 'x']) {
    const answer = await organization.call('upload_image', { url })
    t.is(answer.status, 400)
    t.is(answer.body.details[0].path, 'url')
  }
  pages['/unfetched.png'] = { body: png(1, 1) }
  for (const labels of [{ name: 'x'.repeat(201) }, { name: 'a\nb' }, { description: 'x'.repeat(2_001) }]) {
    const answer = await organization.call('upload_image', { url: `${web.url}/unfetched.png`, ...labels })
    t.is(answer.status, 400)
  }
  const token = await organization.tokenWith(['emails'])
  const forbidden = await api.request('POST', '/api/v2/tools/upload_image', {
    token,
    body: { url: `${web.url}/unfetched.png` },
  })
  t.is(forbidden.status, 403)
  t.false(web.requests.includes('/unfetched.png'))
})

test('a repeated upload is answered without a second fetch, and a failed one may be repeated', async (t) => {
  const organization = await api.organization()
  const url = `${web.url}/keyed.png`
  const headers = { 'idempotency-key': 'upload-1' }
  t.is((await organization.call('upload_image', { url }, headers)).status, 400)
  pages['/keyed.png'] = { body: png(3, 3) }
  const first = await organization.call('upload_image', { url }, headers)
  const again = await organization.call('upload_image', { url }, headers)
  t.is(first.status, 200)
  t.deepEqual(again.body, first.body)
  t.is(
    (await organization.call('upload_image', { url, name: 'x' }, headers)).body.code,
    'IDEMPOTENCY_MISMATCH',
  )
  t.is(web.requests.filter((path) => path === '/keyed.png').length, 2)
})

test('images are listed newest first, by page, text and capture', async (t) => {
  const organization = await api.organization()
  const ids: string[] = []
  for (const [index, name] of ['Büro', '100%', 'Garden'].entries()) {
    pages[`/list-${index}`] = { body: gif(10 + index, 10) }
    const { image } = await organization.data('upload_image', { url: `${web.url}/list-${index}`, name })
    ids.unshift(image.id)
  }
  const idsOf = async (input: object) => {
    const { images, ...page } = await organization.data('list_images', input)
    return { ids: images.map(({ id }: { id: string }) => id), page }
  }
  t.deepEqual(await idsOf({}), { ids, page: { page: 1, pageSize: 50, total: 3, hasMore: false } })
  t.deepEqual(await idsOf({ pageSize: 2 }), {
    ids: ids.slice(0, 2),
    page: { page: 1, pageSize: 2, total: 3, hasMore: true },
  })
  t.deepEqual(await idsOf({ pageSize: 2, page: 2 }), {
    ids: ids.slice(2),
    page: { page: 2, pageSize: 2, total: 3, hasMore: false },
  })
  t.deepEqual((await idsOf({ page: 9 })).ids, [])
  t.deepEqual((await idsOf({ query: 'BÜRO' })).ids, [ids[2]])
  t.deepEqual((await idsOf({ query: '%' })).ids, [ids[1]])
  await execute(
    api.services.orm.em.fork(),
    sql`update image set capture_page_id = 'page-1' where organization_id = ${organization.id} and name = 'Garden'`,
  )
  t.deepEqual((await idsOf({ capturePageId: 'page-1' })).ids, [ids[0]])
  t.deepEqual((await idsOf({ capturePageId: 'page-2' })).ids, [])
  t.is((await organization.call('list_images', { pageSize: 101 })).status, 400)
  t.is((await organization.call('list_images', { page: 0 })).status, 400)
})

test('an image is described by its id or its address, never by a stranger', async (t) => {
  const [organization, other] = [await api.organization(), await api.organization()]
  pages['/described.gif'] = { body: gif(7, 7) }
  const { image } = await organization.data('upload_image', { url: `${web.url}/described.gif` })
  const byId = await organization.data('describe_image', { imageId: image.id, description: 'A lake' })
  t.like(byId.image, { description: 'A lake', name: 'described.gif' })
  const byUrl = await organization.data('describe_image', { url: image.url, description: '', name: 'Lake' })
  t.like(byUrl.image, { description: null, name: 'Lake' })
  t.deepEqual((await organization.data('list_images', { query: 'lake' })).images, [byUrl.image])

  const both = { imageId: image.id, url: image.url, description: 'x' }
  t.is((await organization.call('describe_image', both)).status, 400)
  t.is((await organization.call('describe_image', { description: 'x' })).status, 400)
  t.is((await organization.call('describe_image', { imageId: image.id })).status, 400)
  for (const choice of [
    { imageId: image.id },
    { url: image.url },
    { imageId: encodeId('img', newId()) },
    { url: 'https://example.com/a.png' },
  ]) {
    const answer = await other.call('describe_image', { ...choice, description: 'x' })
    t.is(answer.body.code, 'NOT_FOUND')
  }
  const stranger = image.url.replace(encodeId('org', organization.id), encodeId('org', other.id))
  t.is((await fetch(stranger)).status, 404)
  t.is((await fetch(`${api.url}/i/org_x/img_x.png`)).status, 404)
})
