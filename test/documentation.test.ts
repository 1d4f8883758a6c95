import test from 'ava'

import { type Answer, startApi, type TestApi } from './helpers/api.ts'

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

/** The Accept header of browsers. */
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'

function asked(path: string, accept: string): Promise<Answer> {
  return api.request('GET', path, { headers: { accept } })
}

test('the address of the service is the start document in Markdown, and a page for a person', async (t) => {
  for (const accept of ['*/*', 'text/markdown', 'text/markdown, text/html;q=0.5', 'application/json']) {
    const { status, headers, body } = await asked('/', accept)
    t.is(status, 200)
    t.is(headers.get('content-type'), 'text/markdown; charset=utf-8', accept)
    t.is(headers.get('vary'), 'Accept')
    t.true(body.startsWith('# '))
    t.true(body.includes(`${api.url}/openapi.json`))
    t.false(body.includes('{base}'))
  }
  for (const accept of [BROWSER, 'text/html']) {
    const { headers, body } = await asked('/', accept)
    t.is(headers.get('content-type'), 'text/html; charset=utf-8', accept)
    t.true(body.includes(api.url))
  }
})

test('what the start document shows does what it says', async (t) => {
  const { token } = await api.organization()
  const { body: markdown } = await asked('/', 'text/markdown')
  const calls = [...markdown.matchAll(/curl -s (\S+) [^]*?-d '([^']+)'/g)]
  t.is(calls.length, 2)
  for (const [, address = '', body = ''] of calls) {
    const path = new URL(address).pathname
    const answer = await api.request('POST', path, { token, raw: body })
    t.is(answer.status, 200, JSON.stringify(answer.body))
  }
})

for (const path of ['/', '/docs']) {
  test(`the page at ${path} loads what it needs from its own origin, and may load nothing else`, async (t) => {
    const { status, headers, body } = await asked(path, BROWSER)
    t.is(status, 200)
    const policy = headers.get('content-security-policy') ?? ''
    t.true(policy.includes("default-src 'none'"))
    t.false(/unsafe|https?:/.test(policy), policy)
    const loaded = [...body.matchAll(/<(?:script|link)\b[^>]*?\b(?:src|href)="([^"]+)"/g)]
    t.true(loaded.length > 0)
    for (const [, address = ''] of loaded) {
      t.true(address.startsWith('/docs/'), address)
      const file = await api.request('GET', address)
      t.is(file.status, 200)
      t.regex(file.headers.get('content-type') ?? '', /^text\/(?:css|javascript); charset=utf-8$/)
      t.true(file.body.length > 500)
    }
    const links = [...body.matchAll(/<a\b[^>]*?\bhref="([^"]+)"/g)]
    for (const [, address = ''] of links) t.is((await asked(address, BROWSER)).status, 200, address)
  })
}

test('the files of the pages are a closed set, and come packed to who takes that', async (t) => {
  t.is((await api.request('GET', '/docs/package.json')).status, 404)
  t.is((await api.request('GET', '/docs/..%2fpackage.json')).status, 404)
  for (const path of ['/openapi.json', '/docs/swagger-ui-bundle.js']) {
    const packed = await api.request('GET', path, { headers: { 'accept-encoding': 'gzip' } })
    t.is(packed.headers.get('content-encoding'), 'gzip')
    const plain = await api.request('GET', path, { headers: { 'accept-encoding': 'identity' } })
    t.is(plain.headers.get('content-encoding'), null)
    t.deepEqual(plain.body, packed.body)
  }
})
