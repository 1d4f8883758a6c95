import type { Context, Middleware } from 'koa'
import type { Logger } from 'pino'

import { Failure, FAILURES } from '../src/catalogue/failure.ts'
import { describeFault } from '../src/log.ts'

/** How one door writes a refusal into its answer. */
export type FailureWriter = (ctx: Context, failure: Failure) => void

/** The Tools API's refusal: `{success: false, error, code, details?}` and what stands beside it. */
export const writeToolFailure: FailureWriter = (ctx, failure) => {
  ctx.status = FAILURES[failure.code].status
  ctx.body = {
    success: false,
    error: failure.message,
    code: failure.code,
    ...(failure.details !== undefined && { details: failure.details }),
    ...failure.body,
  }
}

/** The frozen v1 refusal: `{success: false, message}` with the statuses of REST v2. */
export const writeV1Failure: FailureWriter = (ctx, failure) => {
  ctx.status = FAILURES[failure.code].rest[1]
  ctx.body = { success: false, message: failure.message }
}

/** Answers refusals in the door's shape; a fault is logged under the request id and answered without detail. */
export function answerFailures(log: Logger, write: FailureWriter): Middleware {
  return async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const failure = error instanceof Failure ? error : hideFault(ctx, error, log)
      if (failure.retryAfter !== undefined) ctx.set('Retry-After', String(failure.retryAfter))
      write(ctx, failure)
    }
  }
}

function hideFault(ctx: Context, error: unknown, log: Logger): Failure {
  const requestId: unknown = ctx.state['requestId']
  log.error({ requestId, route: ctx.state['route'], fault: describeFault(error) }, 'a request failed')
  return new Failure(
    'FAULT',
    `Something failed on our side (request ${String(requestId)}); repeat the request, and tell the operator this id if it fails again.`,
    { cause: error },
  )
}
