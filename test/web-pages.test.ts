import test from 'ava'

import { createPageReader, PageFault } from '../src/ports/page-reader.ts'
import { startApi, type TestApi } from './helpers/api.ts'
import { startWebServer, type WebPage, type WebServer } from './helpers/web-server.ts'

const ARTICLE = `<!doctype html><html lang="en"><head><title>Looms &amp; engines</title>
<meta name="description" content="How cards became programs"><meta name="author" content="Ada Lovelace"></head>
<body><nav><a href="/home">Home</a><a href="/shop">Shop</a></nav><article><h1>Looms &amp; engines</h1>
<p>${'A loom reads cards and weaves what they say, row after row. '.repeat(12)}<a href="../cards">More on cards</a>.</p>
<table><tr><th>Year</th><th>Machine</th></tr><tr><td>1804</td><td>Loom</td></tr></table>
<script>document.title = 'changed'; fetch('/stolen')</script></article><footer>Imprint</footer></body></html>`

const pages: Record<string, WebPage> = {
  '/a/article': { type: 'text/html; charset=utf-8', body: ARTICLE },
  '/moved': { body: '', status: 301, headers: { location: '/a/article' } },
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

test('the main content of a page comes as Markdown, with absolute links and tables', async (t) => {
  const organization = await api.organization()
  const page = await organization.data('fetch_web_page', { url: `${web.url}/moved` })
  t.like(page, {
    url: `${web.url}/a/article`,
    title: 'Looms & engines',
    description: 'How cards became programs',
    author: 'Ada Lovelace',
    language: 'en',
    truncated: false,
  })
  t.regex(page.markdown, /A loom reads cards/)
  t.true(page.markdown.includes(`[More on cards](${web.url}/cards)`))
  t.regex(page.markdown, /\| 1804 \| Loom \|/)
  t.notRegex(page.markdown, /Imprint|Shop|stolen/)
  t.true(page.wordCount > 100)
  t.false(web.requests.includes('/stolen'))
})

test('a page in another character set, without a type, or of plain text is read', async (t) => {
  const organization = await api.organization()
  const paragraph = 'Müllers Bürgersteig führt über die Brücke. '.repeat(20)
  const latin = Buffer.from(
    `<html><head><meta charset="iso-8859-1"></head><p>${paragraph}</p></html>`,
    'latin1',
  )
  pages['/meta'] = { type: 'text/html', body: latin }
  pages['/header'] = { type: 'text/html; charset="ISO-8859-1"', body: latin }
  pages['/unknown'] = { type: 'text/html; charset=klingon', body: `<p>${paragraph}</p>` }
  pages['/unnamed'] = { type: '', body: ` <!doctype html><p>${paragraph}</p>` }
  pages['/short'] = { type: 'text/html', body: `<title>Short</title><p>${paragraph}` }
  for (const path of ['/meta', '/header', '/unknown', '/unnamed', '/short']) {
    const { markdown } = await organization.data('fetch_web_page', { url: web.url + path })
    t.true(markdown.includes('Müllers Bürgersteig'), path)
  }
  t.is((await organization.data('fetch_web_page', { url: `${web.url}/short` })).title, 'Short')
  pages['/latin.txt'] = { type: 'text/plain; charset=iso-8859-1', body: Buffer.from(paragraph, 'latin1') }
  pages['/unknown.txt'] = { type: 'text/plain; charset=klingon', body: paragraph }
  for (const path of ['/latin.txt', '/unknown.txt']) {
    t.is((await organization.data('fetch_web_page', { url: web.url + path })).markdown, paragraph, path)
  }
  pages['/notes.md'] = { type: 'text/markdown', body: '# Notes\n\n<b>as they are</b>' }
  const notes = await organization.data('fetch_web_page', { url: `${web.url}/notes.md` })
  t.like(notes, { title: '', markdown: '# Notes\n\n<b>as they are</b>', author: null })
  pages['/long.txt'] = { type: 'text/plain', body: 'x'.repeat(300_000) }
  const long = await organization.data('fetch_web_page', { url: `${web.url}/long.txt` })
  t.is(long.markdown.length, 200_000)
  t.true(long.truncated)
})

test('what is no page, too large or not public is refused', async (t) => {
  const organization = await api.organization()
  pages['/file.pdf'] = { type: 'application/pdf', body: '%PDF-1.7' }
  pages['/data.json'] = { type: 'application/json', body: '{}' }
  pages['/huge'] = { type: 'text/html', body: Buffer.alloc(5_000_001, 'x') }
  pages['/error'] = { type: 'text/html', body: 'x', status: 500 }
  pages['/inside'] = {
    body: '',
    status: 302,
    headers: { location: 'http://169.254.169.254/latest/meta-data' },
  }
  for (const [url, status] of [
    [`${web.url}/file.pdf`, 415],
    [`${web.url}/data.json`, 415],
    [`${web.url}/huge`, 413],
    [`${web.url}/error`, 400],
    [`${web.url}/missing`, 400],
    [`${web.url}/inside`, 400],
    ['http://localhost/', 400],
    ['http://[::1]/', 400],
    ['ftp://example.com/', 400],
    ['example.com', 400],
  ] as const) {
    const answer = await organization.call('fetch_web_page', { url })
    t.is(answer.status, status, `${url}: ${JSON.stringify(answer.body)}`)
  }
})

test('pages asked for at once are all read, one after the other', async (t) => {
  const organization = await api.organization()
  const answers = await Promise.all(
    Array.from(
      { length: 5 },
      async () => await organization.call('fetch_web_page', { url: `${web.url}/a/article` }),
    ),
  )
  t.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  )
})

test('a hostile page is given up, and others are answered meanwhile', async (t) => {
  const organization = await api.organization()
  const reader = createPageReader({ milliseconds: 400 })
  const hostile = Buffer.from(`<p>x${'<div>'.repeat(300_000)}`)
  const reading = Array.from(
    { length: 20 },
    async () => await reader.read({ html: hostile, url: 'http://example.com/', charset: null }),
  )
  const settled = Promise.allSettled(reading)
  t.is((await organization.call('get_org_stats')).status, 200)
  const reasons = (await settled).map((outcome) =>
    outcome.status === 'rejected' && outcome.reason instanceof PageFault ? outcome.reason.reason : outcome,
  )
  t.is(reasons.filter((reason) => reason === 'TOO_COMPLEX').length, 18, 'two at once, and sixteen that wait')
  t.is(reasons.filter((reason) => reason === 'BUSY').length, 2)
})
