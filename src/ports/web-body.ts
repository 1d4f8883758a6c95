import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

import { WebFault } from './web-fault.ts'

/**
 * Reads a whole answer, decompressed. Throws `TOO_LARGE` for more than `limit` bytes, before or after decompression.
 */
export async function readBody(response: IncomingMessage, limit: number): Promise<Buffer> {
  if (Number(response.headers['content-length'] ?? 0) > limit) throw tooLarge(limit)
  const encoded = await collect(capped(response, limit))
  // Some servers declare an encoding although there is no body, which no decoder accepts.
  if (encoded.length === 0) return encoded
  return await pipeline([encoded], decoderOf(response), (plain: AsyncIterable<Buffer>) =>
    collect(capped(plain, limit)),
  )
}

async function collect(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Reads the first `limit` bytes of an answer, without decompression. */
export async function readStart(response: AsyncIterable<Buffer>, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let total = 0
  for await (const chunk of response) {
    chunks.push(chunk)
    total += chunk.length
    if (total >= limit) break
  }
  return Buffer.concat(chunks).subarray(0, limit)
}

async function* capped(source: AsyncIterable<Buffer>, limit: number): AsyncGenerator<Buffer> {
  let total = 0
  for await (const chunk of source) {
    total += chunk.length
    if (total > limit) throw tooLarge(limit)
    yield chunk
  }
}

function decoderOf({ headers }: IncomingMessage) {
  switch (headers['content-encoding']?.trim().toLowerCase() ?? 'identity') {
    case 'identity':
    case '':
      return new PassThrough()
    case 'gzip':
    case 'x-gzip':
      return createGunzip()
    case 'deflate':
      return createInflate()
    case 'br':
      return createBrotliDecompress()
    default:
      throw new WebFault('UNREACHABLE', 'answers in an encoding that was not asked for')
  }
}

function tooLarge(limit: number): WebFault {
  return new WebFault('TOO_LARGE', `answers with more than ${limit} bytes`)
}
