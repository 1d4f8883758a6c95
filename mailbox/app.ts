import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { Router } from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'

import { listPage, messagePage, noticePage, SHOWS, type Show } from './pages.ts'
import { openMail, presentList, readHeaders, type OpenedMail } from './present.ts'
import { parseSearch } from './search.ts'
import type { MailStore, StoredMail } from './store.ts'

const PAGE_POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * For a mail's own HTML: no scripts, no forms, an opaque origin. Images, styles and links to new windows are allowed.
 */
const MAIL_POLICY = [
  'sandbox allow-popups allow-popups-to-escape-sandbox',
  "default-src 'none'",
  'img-src http: https: data:',
  'media-src http: https: data:',
  "style-src 'unsafe-inline'",
  'font-src data:',
  "frame-ancestors 'self'",
].join('; ')

const SHOWN_IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const LIST_SIZE = 50
const MAX_BODY = 1_000_000

/**
 * `host` is the address that the mailbox listens on. On loopback, only requests to a loopback host name are answered.
 */
export type AppOptions = {
  store: MailStore
  host: string
}

/** Creates the pages and the JSON API; the caller makes it listen. */
export function createApp({ store, host }: AppOptions): Koa {
  const app = new Koa()
  const router = new Router()
  addPages(router, store)
  addApi(router, store)
  app.use(headers)
  app.use(refuseForeign(host))
  app.use(router.routes())
  app.use(router.allowedMethods())
  return app
}

function addPages(router: Router, store: MailStore): void {
  router.get('/', (context) => {
    const query = text(context, 'query')
    const start = whole(context, 'start', 0)
    const page = store.list(parseSearch(query), start, LIST_SIZE)
    context.body = listPage({ ...page, counts: store.counts(), query, start, size: LIST_SIZE })
  })
  router.get('/view/:id', async (context) => {
    const mail = findMail(context, store)
    if (!mail) return
    // "{id}.html" and "{id}.txt" are the mail's own documents, for the frame and for scripts.
    const [, suffix] = /\.(html|txt)$/.exec(pathId(context)) ?? []
    if (suffix) return await sendDocument(context, mail, suffix)
    store.mark([mail.summary.ID], true)
    const show = SHOWS.find((name) => name === text(context, 'show'))
    context.body = messagePage(await openMail(mail), mail, show ?? (await firstShow(mail)))
  })
  router.post('/delete', async (context) => {
    const form = new URLSearchParams((await readBody(context)).toString('utf8'))
    const ids = form.getAll('id')
    store.delete(ids.length > 0 ? ids : parseSearch(form.get('query') ?? ''))
    context.redirect('/')
  })
  for (const [file, type] of [
    ['mailbox.css', 'text/css'],
    ['mailbox.js', 'text/javascript'],
  ] as const) {
    const content = readFileSync(join(import.meta.dirname, 'assets', file))
    router.get(`/assets/${file}`, (context) => {
      context.type = type
      context.body = content
    })
  }
}

function addApi(router: Router, store: MailStore): void {
  const list: Middleware = (context) => {
    const start = whole(context, 'start', 0)
    const limit = Math.min(1_000, whole(context, 'limit', LIST_SIZE))
    const page = store.list(parseSearch(text(context, 'query')), start, limit)
    context.body = presentList(page, store.counts(), start)
  }
  router.get('/readyz', (context) => {
    context.body = { status: 'ok' }
  })
  router.get('/api/v1/info', (context) => {
    const { total, unread, latest } = store.counts()
    context.body = { Version: 'postloom', Messages: total, Unread: unread, Latest: latest }
  })
  router.get('/api/v1/messages', list)
  router.get('/api/v1/search', list)
  router.delete('/api/v1/search', (context) => {
    store.delete(parseSearch(text(context, 'query')))
    plain(context, 'ok')
  })
  router.delete('/api/v1/messages', async (context) => {
    const { IDs } = await readSelection(context)
    store.delete(IDs ?? parseSearch(''))
    plain(context, 'ok')
  })
  router.put('/api/v1/messages', async (context) => {
    const { IDs, Read } = await readSelection(context)
    store.mark(IDs, Read)
    plain(context, 'ok')
  })
  router.get('/api/v1/message/:id', async (context) => {
    const mail = findMail(context, store)
    if (!mail) return
    store.mark([mail.summary.ID], true)
    context.body = (await openMail(mail)).message
  })
  router.get('/api/v1/message/:id/headers', (context) => {
    const mail = findMail(context, store)
    if (mail) context.body = readHeaders(mail.raw)
  })
  router.get('/api/v1/message/:id/raw', (context) => {
    const mail = findMail(context, store)
    if (!mail) return
    context.set('content-type', 'text/plain; charset=utf-8')
    context.set('content-security-policy', MAIL_POLICY)
    context.body = mail.raw
  })
  router.get('/api/v1/message/:id/part/:part', async (context) => {
    const mail = findMail(context, store)
    if (mail) sendPart(context, await openMail(mail))
  })
}

