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
  const chunks: Buffer[] = []
  await pipeline(capped(response, limit), decoderOf(response), async (plain: AsyncIterable<Buffer>) => {
    for await (const chunk of capped(plain, limit)) chunks.push(chunk)
  })
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
