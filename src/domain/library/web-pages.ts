import { type WebPage, WEB_PAGE_LIMITS } from '../../../schema/web.ts'
import { Failure, refuse } from '../../catalogue/failure.ts'
import type { Outside } from '../../catalogue/tool.ts'
import { decodeText } from '../../ports/page-charset.ts'
import { PageFault, type PageText } from '../../ports/page-reader.ts'
import type { WebAnswer } from '../../ports/web.ts'
import { fetchUrl } from '../web.ts'

const HTML = new Set(['text/html', 'application/xhtml+xml'])
const TEXT = new Set(['text/plain', 'text/markdown'])
const MEMBER_LENGTH = 1_000

/** Returns the main content of a public web page as Markdown; plain text and Markdown are returned unchanged. */
export async function fetchWebPage({ services }: Outside, { url }: { url: string }): Promise<WebPage> {
  const answer = await fetchUrl(services.web, {
    url,
    headers: { accept: 'text/html, application/xhtml+xml, text/markdown;q=0.9, text/plain;q=0.8' },
    limits: { bytes: WEB_PAGE_LIMITS.bytes, milliseconds: WEB_PAGE_LIMITS.milliseconds },
  })
  const { type, charset } = contentTypeOf(answer)
  if (TEXT.has(type)) return bounded(answer.url, plainText(decodeText(answer.body, [charset])))
  if (!HTML.has(type)) {
    const message = `is not a page: its type is ${JSON.stringify(type.slice(0, 80))}, and only HTML and text can be read.`
    throw new Failure('UNSUPPORTED_MEDIA_TYPE', `url ${message}`, { details: [{ path: 'url', message }] })
  }
  const page = { html: answer.body, url: answer.url, charset }
  return bounded(answer.url, await services.pages.read(page).catch(refuseFault))
}

function contentTypeOf({ headers, body }: WebAnswer): { type: string; charset: string | null } {
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';')
  const charset = parameters.map((text) => /^\s*charset="?([\w-]+)/.exec(text)?.[1]).find(Boolean)
  const isUnnamed = type.trim() === '' && /^\s*</.test(body.toString('latin1', 0, MEMBER_LENGTH))
  return { type: isUnnamed ? 'text/html' : type.trim(), charset: charset ?? null }
}

function plainText(markdown: string): PageText {
  const nothing = { description: null, author: null, site: null, language: null, published: null }
  return { ...nothing, title: '', markdown, wordCount: markdown.split(/\s+/).filter(Boolean).length }
}

function bounded(url: string, page: PageText): WebPage {
  const cut = (text: string | null) => text && text.slice(0, MEMBER_LENGTH).toWellFormed()
  return {
    url,
    title: page.title.slice(0, MEMBER_LENGTH).toWellFormed(),
    markdown: page.markdown.slice(0, WEB_PAGE_LIMITS.markdown).toWellFormed(),
    truncated: page.markdown.length > WEB_PAGE_LIMITS.markdown,
    description: cut(page.description),
    author: cut(page.author),
    site: cut(page.site),
    language: cut(page.language),
    published: cut(page.published),
    wordCount: page.wordCount,
  }
}

function refuseFault(fault: unknown): never {
  if (!(fault instanceof PageFault)) throw fault
  if (fault.reason === 'TOO_COMPLEX')
    refuse('url', 'leads to a page that is too complex to read; send another.')
  throw new Failure('UNAVAILABLE', 'Too many pages are being read; repeat the request in a moment.', {
    retryAfter: 1,
    cause: fault,
  })
}
