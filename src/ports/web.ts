import type { LookupAddress } from 'node:dns'
import { lookup as lookupName } from 'node:dns/promises'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

import { isPublicAddress } from './web-addresses.ts'

/** One request to an address that somebody outside named. */
export type WebRequest = {
  url: string
  /** GET follows redirects; an answer to any other method is given as it comes. */
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  headers?: Record<string, string>
  body?: string | Buffer
  /** Bytes of the answer, before and after decompression; milliseconds for everything, redirects included. */
  limits: { bytes: number; milliseconds: number }
}

/** An answer, decompressed. `url` is where the last redirect led. */
export type WebAnswer = { url: string; status: number; headers: Record<string, string>; body: Buffer }

/** Why there is no answer. `BUSY` passes by itself; the others are of the address or of who answers there. */
export type WebFaultReason =
  | 'INVALID_URL'
  | 'NOT_PUBLIC'
  | 'UNREACHABLE'
  | 'TIMEOUT'
  | 'TOO_LARGE'
  | 'TOO_MANY_REDIRECTS'
  | 'BUSY'

/** A request that got no answer; `message` goes on from the address and can be shown to who gave it. */
export class WebFault extends Error {
  readonly reason: WebFaultReason

  constructor(reason: WebFaultReason, message: string, options?: { cause: unknown }) {
    super(message, options)
    this.name = 'WebFault'
    this.reason = reason
  }
}

/** The only way out to an address that a user gave: it reaches the public internet and nothing else. */
export type Web = { request(request: WebRequest): Promise<WebAnswer> }

/** What a web port may reach beyond public addresses, and how it finds addresses. */
export type WebOptions = {
  /** `address:port` pairs that are reachable although they are not public; for development and tests. */
  allowPrivate?: readonly string[]
  ports?: readonly number[]
  resolve?: (hostname: string) => Promise<LookupAddress[]>
}

const PORTS = [80, 443]
const REDIRECTS = 5
const REDIRECT_STATUSES = new Set([301, 302, 303, 307, 308])
const CONCURRENT = 32
const HEADER_BYTES = 16_384
const AGENT = 'Postloom/1.0'

/**
 * Requests that cannot be turned against the network they leave from: http and https on their ports, no credentials,
 * every literal and resolved address checked, the connection made to an address that was checked, redirects checked
 * again, bytes and time bounded.
 */
export function createWeb(options: WebOptions = {}): Web {
  let active = 0
  return {
    async request(request) {
      if (active >= CONCURRENT) throw new WebFault('BUSY', 'has to wait: too many requests are under way')
      active += 1
      try {
        return await follow(options, request, AbortSignal.timeout(request.limits.milliseconds))
      } finally {
        active -= 1
      }
    },
  }
}

async function follow(options: WebOptions, request: WebRequest, signal: AbortSignal): Promise<WebAnswer> {
  let url = readUrl(request.url)
  for (let redirects = 0; redirects <= REDIRECTS; redirects++) {
    try {
      const addresses = await within(signal, findAddresses(options, url))
      const answer = await exchange(url, addresses, request, signal)
      if ('body' in answer) return answer
      url = readUrl(answer.location, url)
    } catch (error) {
      if (error instanceof WebFault) throw error
      throw signal.aborted
        ? new WebFault('TIMEOUT', `did not answer within ${request.limits.milliseconds / 1_000} seconds`)
        : new WebFault('UNREACHABLE', 'cannot be reached, or breaks off its answer', { cause: error })
    }
  }
  throw new WebFault('TOO_MANY_REDIRECTS', `redirects more than ${REDIRECTS} times`)
}

function readUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href)
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    throw new WebFault('INVALID_URL', `${base ? 'redirects to' : 'is'} no http or https address`)
  }
  if (url.username !== '' || url.password !== '') {
    throw new WebFault(
      'INVALID_URL',
      `${base ? 'redirects to an address that holds' : 'holds'} a user or password`,
    )
  }
  return url
}

