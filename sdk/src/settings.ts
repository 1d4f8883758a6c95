/** How a client reaches the service. */
export type PostloomOptions = {
  /**
   * Where the service is, without `/api`. POSTLOOM_BASE_URL unless said otherwise, or `http://127.0.0.1:3000`. In a
   * browser it may be a path of the page's own origin, such as `/postloom`.
   */
  baseUrl?: string
  /** Milliseconds that one attempt may take; 60,000 unless said otherwise. */
  timeout?: number
  /** How often to repeat what is safe to repeat, at most 10 times; not at all unless said otherwise. */
  retries?: number
  /** Headers of every request, such as those that a token proxy asks for. */
  headers?: Readonly<Record<string, string>>
  /** Another `fetch`. */
  fetch?: typeof fetch
}

/** What can be said of one call. */
export type CallOptions = Pick<PostloomOptions, 'timeout' | 'retries'> & {
  /** Ends the call; its result is the error `aborted`. */
  signal?: AbortSignal
}

/** What can be said of a call that changes something. */
export type WriteOptions = CallOptions & {
  /** Repeating a call under the same key, within 24 hours, gives the first answer again. */
  idempotencyKey?: string
}

/** Everything that is settled when a client is made. */
export type Settings = {
  /** Callers in plain JavaScript may have given anything. */
  apiKey: unknown
  baseUrl: unknown
  timeout: number
  retries: number
  headers: Readonly<Record<string, string>>
  fetch: typeof fetch
}

const LOCAL_SERVICE = 'http://127.0.0.1:3000'
const TIMEOUT_MS = 60_000

/** What was said, then what the environment says, then what mostly fits. */
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

/** Nothing where there is no environment, as in a browser, or where it may not be read, as in Deno. */
function readEnvironment(name: string): string | undefined {
  try {
    const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }
    return process?.env?.[name] || undefined
  } catch {
    return undefined
  }
}
