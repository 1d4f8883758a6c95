import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'

import { CONTENT_TYPES, type ContentType } from '../schema/values.ts'
import { compileContent } from '../src/content/compile.ts'
import { fillContent } from '../src/content/fill.ts'
import { type Browser, openBrowser } from './browser.ts'
import { documentsAt, PICTURE, VARIABLES } from './screenshots/documents.ts'

/** `npm run screenshots`: takes pictures of emails for people to look at. */
const HELP = `npm run screenshots [-- DIRECTORY]

Takes pictures of a rich email of each content type in a headless Chromium, as wide as a phone, a tablet and a desk,
in light and in dark colours, and writes them to DIRECTORY (.postloom/screenshots). Fails where one scrolls sideways.

  CHROMIUM   the program (chromium)`

const VIEWS = [320, 600, 1200].flatMap((width) => [false, true].map((isDark) => ({ width, isDark })))
/** Chromium cannot render a taller picture. */
const HIGHEST = 16_000

const COATS = `<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="600" viewBox="0 0 12 6"><rect width="12" height="6"
 fill="#f2d7c0"/><path d="M1 1h10M3 1v1l-1 3h2l-1-3M6 1v1l-1 3h2l-1-3M9 1v1l-1 3h2l-1-3" stroke="#2f5d50" stroke-width=".2"
 fill="#7fb7a3"/></svg>`

if (process.argv.includes('--help')) console.log(HELP)
else process.exitCode = await takeAll(resolve(process.argv[2] ?? '.postloom/screenshots'))

async function takeAll(directory: string): Promise<number> {
  mkdirSync(directory, { recursive: true })
  const pages = new Map<string, string>()
  const server = createServer(({ url }, response) => {
    const page = pages.get(url ?? '')
    response.setHeader('content-type', page === undefined ? 'image/svg+xml' : 'text/html; charset=utf-8')
    response.end(page ?? (url === PICTURE ? COATS : undefined))
  }).listen(0, '127.0.0.1')
  await new Promise((listening) => server.once('listening', listening))
  // The `address()` of a listening TCP server is an object.
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const documents = documentsAt(base)
  const browser = openBrowser()
  let tooWide = 0
  try {
    for (const contentType of CONTENT_TYPES) {
      const html = written(contentType, documents[contentType])
      pages.set(`/${contentType}`, html)
      writeFileSync(join(directory, `${contentType}.html`), html)
      for (const { width, isDark } of VIEWS) {
        const name = `${contentType}-${width}-${isDark ? 'dark' : 'light'}.png`
        const file = join(directory, name)
        const wide = await take(browser, { url: `${base}/${contentType}`, width, isDark, file })
        if (wide > width) tooWide += 1
        console.log(`${file}${wide > width ? `  scrolls sideways: ${wide} pixels` : ''}`)
      }
    }
  } finally {
    await browser.close()
    server.close()
  }
  return tooWide === 0 ? 0 : 1
}

/** Writes a full-height picture of a page and returns the width of its content. */
async function take(
  browser: Browser,
  { url, width, isDark, file }: { url: string; width: number; isDark: boolean; file: string },
): Promise<number> {
  const page = await browser.newPage()
  await page.resize(width, 800)
  await page.setColors(isDark ? 'dark' : 'light')
  await page.open(url)
  const size = await page.size()
  await page.resize(width, Math.min(Math.ceil(size.height), HIGHEST))
  writeFileSync(file, await page.picture())
  await page.close()
  return size.width
}

function written(contentType: ContentType, source: unknown): string {
  const compiled = compileContent({
    contentType,
    source,
    subject: 'Spring is here',
    preview: 'Twelve new pieces, made nearby.',
    kind: 'marketing',
    knownVariables: Object.keys(VARIABLES),
  })
  for (const { message } of compiled.warnings) console.log(`${contentType}: ${message}`)
  const urls = { unsubscribe: 'https://mail.example.com/u/abc', online: 'https://mail.example.com/v/abc' }
  return fillContent(compiled, { variables: VARIABLES, urls }).html
}
