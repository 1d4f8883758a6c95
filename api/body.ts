import type { IncomingMessage } from 'node:http'

import type { Context } from 'koa'
import getRawBody from 'raw-body'

import { Failure } from '../src/catalogue/failure.ts'

/** The time limit for reading a body into memory; files have the time limit of the whole request. */
const TEXT_MS = 60_000
const UTF_8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads the JSON body of a request; an empty one is `{}`. Throws `UNSUPPORTED_MEDIA_TYPE`, `TOO_LARGE` beyond `limit`
 * bytes, or `MALFORMED_BODY`.
 */
export async function readJson(ctx: Context, limit: number): Promise<unknown> {
  const isEmpty = ctx.req.headers['content-length'] === '0'
  if (!isEmpty && ctx.is('application/json') === false) {
    throw new Failure(
      'UNSUPPORTED_MEDIA_TYPE',
      'The body must be JSON; send the header "Content-Type: application/json".',
    )
  }
  refuseCompressed(ctx)
  const text = await readText(ctx, limit)
  if (text === '') return {}
  try {
    return JSON.parse(text)
  } catch (error) {
    const where = error instanceof SyntaxError ? ` (${error.message.slice(0, 120)})` : ''
    throw new Failure(
      'MALFORMED_BODY',
      `The body is not valid JSON${where}; check quotes, commas and brackets.`,
    )
  }
}

/**
 * Returns the unread body of a request as a file of `type`. Throws `UNSUPPORTED_MEDIA_TYPE`, or `TOO_LARGE` if its
 * declared size is above `limit` bytes; a body without a declared size is not checked here.
 */
export function openFile(ctx: Context, type: string, limit: number): AsyncIterable<Buffer> {
  if (!ctx.is(type)) {
    throw new Failure(
      'UNSUPPORTED_MEDIA_TYPE',
      `The body must be a file of the type ${type}; send the header "Content-Type: ${type}".`,
    )
  }
  refuseCompressed(ctx)
  if (Number(ctx.req.headers['content-length'] ?? 0) > limit) {
    throw new Failure('TOO_LARGE', `The file is larger than ${limit} bytes; send it in parts.`)
  }
  return piecesOf(ctx.req)
}

/**
 * Yields the body of a request. If the reader stops early, the rest is discarded: closing the connection instead would
 * lose the answer, because most clients first send the whole body.
 */
async function* piecesOf(request: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    yield* request.iterator({ destroyOnReturn: false })
  } finally {
    request.resume()
  }
}

/** Throws `UNSUPPORTED_MEDIA_TYPE` for a compressed body; `Accept-Encoding` says so too (RFC 9110, section 15.5.16). */
function refuseCompressed(ctx: Context): void {
  const encoding = ctx.get('content-encoding').trim().toLowerCase()
  if (encoding === '' || encoding === 'identity') return
  ctx.set('Accept-Encoding', 'identity')
  throw new Failure(
    'UNSUPPORTED_MEDIA_TYPE',
    `The body is encoded as ${JSON.stringify(encoding.slice(0, 40))}, which is not read here; send it without Content-Encoding.`,
  )
}

/**
 * Reads the body of a request as text within `withinMs`. Throws `TOO_LARGE` beyond `limit` bytes, and `MALFORMED_BODY`
 * if the body does not arrive whole or is not in UTF-8.
 */
export async function readText(ctx: Context, limit: number, withinMs = TEXT_MS): Promise<string> {
  const bytes = await readBytes(ctx, limit, withinMs)
  try {
    return UTF_8.decode(bytes)
  } catch {
    // Replaced characters would be stored without anybody noticing.
    throw new Failure(
      'MALFORMED_BODY',
      'The body is not in UTF-8; send it in UTF-8, whatever its charset says.',
    )
  }
}

async function readBytes(ctx: Context, limit: number, withinMs: number): Promise<Buffer> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    reject(
      new Failure('MALFORMED_BODY', `The body did not arrive within ${withinMs / 1_000} s; send it again.`),
    )
  }, withinMs)
  const length = ctx.req.headers['content-length']
  try {
    return await Promise.race([getRawBody(ctx.req, { limit, length }), late])
  } catch (error) {
    const type = bodyFault(error)
    if (type === 'entity.too.large') {
      // The rest is discarded, as in piecesOf().
      ctx.req.resume()
      throw tooLarge(limit)
    }
    // The rest of the body may never come, so the connection cannot carry another request.
    ctx.set('Connection', 'close')
    // The client left before its body was read, or while it was.
    const hasLeft = ctx.req.readableAborted || type === 'request.aborted'
    if (hasLeft || type === 'request.size.invalid') {
      throw new Failure(
        'MALFORMED_BODY',
        'The request ended before all of its body had arrived; send it again.',
      )
    }
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** Returns the failure for a body, or an input in one, that has more than `limit` bytes. */
export function tooLarge(limit: number): Failure {
  return new Failure('TOO_LARGE', `The body is larger than ${limit} bytes; send less in one request.`)
}

/** Returns the kind of a fault that raw-body found. */
function bodyFault(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'type' in error ? error.type : undefined
}
