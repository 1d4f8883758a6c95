/** The options of a client. */
export type PostloomOptions = {
  /**
   * The address of the service without `/api`. Defaults to POSTLOOM_BASE_URL, then `http://127.0.0.1:3000`. In a
   * browser it may be a path of the page's own origin, such as `/postloom`.
   */
  baseUrl?: string
  /** The timeout of one attempt in milliseconds; 60,000 by default. */
  timeout?: number
  /** How often a call that is safe to repeat is retried, at most 10 times; 0 by default. */
  retries?: number
  /** Headers for every request, such as those that a token proxy needs. */
  headers?: Readonly<Record<string, string>>
  /** A replacement for the global `fetch`. */
  fetch?: typeof fetch
}

/** The options of one call. */
export type CallOptions = Pick<PostloomOptions, 'timeout' | 'retries'> & {
  /** Aborts the call; its result is the error `aborted`. */
  signal?: AbortSignal
}

/** The options of a call that changes something. */
export type WriteOptions = CallOptions & {
  /** Repeating a call with the same key within 24 hours returns the first answer again. */
  idempotencyKey?: string
}

/** The settings of a client after defaults are applied. */
export type Settings = {
  /** Typed unknown because callers in plain JavaScript may pass any value. */
  apiKey: unknown
  baseUrl: unknown
  timeout: number
  retries: number
  headers: Readonly<Record<string, string>>
  fetch: typeof fetch
}

const LOCAL_SERVICE = 'http://127.0.0.1:3000'
const TIMEOUT_MS = 60_000

/** Returns the options, completed from the environment and then from the defaults. */
export function readSettings(apiKey: unknown, options: PostloomOptions): Settings {
  const { baseUrl, timeout, retries, headers, fetch }: PostloomOptions = Object(options)
  const own: typeof globalThis.fetch = (...request) => globalThis.fetch(...request)
  return {
    apiKey: apiKey ?? readEnvironment('POSTLOOM_API_KEY'),
    baseUrl: baseUrl ?? readEnvironment('POSTLOOM_BASE_URL') ?? LOCAL_SERVICE,
    timeout: timeout ?? TIMEOUT_MS,
    retries: retries ?? 0,
    headers: headers ?? {},
    fetch: fetch ?? own,
  }
}

/** Returns undefined where there is no environment, as in browsers, or no permission to read it, as in Deno. */
function readEnvironment(name: string): string | undefined {
  try {
    const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }
    return process?.env?.[name] || undefined
  } catch {
    return undefined
  }
}