const headers: Middleware = async (context, next) => {
  context.set('x-content-type-options', 'nosniff')
  // With no-referrer, browsers would send "Origin: null" with our own forms, and refuseForeign() would refuse them.
  context.set('referrer-policy', 'same-origin')
  context.set('content-security-policy', PAGE_POLICY)
  context.set('cache-control', 'no-store')
  try {
    await next()
  } catch (error) {
    if (!(error instanceof BadRequest)) throw error
    fail(context, 400, error.message)
  }
}

class BadRequest extends Error {}

/**
 * Prevents pages of other sites from reading mail through a host name that points here (DNS rebinding) and from
 * deleting it with a form.
 */
function refuseForeign(host: string): Middleware {
  const isLoopback = host === '127.0.0.1' || host === 'localhost' || host === '::1'
  const known = new Set(['127.0.0.1', 'localhost', '::1', '[::1]', host])
  return async (context, next) => {
    if (isLoopback && !known.has(context.hostname)) {
      return fail(context, 421, `This mailbox answers for localhost only, not for ${context.hostname}.`)
    }
    const isChange = !['GET', 'HEAD', 'OPTIONS'].includes(context.method)
    const origin = context.get('origin')
    if (isChange && origin && origin !== `${context.protocol}://${context.host}`) {
      return fail(context, 403, 'Only pages of this mailbox may change it.')
    }
    await next()
  }
}

function findMail(context: Context, store: MailStore): StoredMail | undefined {
  const mail = store.find(pathId(context).replace(/\.(html|txt)$/, ''))
  if (!mail) fail(context, 404, 'There is no such mail here: it was deleted, or newer mail displaced it.')
  return mail
}

async function firstShow(mail: StoredMail): Promise<Show> {
  return (await openMail(mail)).message.HTML ? 'html' : 'text'
}

async function sendDocument(context: Context, mail: StoredMail, suffix: string): Promise<void> {
  const { message } = await openMail(mail)
  context.set('content-security-policy', MAIL_POLICY)
  if (suffix === 'txt') return plain(context, message.Text)
  if (!message.HTML) return fail(context, 404, 'This mail has no HTML part.')
  context.type = 'html'
  context.body = withOwnParts(message.HTML, message.ID, [...message.Inline, ...message.Attachments])
}

/** Replaces cid: addresses with those of the parts, and makes links open outside the frame. */
function withOwnParts(html: string, id: string, parts: OpenedMail['message']['Inline']): string {
  const addresses = new Map(
    parts.map(({ ContentID, PartID }) => [ContentID, `/api/v1/message/${id}/part/${PartID}`]),
  )
  const document = html.replace(
    /\bcid:([^\s"'<>()]+)/g,
    (whole, contentId: string) => addresses.get(contentId) ?? whole,
  )
  const base = '<base target="_blank">'
  const head = /<head\b[^>]*>|<html\b[^>]*>|<!doctype\b[^>]*>/i.exec(document)
  const at = head ? head.index + head[0].length : 0
  return document.slice(0, at) + base + document.slice(at)
}

function sendPart(context: Context, { files }: OpenedMail): void {
  const file = files[Number(context['params'].part) - 1]
  if (!file) return fail(context, 404, 'This mail has no such part.')
  const isShown = SHOWN_IMAGES.has(file.contentType)
  context.set('content-security-policy', MAIL_POLICY)
  context.set('content-type', isShown ? file.contentType : 'application/octet-stream')
  if (!isShown) context.attachment(file.filename || 'part')
  context.body = file.content
}

async function readSelection(context: Context): Promise<{ IDs: string[] | undefined; Read: boolean }> {
  const body = await readBody(context)
  const value: unknown = body.length > 0 ? parseJson(body) : {}
  if (typeof value !== 'object' || value === null) throw new BadRequest('The body must be an object {IDs?}.')
  const ids = 'IDs' in value ? value.IDs : undefined
  if (ids !== undefined && !(Array.isArray(ids) && ids.every((id) => typeof id === 'string'))) {
    throw new BadRequest('IDs must be a list of mail ids.')
  }
  return { IDs: ids?.length === 0 ? undefined : ids, Read: 'Read' in value && value.Read === true }
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw new BadRequest('The body is not JSON.')
  }
}

async function readBody(context: Context): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of context.req) {
    // A request stream without an encoding yields buffers.
    const bytes = chunk as Buffer
    size += bytes.length
    if (size > MAX_BODY) throw new BadRequest('The body is larger than 1 MB.')
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}

function text(context: Context, name: string): string {
  const value = context.query[name]
  return (Array.isArray(value) ? value[0] : value) ?? ''
}

function whole(context: Context, name: string, standard: number): number {
  const value = text(context, name)
  if (value === '') return standard
  if (/^\d{1,9}$/.test(value)) return Number(value)
  throw new BadRequest(`${name} must be a whole number from 0 on.`)
}

function pathId(context: Context): string {
  return String(context['params'].id)
}

function plain(context: Context, body: string): void {
  context.set('content-type', 'text/plain; charset=utf-8')
  context.body = body
}

/** Answers with an error: a page for browsers, JSON for programs. */
function fail(context: Context, status: number, message: string): void {
  context.status = status
  const isPage = !context.path.startsWith('/api/') && context.accepts('json', 'html') === 'html'
  context.body = isPage ? noticePage(message) : { Error: message }
}
