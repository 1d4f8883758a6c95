import { timingSafeEqual } from 'node:crypto'

import type { Context, Middleware } from 'koa'

import type { Services } from '../src/services.ts'

/** Knows requests of our SMTP door by the secret they share; to everybody else the header means nothing. */
export function recognizeInternal({ config }: Services): Middleware {
  const secret = Buffer.from(config.internalSecret)
  return async (ctx, next) => {
    const shown = Buffer.from(ctx.get('postloom-internal'))
    ctx.state['isInternal'] = shown.length === secret.length && timingSafeEqual(shown, secret)
    await next()
  }
}

/** Whether our own SMTP door asks. */
export function isInternal(ctx: Context): boolean {
  return ctx.state['isInternal'] === true
}
