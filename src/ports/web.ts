import type { LookupAddress } from 'node:dns'
import { lookup as lookupName } from 'node:dns/promises'
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'

import { isPublicAddress } from './web-addresses.ts'
import { readBody, readStart } from './web-body.ts'
import { WebFault } from './web-fault.ts'

/** One request to a URL that a user gave. */
export type WebRequest = {
  url: string
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  headers?: Record<string, string>
  body?: string | Buffer
  /** Follows redirects; only for a GET without a secret. Otherwise a redirect is returned as the answer. */
  follow?: boolean
  /**
   * The most bytes of the answer, before and after decompression, and milliseconds for everything, redirects included.
   */
  limits: { bytes: number; milliseconds: number }
  /** Returns only the first bytes up to the limit, not decompressed, instead of refusing a longer answer. */
  startOnly?: boolean
}

/** A decompressed answer. `url` is the one to which the last redirect led. */
export type WebAnswer = { url: string; status: number; headers: Record<string, string>; body: Buffer }

/** The only way to request a URL that a user gave: it reaches the public internet and nothing else. */
export type Web = {
  request(request: WebRequest): Promise<WebAnswer>
  /**
   * Returns why no request to an http or https address can succeed, wherever its host leads; null if one may. The text
   * continues a sentence that begins with the address.
   */
  faultOf(url: URL): string | null
  /**
   * Opens a line for many requests to one host within seconds. When a kept connection breaks, a request may be
   * repeated, which the receiver must tolerate.
   */
  openLine(): WebLine
}

/** Resolves and checks each host once, and keeps connections open until it is closed. */
export type WebLine = { request(request: WebRequest): Promise<WebAnswer>; close(): void }

/** What a web port may reach beyond public addresses, and how it resolves names. */
export type WebOptions = {
  /** `address:port` pairs that are reachable although they are not public; for development and tests. */
  allowPrivate?: readonly string[]
  ports?: readonly number[]
  /** The most concurrent requests of this port. */
  concurrent?: number
  resolve?: (hostname: string) => Promise<LookupAddress[]>
}

const PORTS = [80, 443]
const REDIRECTS = 5
const REDIRECT_STATUSES = new Set([301, 302, 303, 307, 308])
const CONCURRENT = 32
const HEADER_BYTES = 16_384
const AGENT = 'Postloom/1.0'

/**
 * Creates a port whose requests cannot be used against our own network: http and https on their ports, no credentials,
 * every literal and resolved address checked, connections only to checked addresses, redirects checked again, bytes and
 * time limited.
 */
export function createWeb(options: WebOptions = {}): Web {
  const { concurrent = CONCURRENT } = options
  let active = 0
  async function ask(request: WebRequest, way: Way): Promise<WebAnswer> {
    if (active >= concurrent) throw new WebFault('BUSY', 'has to wait: too many requests are under way')
    active += 1
    try {
      return await follow(way, request, AbortSignal.timeout(request.limits.milliseconds))
    } finally {
      active -= 1
    }
  }
  const single: Way = { find: (url) => findAddresses(options, url), agentOf: () => false }
  return {
    request: (request) => ask(request, single),
    faultOf: (url) => (mayReach(options, url) ? null : unreachable(options)),
    openLine() {
      const way = keepWay(single)
      return { request: (request) => ask(request, way), close: () => way.close() }
    },
  }
}

/**
 * How a URL is reached: the addresses of its host, all checked, and the agent for its connections; false opens a new
 * connection each time.
 */
type Way = {
  find(url: URL): Promise<LookupAddress[]>
  agentOf(url: URL): HttpAgent | false
}

/**
 * Returns a way that keeps addresses and connections. A kept connection leads to an address that was checked for the
 * same host and port.
 */
function keepWay(single: Way): Way & { close(): void } {
  const found = new Map<string, Promise<LookupAddress[]>>()
  const agents = {
    'http:': new HttpAgent({ keepAlive: true }),
    'https:': new HttpsAgent({ keepAlive: true }),
  }
  return {
    find(url) {
      const known = found.get(url.origin)
      if (known) return known
      const finding = single.find(url)
      found.set(url.origin, finding)
      return finding
    },
    agentOf: (url) => agents[url.protocol === 'https:' ? 'https:' : 'http:'],
    close() {
      for (const agent of Object.values(agents)) agent.destroy()
    },
  }
}

