import { hash } from 'node:crypto'

import type { Context, Middleware } from 'koa'

import { Failure } from '../src/catalogue/failure.ts'
import { dropOldest, Throttle } from '../src/throttle.ts'
import { isInternal } from './internal.ts'

/** So many wrong tokens within the window, and an address is heard only with tokens that have held here before. */
const WRONG_TOKENS = 100
const WINDOW_MS = 60_000
const MOST_KNOWN = 10_000

/**
 * Holds off addresses that try tokens, before the database is asked. Whoever shares such an address goes on with a token
 * that was in use; our SMTP door, from whose address everybody's logins come, counts by itself.
 */
export function holdOffStrangers(): Middleware {
  const strangers = new Throttle(WRONG_TOKENS, WINDOW_MS)
  const known = new Set<string>()

  return async (ctx, next) => {
    const shown = ctx.get('authorization')
    if (shown === '' || isInternal(ctx)) return await next()
    const token = hash('sha256', shown, 'base64')
    const waitMs = strangers.blockedMs(ctx.ip)
    if (waitMs > 0 && !known.has(token)) refuseStranger(waitMs)
    try {
      await next()
    } catch (error) {
      if (error instanceof Failure && error.code === 'UNAUTHENTICATED') {
        strangers.count(ctx.ip)
        known.delete(token)
      }
      throw error
    } finally {
      if (ctx.state['tokenHolds'] === true) known.add(token)
      dropOldest(known, MOST_KNOWN)
    }
  }
}

/** Notes that the token of a request was found to be valid. */
export function noteToken(ctx: Context): void {
  ctx.state['tokenHolds'] = true
}

function refuseStranger(waitMs: number): never {
  const seconds = Math.ceil(waitMs / 1_000)
  throw new Failure(
    'RATE_LIMITED',
    `Too many tokens that are not valid came from this address; correct the token and repeat the request in ${seconds} s.`,
    { retryAfter: seconds },
  )
}
