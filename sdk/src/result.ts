/** Headers of an answer by their names in lower case; empty where no answer came. */
export type AnswerHeaders = Readonly<Record<string, string | undefined>>

/** What every method gives: data, or the error that stands in its place. Nothing is thrown. */
export type Result<Data> =
  | { data: Data; error: null; headers: AnswerHeaders }
  | { data: null; error: PostloomError; headers: AnswerHeaders }

/** A page of REST, newest first. */
export type List<Item> = { object: 'list'; data: Item[]; has_more: boolean }

/** What a gated tool would do, and the code that lets it. */
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

/** Why there is no data. */
export class PostloomError extends Error {
  /**
   * The service's own word, such as `not_found` (REST) or `NOT_FOUND` (tools); of what did not reach it or came back
   * broken, one of `network_error`, `timeout`, `aborted`, `invalid_request`, `invalid_api_key`, `invalid_response`.
   */
  override readonly name: string
  /** The status of the answer; null where none came. */
  readonly statusCode: number | null
  /** For faults of an input, all of them: `{path, message}` each. */
  readonly details: unknown
  /** Of CONFIRMATION_REQUIRED. */
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

  /** Errors are empty in JSON by themselves. */
  toJSON(): Record<string, unknown> {
    const { name, message, statusCode, details, challenge } = this
    return { name, message, statusCode, details, challenge }
  }
}

/** The result of what failed. */
export function failed(error: PostloomError, headers: AnswerHeaders = {}): Result<never> {
  return { data: null, error, headers }
}