async function follow(way: Way, request: WebRequest, signal: AbortSignal): Promise<WebAnswer> {
  let url = readUrl(request.url)
  for (let redirects = 0; redirects <= REDIRECTS; redirects++) {
    try {
      const addresses = await within(signal, way.find(url))
      const answer = await exchange({ url, addresses, agent: way.agentOf(url) }, request, signal)
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
    throw new WebFault(
      'INVALID_URL',
      base ? 'redirects to an address that is not http or https' : 'is not an http or https address',
    )
  }
  if (url.username !== '' || url.password !== '') {
    throw new WebFault(
      'INVALID_URL',
      `${base ? 'redirects to an address that holds' : 'holds'} a user or password`,
    )
  }
  return url
}

/**
 * Returns the addresses of a host. All of them must be allowed: a name that also resolves to an internal address is a
 * trap.
 */
async function findAddresses(options: WebOptions, url: URL): Promise<LookupAddress[]> {
  const { resolve = resolveName } = options
  const port = portOf(url)
  const host = hostOf(url)
  const family = isIP(host)
  const addresses = family === 0 ? await resolve(host).catch(() => []) : [{ address: host, family }]
  const areAllowed = addresses.every(({ address }) => isAllowed(options, address, port))
  if (addresses.length > 0 && areAllowed) return addresses
  throw new WebFault('NOT_PUBLIC', unreachable(options))
}

function isAllowed({ allowPrivate = [], ports = PORTS }: WebOptions, address: string, port: number): boolean {
  return allowPrivate.includes(`${address}:${port}`) || (ports.includes(port) && isPublicAddress(address))
}

/** Returns whether the port of a URL, and its host if that is an address, may be reached. */
function mayReach(options: WebOptions, url: URL): boolean {
  const port = portOf(url)
  const host = hostOf(url)
  if (isIP(host) !== 0) return isAllowed(options, host, port)
  const { allowPrivate = [], ports = PORTS } = options
  return ports.includes(port) || allowPrivate.some((each) => each.endsWith(`:${port}`))
}

/** The same words for a missing and for an internal host, so that internal names cannot be probed. */
function unreachable({ ports = PORTS }: WebOptions): string {
  return `does not lead to a public address on port ${ports.join(' or ')}`
}

async function resolveName(hostname: string): Promise<LookupAddress[]> {
  return await lookupName(hostname, { all: true })
}

type Target = { url: URL; addresses: LookupAddress[]; agent: HttpAgent | false }
type Exchanged = WebAnswer | { location: string }

/** The other side closed a kept connection at the moment it was used again. */
class LostConnection extends Error {}

/**
 * Sends a request and returns its answer, or the address to which it redirects. Repeats it on a new connection when a
 * kept one was lost.
 */
async function exchange(target: Target, request: WebRequest, signal: AbortSignal): Promise<Exchanged> {
  try {
    return await exchangeOnce(target, request, signal)
  } catch (error) {
    if (!(error instanceof LostConnection)) throw error
    return await exchangeOnce({ ...target, agent: false }, request, signal)
  }
}

async function exchangeOnce(
  { url, addresses, agent }: Target,
  { method = 'GET', headers, body, follow: follows = false, limits, startOnly = false }: WebRequest,
  signal: AbortSignal,
): Promise<Exchanged> {
  const host = hostOf(url)
  const open = url.protocol === 'https:' ? requestHttps : requestHttp
  const sent = open({
    method,
    host,
    port: portOf(url),
    path: url.pathname + url.search,
    headers: {
      'user-agent': AGENT,
      'accept-encoding': startOnly ? 'identity' : 'gzip, deflate, br',
      ...headers,
      host: url.host,
    },
    lookup: pinnedTo(addresses),
    ...(isIP(host) === 0 && { servername: host }),
    agent,
    maxHeaderSize: HEADER_BYTES,
    signal,
  })
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.once('response', resolve)
      // This listener stays: an error after the answer began, which the reader of the answer also gets, must not be
      // unhandled.
      sent.on('error', reject)
      // Node closes the connection without an error if the server switches protocols (101).
      sent.once('close', () => reject(new Error('the connection was closed before an answer')))
      sent.end(body)
    })
    const status = response.statusCode ?? 0
    const { location } = response.headers
    if (follows && location !== undefined && REDIRECT_STATUSES.has(status)) {
      // Node decodes header bytes as Latin-1, but servers write UTF-8, which is how browsers read it.
      return { location: Buffer.from(location, 'latin1').toString('utf8') }
    }
    return {
      url: url.href,
      status,
      headers: plainHeaders(response),
      body: await (startOnly ? readStart : readBody)(response, limits.bytes),
    }
  } catch (error) {
    if (!sent.reusedSocket || signal.aborted || error instanceof WebFault) throw error
    throw new LostConnection('a kept connection was closed', { cause: error })
  } finally {
    // An answer that was read to its end has released its connection already.
    sent.destroy()
  }
}

/** Returns a lookup that answers with the checked addresses, so that the name is not resolved a second time. */
function pinnedTo(addresses: LookupAddress[]): LookupFunction {
  return (_hostname, options, callback) => {
    const [first] = addresses
    if (options.all) callback(null, addresses)
    else if (first) callback(null, first.address, first.family)
  }
}

/** Settles with `work`, or rejects when the time is over. A lookup that is no longer awaited ends by itself. */
async function within<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  signal.throwIfAborted()
  return await new Promise<Value>((resolve, reject) => {
    // Every signal here carries the DOMException of its timeout.
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    work.then(resolve, reject)
  })
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

/** Returns the host without the brackets that IPv6 literals have in a URL. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}
