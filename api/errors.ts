import type { Context, Middleware } from 'koa'
import type { Logger } from 'pino'

import { isConcurrencyFault, isDatabaseAway, isTimedOut } from '../src/catalogue/database-error.ts'
import { Failure, FAILURES, type Fault, toolCode } from '../src/catalogue/failure.ts'
import { failedPage, unavailablePage } from '../src/public/pages.ts'
import { isInternal } from './internal.ts'
import { showPage } from './page.ts'

/** Error codes of JSON-RPC 2.0. */
const PARSE_ERROR = -32_700
const SERVER_ERROR = -32_000

/** Writes a refusal in the shape of one door. */
type FailureWriter = (ctx: Context, failure: Failure) => void

/**
 * Returns the body of a refusal of the Tools API: `{success: false, error, code, details?}` and further members, such
 * as a challenge.
 */
export function toolFailureBody(failure: Failure): Record<string, unknown> {
  return {
    success: false,
    error: failure.message,
    code: toolCode(failure.code),
    ...(failure.details !== undefined && { details: failure.details }),
    ...failure.body,
  }
}

const writeToolFailure: FailureWriter = (ctx, failure) => {
  ctx.status = FAILURES[failure.code].status
  ctx.body = toolFailureBody(failure)
}

/** Answers requests that do not reach the MCP server with a JSON-RPC error and the status of the Tools API. */
const writeMcpFailure: FailureWriter = (ctx, failure) => {
  ctx.status = FAILURES[failure.code].status
  const code = failure.code === 'MALFORMED_BODY' ? PARSE_ERROR : SERVER_ERROR
  ctx.body = {
    jsonrpc: '2.0',
    id: null,
    error: { code, message: failure.message, data: toolFailureBody(failure) },
  }
}

/**
 * The frozen v1 refusal: `{success: false, message}` with the statuses of REST v2. Since it has no details, the message
 * lists every fault.
 */
const writeV1Failure: FailureWriter = (ctx, failure) => {
  ctx.status = FAILURES[failure.code].rest[1]
  ctx.body = { success: false, message: faultSentences(failure.details) ?? failure.message }
}

/** The admin refusal: `{message}` alone, which lists every fault (contract, "Errors"). */
const writeAdminFailure: FailureWriter = (ctx, failure) => {
  ctx.status = FAILURES[failure.code].status
  ctx.body = { message: faultSentences(failure.details) ?? failure.message }
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

/** Addresses that people open in a browser. */
const PAGES = /^\/(?:[usvc]\/|oauth\/(?:sign-in|authorize)(?:\/|$))/

const writePageFailure: FailureWriter = (ctx, failure) => {
  const isAway = failure.code === 'UNAVAILABLE'
  showPage(ctx, FAILURES[failure.code].status, isAway ? unavailablePage() : failedPage(failure.message))
}

/** Answers refusals in the shape of the door at this address. Any other error is logged and answered without detail. */
export function answerFailures(log: Logger): Middleware {
  return async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const failure = toFailure(ctx, error, log)
      if (failure.retryAfter !== undefined) ctx.set('Retry-After', String(failure.retryAfter))
      // The SMTP server replies with this status, and uses the code to word some replies itself.
      if (isInternal(ctx)) ctx.set('smtp-reply', [...FAILURES[failure.code].smtp, failure.code].join(' '))
      writerOf(ctx.path.toLowerCase())(ctx, failure)
      // Every 401 names the scheme of the credentials (RFC 9110, section 15.5.2).
      if (ctx.status === 401 && !ctx.res.hasHeader('WWW-Authenticate')) ctx.set('WWW-Authenticate', 'Bearer')
    }
  }
}

/** Returns the writer of a path in small letters: addresses ignore letter case, and a slash at their end. */
function writerOf(path: string): FailureWriter {
  if (PAGES.test(path)) return writePageFailure
  const isAt = (address: string) => `${path}/`.startsWith(`${address}/`)
  if (isAt('/api/v1/admin')) return writeAdminFailure
  if (isAt('/api/v1')) return writeV1Failure
  if (isAt('/api/mcp') || /^\/mcp\/?$/.test(path)) return writeMcpFailure
  return isAt('/api/v2') && !isAt('/api/v2/tools') ? writeRestFailure : writeToolFailure
}

/** Returns a failure unchanged. Any other error is logged and becomes `UNAVAILABLE` or `FAULT`, without detail. */
export function toFailure(ctx: Context, error: unknown, log: Logger): Failure {
  if (error instanceof Failure) return error
  const requestId: unknown = ctx.state['requestId']
  log.error({ requestId, route: ctx['_matchedRoute'], err: error }, 'a request failed')
  if (isDatabaseAway(error)) {
    return new Failure('UNAVAILABLE', 'The database cannot be reached; repeat the request in a moment.', {
      retryAfter: 1,
      cause: error,
    })
  }
  if (isConcurrencyFault(error)) {
    return new Failure(
      'UNAVAILABLE',
      'Other requests kept changing the same records and nothing was changed; repeat the request in a moment.',
      { retryAfter: 1, cause: error },
    )
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
