import { failed, PostloomError, type AnswerHeaders, type Challenge, type Result } from './result.ts'
import { boundRetries, pause, waitBefore } from './retry.ts'
import type { Settings, WriteOptions } from './settings.ts'

/** One request to the service. */
export type ApiRequest<Data> = {
  method: string
  /** The path below `/api/v2`, with a `:name` for each parameter. */
  path: string
  parameters?: readonly string[]
  query?: object
  body?: unknown
  /** Sends `body` unchanged with this content type. Without it, the body is sent as JSON. */
  bodyType?: string
  /** Whether the request changes nothing and can be repeated. */
  isSafe: boolean
  /** Returns the data of an answer. When it throws or returns undefined, the result is `invalid_response`. */
  read: (text: string) => Data | undefined
}

type Prepared = { url: string; init: RequestInit & { duplex?: 'half' } }

/** The longest delay of a timer (a signed 32-bit number). */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Sends requests and converts every outcome into a result. */
export class Transport {
  readonly #settings: Settings

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /** Sends a request, with retries. Never throws: a request that cannot be built also becomes an error result. */
  async send<Data>(request: ApiRequest<Data>, options: WriteOptions = {}): Promise<Result<Data>> {
    try {
      const prepared = prepare(this.#settings, request, options)
      return await this.#sendRepeatedly(request, prepared, options)
    } catch (error) {
      if (error instanceof PostloomError) return failed(error)
      return failed(new PostloomError('invalid_request', ended(messageOf(error)), { cause: error }))
    }
  }

  async #sendRepeatedly<Data>(
    request: ApiRequest<Data>,
    prepared: Prepared,
    options: WriteOptions,
  ): Promise<Result<Data>> {
    const isRepeatable = (request.isSafe || options.idempotencyKey !== undefined) && !isStream(request.body)
    const retries = isRepeatable ? boundRetries(options.retries ?? this.#settings.retries) : 0
    for (let attempt = 0; ; attempt++) {
      const result = await this.#sendOnce(request, prepared, options)
      const wait = attempt < retries ? waitBefore(attempt, result) : undefined
      if (wait === undefined) return result
      if (!(await pause(wait, options.signal))) return failed(abortedBy(request.method, prepared, options))
    }
  }

  async #sendOnce<Data>(
    { read, method }: ApiRequest<Data>,
    prepared: Prepared,
    options: WriteOptions,
  ): Promise<Result<Data>> {
    const { url, init } = prepared
    const { signal, timeout = this.#settings.timeout } = options
    const controller = new AbortController()
    const stop = (): void => controller.abort()
    const timer = timeout > LONGEST_TIMER_MS ? undefined : setTimeout(stop, timeout)
    signal?.addEventListener('abort', stop)
    if (signal?.aborted) stop()
    try {
      const { fetch } = this.#settings
      const response = await fetch(url, { ...init, signal: controller.signal })
      const headers = Object.fromEntries(response.headers)
      return readAnswer(response, headers, await response.text(), read)
    } catch (error) {
      if (signal?.aborted) return failed(abortedBy(method, prepared, options))
      if (controller.signal.aborted) {
        return failed(new PostloomError('timeout', `${method} ${url} had no answer within ${timeout} ms.`))
      }
      const message = `${method} ${url} was not answered: ${ended(messageOf(error))}`
      return failed(new PostloomError('network_error', message, { cause: error }))
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    }
  }
}

function abortedBy(method: string, { url }: Prepared, { signal }: WriteOptions): PostloomError {
  return new PostloomError('aborted', `${method} ${url} was aborted.`, { cause: signal?.reason })
}

function prepare(settings: Settings, request: ApiRequest<unknown>, options: WriteOptions): Prepared {
  const { method, path, parameters = [], query = {}, body, bodyType } = request
  const { baseUrl } = settings
  if (typeof baseUrl !== 'string') throw new PostloomError('invalid_request', 'baseUrl must be text.')
  const headers = new Headers({ accept: 'application/json', ...settings.headers })
  const key = readKey(settings.apiKey)
  if (key !== undefined) headers.set('authorization', `Bearer ${key}`)
  if (options.idempotencyKey !== undefined) headers.set('idempotency-key', options.idempotencyKey)
  if (body !== undefined) headers.set('content-type', bodyType ?? 'application/json')
  return {
    url: `${baseUrl.replace(/\/+$/, '')}/api/v2${fill(path, parameters)}${queryText(query)}`,
    init: {
      method,
      headers,
      // Following a redirect would turn a POST into a GET without its body.
      redirect: 'error',
      ...(body !== undefined && { body: written(body, bodyType) }),
      ...(isStream(body) && { duplex: 'half' as const }),
    },
  }
}

function written(body: unknown, bodyType: string | undefined): RequestInit['body'] {
  // Only `upload` sets `bodyType`, and its files are bodies that `fetch` accepts.
  return bodyType === undefined ? JSON.stringify(body) : (body as NonNullable<RequestInit['body']>)
}

/** Returns undefined without a key: a token proxy may add one, and otherwise the service refuses the request. */
function readKey(key: unknown): string | undefined {
  if (key === undefined || key === '') return undefined
  if (typeof key === 'string' && /^[\x21-\x7e]+$/.test(key)) return key
  throw new PostloomError('invalid_api_key', 'The API key must be the text of a token, pl_… .')
}

/** Fills in the parameters. An empty one, `.` or `..` would lead to another route, so it is refused. */
function fill(path: string, parameters: readonly string[]): string {
  const left = [...parameters]
  return path.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = left.shift()
    if (typeof value === 'string' && !/^\.{0,2}$/.test(value)) return encodeURIComponent(value)
    throw new PostloomError('invalid_request', `${name} must be an id, and no empty text.`)
  })
}

