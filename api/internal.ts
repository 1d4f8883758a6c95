import { timingSafeEqual } from 'node:crypto'

import type { Context, Middleware } from 'koa'

import type { Services } from '../src/services.ts'

/** Recognizes requests of the SMTP server by the secret they share; from other clients the header is ignored. */
export function recognizeInternal({ config }: Services): Middleware {
  const secret = Buffer.from(config.internalSecret)
  return async (ctx, next) => {
    const shown = Buffer.from(ctx.get('postloom-internal'))
    ctx.state['isInternal'] = shown.length === secret.length && timingSafeEqual(shown, secret)
    await next()
  }
}

/** Returns whether the request comes from our SMTP server. */
export function isInternal(ctx: Context): boolean {
  return ctx.state['isInternal'] === true
}