/** The addresses of a host, all of which must be allowed: one that also names an internal one is a trap. */
async function findAddresses(options: WebOptions, url: URL): Promise<LookupAddress[]> {
  const { allowPrivate = [], ports = PORTS, resolve = resolveName } = options
  const port = portOf(url)
  const host = hostOf(url)
  const family = isIP(host)
  const addresses = family === 0 ? await resolve(host).catch(() => []) : [{ address: host, family }]
  const isAllowed = ({ address }: LookupAddress) =>
    allowPrivate.includes(`${address}:${port}`) || (ports.includes(port) && isPublicAddress(address))
  if (addresses.length > 0 && addresses.every(isAllowed)) return addresses
  // One sentence for what does not exist and what is internal, so that names inside cannot be probed.
  throw new WebFault('NOT_PUBLIC', `does not lead to a public address on port ${ports.join(' or ')}`)
}

async function resolveName(hostname: string): Promise<LookupAddress[]> {
  return await lookupName(hostname, { all: true })
}

/** One request and its answer, or where it redirects to. */
async function exchange(
  url: URL,
  addresses: LookupAddress[],
  { method = 'GET', headers, body, limits }: WebRequest,
  signal: AbortSignal,
): Promise<WebAnswer | { location: string }> {
  const host = hostOf(url)
  const open = url.protocol === 'https:' ? requestHttps : requestHttp
  const sent = open({
    method,
    host,
    port: portOf(url),
    path: url.pathname + url.search,
    headers: { 'user-agent': AGENT, 'accept-encoding': 'gzip, deflate, br', ...headers, host: url.host },
    lookup: pinnedTo(addresses),
    ...(isIP(host) === 0 && { servername: host }),
    agent: false,
    maxHeaderSize: HEADER_BYTES,
    signal,
  })
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.once('response', resolve)
      // It stays: an error after the answer began reaches the reader of the answer as well.
      sent.on('error', reject)
      sent.end(body)
    })
    const status = response.statusCode ?? 0
    const { location } = response.headers
    if (method === 'GET' && location !== undefined && REDIRECT_STATUSES.has(status)) {
      // Node reads header bytes as Latin-1; what servers put there is UTF-8, as browsers read it.
      return { location: Buffer.from(location, 'latin1').toString('utf8') }
    }
    return {
      url: url.href,
      status,
      headers: plainHeaders(response),
      body: await readBody(response, limits.bytes),
    }
  } finally {
    sent.destroy()
  }
}

/** Answers the addresses that were checked, so that the name is not asked for a second time. */
function pinnedTo(addresses: LookupAddress[]): LookupFunction {
  return (_hostname, options, callback) => {
    const [first] = addresses
    if (options.all) callback(null, addresses)
    else if (first) callback(null, first.address, first.family)
  }
}

async function readBody(response: IncomingMessage, limit: number): Promise<Buffer> {
  if (Number(response.headers['content-length'] ?? 0) > limit) throw tooLarge(limit)
  const chunks: Buffer[] = []
  await pipeline(capped(response, limit), decoderOf(response), async (plain: AsyncIterable<Buffer>) => {
    for await (const chunk of capped(plain, limit)) chunks.push(chunk)
  })
  return Buffer.concat(chunks)
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

/** Settles with `work`, or fails when the time is over; a look-up that nobody waits for any more ends by itself. */
async function within<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  signal.throwIfAborted()
  return await new Promise<Value>((resolve, reject) => {
    // Every signal here carries the DOMException of its timeout.
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    work.then(resolve, reject)
  })
}

function tooLarge(limit: number): WebFault {
  return new WebFault('TOO_LARGE', `answers with more than ${limit} bytes`)
}

function plainHeaders({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
}

function portOf(url: URL): number {
  return Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
}

/** The host without the brackets that IPv6 literals have in an address. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}
