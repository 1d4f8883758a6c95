import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

import Router from '@koa/router'
import type { Context } from 'koa'

import { describeService } from '../src/catalogue/openapi.ts'
import {
  DEVELOPER_SECURITY_POLICY,
  referencePage,
  startDocument,
  startPage,
} from '../src/public/developer-pages.ts'
import type { Services } from '../src/services.ts'
import { ROUTES } from './routes.ts'

type Document = { type: string; text: Buffer; packed: Buffer; tag: string }

const pack = promisify(gzip)

/** The files that the pages load, all from this origin: our own, and Swagger UI from its package. */
const FILES: ReadonlyMap<string, { type: string; url: string }> = new Map([
  ['reference.css', { type: 'text/css', url: import.meta.resolve('../src/public/reference.css') }],
  ['reference.js', { type: 'text/javascript', url: import.meta.resolve('../src/public/reference.js') }],
  ['swagger-ui.css', { type: 'text/css', url: import.meta.resolve('swagger-ui-dist/swagger-ui.css') }],
  [
    'swagger-ui-bundle.js',
    { type: 'text/javascript', url: import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js') },
  ],
])

/**
 * Public documents: `/openapi.json`, the reference at `/docs`, and the start document for developers at `/`, which
 * browsers get as an HTML page.
 */
export function documentationRoutes({ config }: Services): Router {
  const router = new Router()
  const made = new Map<string, Promise<Document>>()

  /** Caches a document, because none changes while the process runs. */
  function keep(name: string, make: () => Promise<Document>): Promise<Document> {
    const kept = made.get(name)
    if (kept) return kept
    const making = make()
    made.set(name, making)
    // A failure is not cached, so that the next request tries again.
    making.catch(() => made.delete(name))
    return making
  }

  router.get('/', (ctx) => {
    ctx.vary('Accept')
    if (ctx.accepts('text/markdown', 'text/html') === 'text/html') showPage(ctx, startPage(config.baseUrl))
    else {
      ctx.type = 'text/markdown; charset=utf-8'
      ctx.body = startDocument(config.baseUrl)
    }
  })

  router.get('/openapi.json', async (ctx) => {
    const { baseUrl } = config
    const make = (): Promise<Document> => documentOf('application/json', Buffer.from(openApiText(baseUrl)))
    send(ctx, await keep(`openapi ${baseUrl}`, make))
  })

  router.get('/docs', (ctx) => showPage(ctx, referencePage()))

  router.get('/docs/:file', async (ctx) => {
    const { file = '' } = ctx.params
    const known = FILES.get(file)
    if (!known) return
    send(ctx, await keep(file, async () => documentOf(known.type, await readFile(new URL(known.url)))))
  })

  return router
}

const described = new Map<string, string>()

/** Returns the OpenAPI document of a service at this address; it is made once. */
export function openApiText(baseUrl: string): string {
  const text = described.get(baseUrl) ?? JSON.stringify(describeService(baseUrl, ROUTES))
  described.set(baseUrl, text)
  return text
}

async function documentOf(type: string, text: Buffer): Promise<Document> {
  const tag = createHash('sha256').update(text).digest('base64url')
  return { type, text, packed: await pack(text), tag }
}

function send(ctx: Context, { type, text, packed, tag }: Document): void {
  ctx.status = 200
  ctx.type = type
  // A weak tag, because it is the same for both encodings.
  ctx.etag = `W/"${tag}"`
  ctx.set('Cache-Control', 'no-cache')
  ctx.set('X-Content-Type-Options', 'nosniff')
  ctx.vary('Accept-Encoding')
  if (ctx.fresh) {
    ctx.status = 304
  } else if (ctx.acceptsEncodings('gzip', 'identity') === 'gzip') {
    ctx.set('Content-Encoding', 'gzip')
    ctx.body = packed
  } else ctx.body = text
}

function showPage(ctx: Context, html: string): void {
  ctx.set('Content-Security-Policy', DEVELOPER_SECURITY_POLICY)
  ctx.set('Referrer-Policy', 'no-referrer')
  ctx.type = 'text/html; charset=utf-8'
  ctx.body = html
}
