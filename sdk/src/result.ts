/** Response headers by their lower-case names; empty if there was no response. */
export type AnswerHeaders = Readonly<Record<string, string | undefined>>

/** The result of every method: either `data` or `error` is null. Methods never throw. */
export type Result<Data> =
  | { data: Data; error: null; headers: AnswerHeaders }
  | { data: null; error: PostloomError; headers: AnswerHeaders }

/** A page of a REST list, newest first. */
export type List<Item> = { object: 'list'; data: Item[]; has_more: boolean }

/** The effects of a gated tool, and the code that confirms them. */
export type Challenge = {
  confirmationCode: string
  /** ISO 8601. */
  expiresAt: string
  summary: {
    action: string
    target: string
    recipients?: number
    effects: string[]
    warnings: string[]
  }
}

/** The reason why a call failed. */
export class PostloomError extends Error {
  /**
   * The code of the service, such as `not_found` (REST) or `NOT_FOUND` (tools). If the request did not reach the
   * service, or the answer was unreadable: `network_error`, `timeout`, `aborted`, `invalid_request`, `invalid_api_key`
   * or `invalid_response`.
   */
  override readonly name: string
  /** The HTTP status; null if there was no response. */
  readonly statusCode: number | null
  /** All faults of an invalid input, each as `{path, message}`. */
  readonly details: unknown
  /** Set when `name` is CONFIRMATION_REQUIRED. */
  readonly challenge: Challenge | undefined

  constructor(
    name: string,
    message: string,
    rest: { statusCode?: number; details?: unknown; challenge?: Challenge; cause?: unknown } = {},
  ) {
    super(message, rest.cause === undefined ? undefined : { cause: rest.cause })
    this.name = name
    this.statusCode = rest.statusCode ?? null
    this.details = rest.details
    this.challenge = rest.challenge
  }

  /** Needed because the members of an Error are not part of its JSON. */
  toJSON(): Record<string, unknown> {
    const { name, message, statusCode, details, challenge } = this
    return { name, message, statusCode, details, challenge }
  }
}

/** Returns the result of a failed call. */
export function failed(error: PostloomError, headers: AnswerHeaders = {}): Result<never> {
  return { data: null, error, headers }
}
