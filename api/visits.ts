import type { Context, Middleware } from 'koa'

import type { Tracking } from '../src/public/tracking.ts'
import type { Reader } from '../src/public/visitors.ts'

/** A transparent pixel, as a one-byte string: Node sends a string together with the headers, in one system call. */
const PIXEL = atob('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7')
const VISIT = /^\/(?:o\/([^/]+)\.gif|c\/([^/]+))$/
/** The headers that helmet would set for an answer without content of ours. */
const HEADERS = {
  'Cache-Control': 'no-store, max-age=0',
  'Referrer-Policy': 'no-referrer',
  'Strict-Transport-Security': 'max-age=31536000; includeSubDomains',
  'X-Content-Type-Options': 'nosniff',
}

/**
 * Answers `/o/{token}.gif` and `/c/{token}`, which come by the thousand when a campaign is sent, before the middleware
 * that only other addresses need. A link without a target continues to the page for invalid links.
 */
export function answerVisits(tracking: Tracking, isKnownHost: (ctx: Context) => boolean): Middleware {
  return async (ctx, next) => {
    const [, opened, clicked] = VISIT.exec(ctx.path) ?? []
    const isAsked = (ctx.method === 'GET' || ctx.method === 'HEAD') && isKnownHost(ctx)
    if (opened !== undefined && isAsked) {
      ctx['_matchedRoute'] = '/o/:token.gif'
      await tracking.open(opened, readerOf(ctx))
      ctx.respond = false
      ctx.status = 200
      ctx.set(HEADERS)
      ctx.set('Content-Type', 'image/gif')
      ctx.set('Content-Length', String(PIXEL.length))
      ctx.res.end(PIXEL, 'latin1')
      return
    }
    if (clicked === undefined || !isAsked) return await next()
    ctx['_matchedRoute'] = '/c/:token'
    const target = await tracking.follow(clicked, readerOf(ctx))
    if (target === null) return await next()
    ctx.set(HEADERS)
    ctx.status = 302
    ctx.set('Location', inAscii(target))
    ctx.body = ''
  }
}

/** Returns an address as a header holds it: in ASCII, with its host as DNS knows it. */
function inAscii(address: string): string {
  if (/^[\x21-\x7e]*$/.test(address)) return address
  return URL.parse(address)?.href ?? encodeURI(address)
}

function readerOf(ctx: Context): Reader {
  const purpose = ctx.get('sec-purpose') || ctx.get('purpose')
  return { method: ctx.method, userAgent: ctx.get('user-agent'), purpose }
}
