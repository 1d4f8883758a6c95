import { hash } from 'node:crypto'

import type { Context, Middleware } from 'koa'

import { Failure } from '../src/catalogue/failure.ts'
import { dropOldest, Throttle } from '../src/throttle.ts'
import { isInternal } from './internal.ts'

/** After this many invalid tokens within the window, an address can only use tokens that were valid here before. */
const WRONG_TOKENS = 100
const WINDOW_MS = 60_000
const MOST_KNOWN = 10_000

/**
 * Blocks addresses that guess tokens, before the database is queried. Other clients at the same address continue with a
 * token that was in use. Requests of our SMTP server are exempt: it sends the logins of all its clients from one
 * address, and limits them itself.
 */
export function limitWrongTokens(): Middleware {
  const guesses = new Throttle(WRONG_TOKENS, WINDOW_MS)
  const known = new Set<string>()

  return async (ctx, next) => {
    const shown = ctx.get('authorization')
    if (shown === '' || isInternal(ctx)) return await next()
    const token = hash('sha256', shown, 'base64')
    const waitMs = guesses.blockedMs(ctx.ip)
    if (waitMs > 0 && !known.has(token)) refuseGuessing(waitMs)
    try {
      await next()
    } catch (error) {
      if (error instanceof Failure && error.code === 'UNAUTHENTICATED') {
        guesses.count(ctx.ip)
        known.delete(token)
      }
      throw error
    } finally {
      if (ctx.state['tokenHolds'] === true) {
        // Added last, so that the token that was unused longest is forgotten first.
        known.delete(token)
        known.add(token)
      }
      dropOldest(known, MOST_KNOWN)
    }
  }
}

/** Notes that the token of a request was found to be valid. */
export function noteValidToken(ctx: Context): void {
  ctx.state['tokenHolds'] = true
}

function refuseGuessing(waitMs: number): never {
  const seconds = Math.ceil(waitMs / 1_000)
  throw new Failure(
    'RATE_LIMITED',
    `Too many tokens that are not valid came from this address; correct the token and repeat the request in ${seconds} s.`,
    { retryAfter: seconds },
  )
}
