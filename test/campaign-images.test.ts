import test from 'ava'
import { sql } from 'kysely'

import { execute } from '../src/database.ts'
import { encodeId, newId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { gif, png } from './helpers/image-bytes.ts'
import { startWebServer, type WebPage, type WebServer } from './helpers/web-server.ts'

type Fitted = {
  index: number
  changed: boolean
  problem: string | null
  fitted: object | null
  natural: object | null
}

const pages: Record<string, WebPage> = {
  '/wide.png': { body: png(1_200, 400) },
  '/tall.gif': { body: gif(300, 1_600) },
  '/kept.png': { body: png(1_200, 400, Buffer.from('kept')) },
  '/untouched.png': { body: png(8, 8) },
  '/small.png': { body: png(80, 60) },
  '/page.html': { body: '<p>no image</p>', type: 'text/html' },
  '/large.png': { body: png(10, 10, Buffer.alloc(2_100_000, 'x')) },
}
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

const image = (path: string, attrs: object = {}) => ({
  type: 'image',
  attrs: { src: web.url + path, ...attrs },
})
const doc = (...content: unknown[]) => ({ type: 'doc', content })

const askedFor = (path: string) => web.requests.filter((asked) => asked === path)

async function draft(
  organization: TestOrganization,
  content: unknown,
  contentType = 'MAILY',
): Promise<string> {
  return (await organization.data('create_campaign', { subject: 'Pictures', content, contentType })).campaign
    .id
}

test('images get their natural size within the bounds, in document order, and never a larger one', async (t) => {
  const organization = await api.organization()
  const content = doc(
    image('/wide.png', { width: 'auto', alt: 'Wide' }),
    { type: 'columns', content: [{ type: 'column', content: [image('/tall.gif')] }] },
    image('/small.png', { width: 500, height: 375 }),
    image('/wide.png', { width: 600, height: 200 }),
  )
  const campaignId = await draft(organization, content)
  const dry = await organization.data('auto_fit_campaign_images', { campaignId, dryRun: true })
  t.deepEqual(
    dry.images.map(({ index, fitted, changed, problem }: Fitted) => ({ index, fitted, changed, problem })),
    [
      { index: 0, fitted: { width: 600, height: 200 }, changed: true, problem: null },
      { index: 1, fitted: { width: 75, height: 400 }, changed: true, problem: null },
      { index: 2, fitted: { width: 80, height: 60 }, changed: true, problem: null },
      { index: 3, fitted: { width: 600, height: 200 }, changed: false, problem: null },
    ],
  )
  t.deepEqual(dry.images[0].natural, { width: 1_200, height: 400 })
  t.deepEqual(dry.images[0].before, { width: 'auto', height: null })
  t.deepEqual(dry.campaign.content, content, 'a dry run changes nothing')
  t.is((await organization.data('list_campaign_history', { campaignId })).entries.length, 1)

  const some = await organization.data('auto_fit_campaign_images', {
    campaignId,
    imageIndexes: [2],
    maxWidth: 40,
  })
  t.deepEqual(
    some.campaign.content,
    doc(
      content.content[0],
      content.content[1],
      image('/small.png', { width: 40, height: 30 }),
      content.content[3],
    ),
  )
  const { campaign } = await organization.data('auto_fit_campaign_images', { campaignId })
  t.deepEqual(campaign.content.content[0], image('/wide.png', { width: 600, height: 200, alt: 'Wide' }))
  t.is((await organization.data('list_campaign_history', { campaignId })).entries.length, 3)
  await organization.data('auto_fit_campaign_images', { campaignId })
  const { entries } = await organization.data('list_campaign_history', { campaignId })
  t.is(entries.length, 3, 'nothing changed, so there is nothing to keep')
  t.deepEqual((await organization.data('get_campaign', { campaignId })).campaign, campaign)
})

test('an image of the library is measured without a fetch', async (t) => {
  const organization = await api.organization()
  const { image: kept } = await organization.data('upload_image', { url: `${web.url}/kept.png` })
  const campaignId = await draft(
    organization,
    [{ type: 'p', children: [{ type: 'img', url: kept.url, width: 900, children: [{ text: '' }] }] }],
    'PLATE',
  )
  const { campaign, images } = await organization.data('auto_fit_campaign_images', {
    campaignId,
    maxHeight: 100,
  })
  t.deepEqual(askedFor('/kept.png'), ['/kept.png'], 'only the upload fetched it')
  t.deepEqual(images[0].fitted, { width: 300, height: 100 })
  t.like(campaign.content[0].children[0], { url: kept.url, width: 300, height: 100 })
})

test('an image that cannot be measured stays as it is and says why; the others are fitted', async (t) => {
  const organization = await api.organization()
  const unreadable = [
    image('/absent.png'),
    image('/page.html'),
    image('/large.png'),
    { type: 'image', attrs: { src: 'http://10.0.0.1/a.png' } },
    { type: 'image', attrs: { src: 'data:image/png;base64,AAAA' } },
    { type: 'image', attrs: { src: 'https://example.com/{{name}}.png' } },
    { type: 'image', attrs: { src: 'picture', isSrcVariable: true } },
    { type: 'image' },
  ]
  const campaignId = await draft(organization, doc(...unreadable, image('/small.png')))
  const { campaign, images } = await organization.data('auto_fit_campaign_images', { campaignId })
  t.deepEqual(campaign.content.content, [...unreadable, image('/small.png', { width: 80, height: 60 })])
  for (const [index, problem] of [
    /answers with status 404/,
    /is not a PNG, JPEG, GIF or WebP/,
    /more than 2000000 bytes/,
    /does not lead to a public address/,
    /is not an http or https address/,
    /holds a variable/,
    /holds a variable/,
    /has no address/,
  ].entries()) {
    t.regex(images[index].problem, problem)
    t.like(images[index], { fitted: null, changed: false })
  }
})

test('what cannot be fitted is refused, and nothing is fetched for it', async (t) => {
  const organization = await api.organization()
  const campaignId = await draft(organization, doc(image('/untouched.png')))
  const markdown = await draft(organization, '![x](https://example.com/a.png)', 'MARKDOWN')
  const many = await draft(organization, doc(...Array.from({ length: 51 }, () => image('/untouched.png'))))
  for (const [code, path, input] of [
    ['INVALID_INPUT', 'imageIndexes[1]', { imageIndexes: [0, 1] }],
    ['INVALID_INPUT', 'imageIndexes', { imageIndexes: [] }],
    ['INVALID_INPUT', 'imageIndexes', { campaignId: many }],
    ['INVALID_INPUT', 'maxWidth', { maxWidth: 0 }],
    ['WRONG_STATE', undefined, { campaignId: markdown }],
    ['NOT_FOUND', undefined, { campaignId: encodeId('cmp', newId()) }],
  ] as const) {
    const answer = await organization.call('auto_fit_campaign_images', { campaignId, ...input })
    t.is(answer.body.code, code, JSON.stringify(answer.body))
    if (path) t.is(answer.body.details[0].path, path)
  }
  const other = await api.organization()
  t.is((await other.call('auto_fit_campaign_images', { campaignId })).body.code, 'NOT_FOUND')
  await execute(
    api.services.orm.em.fork(),
    sql`update campaign set status = 'SENT' where organization_id = ${organization.id}`,
  )
  t.is((await organization.call('auto_fit_campaign_images', { campaignId })).body.code, 'WRONG_STATE')
  t.deepEqual(askedFor('/untouched.png'), [])
})

test('an email that is edited while its images are measured is refused as stale, and the repeat fits it', async (t) => {
  const organization = await api.organization()
  const campaignId = await draft(organization, doc(image('/slow.png')))
  pages['/slow.png'] = {
    body: png(1_200, 600),
    async before() {
      await organization.data('edit_campaign', {
        id: campaignId,
        content: doc(image('/slow.png'), image('/small.png', { width: 500 })),
      })
    },
  }
  const stale = await organization.call('auto_fit_campaign_images', { campaignId })
  t.is(stale.status, 409)
  t.is(stale.body.code, 'STALE_VERSION')
  t.regex(stale.body.error, /edited while its images were measured; repeat the call/)
  const kept = await organization.data('get_campaign', { campaignId })
  t.is(kept.campaign.content.content[1].attrs.width, 500)
  pages['/slow.png'] = { body: png(1_200, 600) }
  const { images } = await organization.data('auto_fit_campaign_images', { campaignId })
  t.deepEqual(
    images.map(({ fitted }: Fitted) => fitted),
    [
      { width: 600, height: 300 },
      { width: 80, height: 60 },
    ],
  )
})
