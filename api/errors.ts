import type { Context, Middleware } from 'koa'
import type { Logger } from 'pino'

import { isDatabaseAway, isTimedOut } from '../src/catalogue/database-error.ts'
import { isInternal } from './internal.ts'
import { Failure, type FailureCode, FAILURES, type Fault } from '../src/catalogue/failure.ts'

/** How one door writes a refusal into its answer. */
type FailureWriter = (ctx: Context, failure: Failure) => void

/** Codes that only other doors tell apart; the Tools API's table has one word for them (decisions, section 2). */
const TOOL_CODES: Partial<Record<FailureCode, FailureCode>> = {
  MALFORMED_BODY: 'INVALID_INPUT',
  MISSING_FIELD: 'INVALID_INPUT',
  INVALID_PARAMETER: 'INVALID_INPUT',
  MISSING_TOKEN: 'UNAUTHENTICATED',
}

/** The Tools API's refusal: `{success: false, error, code, details?}` and what stands beside it. */
const writeToolFailure: FailureWriter = (ctx, failure) => {
  ctx.status = FAILURES[failure.code].status
  ctx.body = {
    success: false,
    error: failure.message,
    code: TOOL_CODES[failure.code] ?? failure.code,
    ...(failure.details !== undefined && { details: failure.details }),
    ...failure.body,
  }
}

/** The frozen v1 refusal: `{success: false, message}` with the statuses of REST v2. It has no details, so the message
 * lists every fault. */
const writeV1Failure: FailureWriter = (ctx, failure) => {
  ctx.status = FAILURES[failure.code].rest[1]
  ctx.body = { success: false, message: faultSentences(failure.details) ?? failure.message }
}

/** The REST v2 refusal: `{name, message, statusCode, details?}` (contract, "Errors"). */
const writeRestFailure: FailureWriter = (ctx, failure) => {
  const [name, statusCode] = FAILURES[failure.code].rest
  ctx.status = statusCode
  ctx.body = {
    name,
    message: failure.message,
    statusCode,
    ...(failure.details !== undefined && { details: failure.details }),
  }
}

/** Answers refusals in the shape of the door at this address; a fault is logged and answered without detail. */
export function answerFailures(log: Logger): Middleware {
  return async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const failure = error instanceof Failure ? error : hideFault(ctx, error, log)
      if (failure.retryAfter !== undefined) ctx.set('Retry-After', String(failure.retryAfter))
      // Our SMTP door answers what the one table of refusals says.
      if (isInternal(ctx)) ctx.set('smtp-reply', FAILURES[failure.code].smtp.join(' '))
      writerOf(ctx.path)(ctx, failure)
    }
  }
}

function writerOf(path: string): FailureWriter {
  if (path.startsWith('/api/v1/')) return writeV1Failure
  const isRest = path.startsWith('/api/v2/') && !/^\/api\/v2\/tools(?:\/|$)/.test(path)
  return isRest ? writeRestFailure : writeToolFailure
}

function hideFault(ctx: Context, error: unknown, log: Logger): Failure {
  const requestId: unknown = ctx.state['requestId']
  log.error({ requestId, route: ctx['_matchedRoute'], err: error }, 'a request failed')
  if (isDatabaseAway(error)) {
    return new Failure('UNAVAILABLE', 'The database cannot be reached; repeat the request in a moment.', {
      retryAfter: 1,
      cause: error,
    })
  }
  if (isTimedOut(error)) {
    return new Failure(
      'UNAVAILABLE',
      'The database did not finish in time and nothing was changed; ask for less at once, or repeat the request in a moment.',
      { retryAfter: 10, cause: error },
    )
  }
  return new Failure(
    'FAULT',
    `Something failed on our side (request ${String(requestId)}); repeat the request, and tell the operator this id if it fails again.`,
    { cause: error },
  )
}

function faultSentences(details: unknown): string | undefined {
  if (!Array.isArray(details) || details.length < 2) return undefined
  return details.map(({ path, message }: Fault) => `${path}: ${message}`).join('; ')
}
