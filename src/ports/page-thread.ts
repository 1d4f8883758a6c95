import { parentPort } from 'node:worker_threads'

import { Defuddle } from 'defuddle/node'
import { parseHTML } from 'linkedom'

import { decodeText } from './page-charset.ts'
import type { Page, PageText } from './page-reader.ts'

const META_CHARSET = /<meta[^>]{0,200}charset\s*=\s*["']?([\w-]{1,40})/i
const SNIFFED_BYTES = 1_024
const HEAD_ELEMENTS =
  /^(?:\s+|<!--[^]*?-->|<(?:meta|link|base)\b[^>]*>|<(title|script|style|noscript)\b[^]*?<\/\1\s*>)*/i

// The parent sends one page once the thread is loaded, and takes one answer. A thread that is ended while it still
// loads would go on with the page to its end.
parentPort?.once('message', async (page: Page) => {
  answer(await readPage(page))
})
answer('LOADED')

function answer(message: 'LOADED' | PageText): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- the port of a thread has no origin
  parentPort?.postMessage(message)
}

async function readPage({ html, url, charset }: Page): Promise<PageText> {
  const { document } = parseHTML(withBody(decode(html, charset)))
  const found = await Defuddle(document, url, {
    markdown: true,
    // Defuddle's extractors for some sites would call other services, but only the given page is to be read.
    useAsync: false,
    fetch: () => Promise.reject(new Error('a page is read as it is')),
  })
  return {
    title: found.title,
    markdown: found.content,
    description: found.description || null,
    author: found.author || null,
    site: found.site || null,
    language: found.language || null,
    published: found.published || null,
    wordCount: found.wordCount,
  }
}

/** Decodes a page in the character set of its header, of its first bytes, or else in UTF-8. */
function decode(html: Uint8Array, charset: string | null): string {
  const head = new TextDecoder('latin1').decode(html.subarray(0, SNIFFED_BYTES))
  return decodeText(html, [charset, META_CHARSET.exec(head)?.[1]])
}

/**
 * Adds the html, head and body tags, which HTML lets a page leave out but without which the parser finds no content.
 */
function withBody(text: string): string {
  const opening = /<html\b[^>]*>/i.exec(text)?.[0]
  if (opening !== undefined && /<body[\s>]/i.test(text)) return text
  const bare = text.replace(/<!doctype[^>]*>/i, '').replaceAll(/<\/?(?:html|head|body)\b[^>]*>/gi, '')
  const head = HEAD_ELEMENTS.exec(bare)?.[0] ?? ''
  return `<!doctype html>${opening ?? '<html>'}<head>${head}</head><body>${bare.slice(head.length)}</body></html>`
}