/**
 * Encodes a query. Lists of plain texts are joined by commas; other lists and objects are written as JSON, and
 * undefined members are omitted.
 */
function queryText(query: object): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [`${encodeURIComponent(name)}=${encodeURIComponent(queryValue(value))}`],
  )
  return pairs.length > 0 ? `?${pairs.join('&')}` : ''
}

function queryValue(value: unknown): string {
  if (Array.isArray(value) && value.length > 0 && value.every(isPlain)) return value.join(',')
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Returns whether the service reads an item of a list back when the items are joined by commas. */
function isPlain(item: unknown): boolean {
  return typeof item === 'string' && /^[^,[]+$/.test(item)
}

function isStream(body: unknown): boolean {
  return typeof ReadableStream !== 'undefined' && body instanceof ReadableStream
}

function readAnswer<Data>(
  { ok, status }: Response,
  headers: AnswerHeaders,
  text: string,
  read: (text: string) => Data | undefined,
): Result<Data> {
  if (!ok) return failed(readRefusal(status, text), headers)
  const data = tryTo(() => read(text))
  if (data !== undefined) return { data, error: null, headers }
  return failed(unreadable(status, text), headers)
}

/** Reads the error of the service: `{name, message}` from REST, `{code, error}` from the tools. */
function readRefusal(status: number, text: string): PostloomError {
  const body = tryTo(() => Object(JSON.parse(text)))
  const name: unknown = body?.name ?? body?.code
  const message: unknown = body?.message ?? body?.error
  if (typeof name !== 'string' || typeof message !== 'string') return unreadable(status, text)
  const challenge = readChallenge(Object(body))
  return new PostloomError(name, message, {
    statusCode: status,
    details: body?.details,
    ...(challenge && { challenge }),
  })
}

function readChallenge({ confirmationCode, expiresAt, summary }: Partial<Challenge>): Challenge | undefined {
  return confirmationCode !== undefined && expiresAt !== undefined && summary !== undefined
    ? { confirmationCode, expiresAt, summary }
    : undefined
}

function unreadable(status: number, text: string): PostloomError {
  const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text
  return new PostloomError(
    'invalid_response',
    `The answer with status ${status} is not the service's: ${ended(shown)}`,
    {
      statusCode: status,
    },
  )
}

function tryTo<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Adds a full stop to words that are not ours, so that a sentence can follow. */
function ended(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`
}

/** Adds the cause, because Node's own message is only "fetch failed". */
function messageOf(error: unknown): string {
  const { message, cause } = Object(error)
  const inner: unknown = Object(cause).message || Object(cause).code
  return [message, inner].filter(Boolean).join(': ') || String(error)
}
