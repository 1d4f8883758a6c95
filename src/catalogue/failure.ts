/**
 * Every kind of refusal, with its answer at each door: the Tools API status (decisions, section 2), the REST v2 name
 * and status (section 9) and the SMTP reply (contract, "SMTP replies").
 */
export const FAILURES = {
  INVALID_INPUT: { status: 400, rest: ['validation_error', 422], smtp: [550, '5.6.0'] },
  MALFORMED_BODY: { status: 400, rest: ['validation_error', 400], smtp: [550, '5.6.0'] },
  MISSING_FIELD: { status: 400, rest: ['missing_required_field', 422], smtp: [550, '5.6.0'] },
  INVALID_PARAMETER: { status: 400, rest: ['invalid_parameter', 422], smtp: [550, '5.6.0'] },
  MISSING_TOKEN: { status: 401, rest: ['missing_api_key', 401], smtp: [530, '5.7.0'] },
  UNAUTHENTICATED: { status: 401, rest: ['invalid_api_key', 401], smtp: [535, '5.7.8'] },
  FORBIDDEN: { status: 403, rest: ['restricted_api_key', 403], smtp: [550, '5.7.1'] },
  NOT_FOUND: { status: 404, rest: ['not_found', 404], smtp: [550, '5.1.1'] },
  TOOL_NOT_FOUND: { status: 404, rest: ['not_found', 404], smtp: [550, '5.1.1'] },
  METHOD_NOT_ALLOWED: { status: 405, rest: ['method_not_allowed', 405], smtp: [550, '5.5.1'] },
  WRONG_STATE: { status: 409, rest: ['wrong_state', 409], smtp: [550, '5.7.1'] },
  STALE_VERSION: { status: 409, rest: ['stale_version', 409], smtp: [550, '5.7.1'] },
  ALREADY_EXISTS: { status: 409, rest: ['already_exists', 409], smtp: [550, '5.7.1'] },
  FILTER_REFERENCE_MISSING: { status: 409, rest: ['wrong_state', 409], smtp: [550, '5.7.1'] },
  INVALID_FROM_ADDRESS: { status: 400, rest: ['invalid_from_address', 422], smtp: [550, '5.1.7'] },
  DOMAIN_NOT_VERIFIED: { status: 403, rest: ['domain_not_verified', 403], smtp: [550, '5.7.1'] },
  INVALID_IDEMPOTENCY_KEY: { status: 400, rest: ['invalid_idempotency_key', 400], smtp: [550, '5.6.0'] },
  IDEMPOTENCY_MISMATCH: { status: 409, rest: ['invalid_idempotent_request', 409], smtp: [550, '5.6.0'] },
  IDEMPOTENCY_IN_PROGRESS: {
    status: 409,
    rest: ['concurrent_idempotent_requests', 409],
    smtp: [451, '4.3.0'],
  },
  TOO_LARGE: { status: 413, rest: ['payload_too_large', 413], smtp: [552, '5.3.4'] },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, rest: ['validation_error', 415], smtp: [550, '5.6.1'] },
  CONFIRMATION_REQUIRED: { status: 428, rest: ['wrong_state', 409], smtp: [550, '5.7.1'] },
  RATE_LIMITED: { status: 429, rest: ['rate_limit_exceeded', 429], smtp: [452, '4.7.0'] },
  QUOTA_EXCEEDED: { status: 429, rest: ['monthly_quota_exceeded', 429], smtp: [452, '4.7.0'] },
  FAULT: { status: 500, rest: ['application_error', 500], smtp: [451, '4.3.0'] },
  UNAVAILABLE: { status: 503, rest: ['service_unavailable', 503], smtp: [451, '4.3.0'] },
} as const satisfies Record<string, FailureAnswer>

type FailureAnswer = {
  status: number
  rest: readonly [name: string, status: number]
  smtp: readonly [reply: number, enhanced: string]
}
export type FailureCode = keyof typeof FAILURES

/** Codes that the Tools API does not distinguish, and the code that it answers instead (decisions, section 2). */
const TOOL_CODES: Partial<Record<FailureCode, FailureCode>> = {
  MALFORMED_BODY: 'INVALID_INPUT',
  MISSING_FIELD: 'INVALID_INPUT',
  INVALID_PARAMETER: 'INVALID_INPUT',
  MISSING_TOKEN: 'UNAUTHENTICATED',
}

/** Returns the code that the Tools API answers for this one. */
export function toolCode(code: FailureCode): FailureCode {
  return TOOL_CODES[code] ?? code
}

/** One fault of an input: its JSON path, and a message that says how to repair it. */
export type Fault = { path: string; message: string; stepId?: string }

/**
 * An expected refusal. `message` is one English sentence: the fault, its place, and how to repair it. `details` is
 * plain data for programs. Any other thrown error is an internal fault, which is answered without detail.
 */
export class Failure extends Error {
  readonly code: FailureCode
  readonly details: unknown
  /** Seconds until a retry can succeed; becomes `Retry-After`. */
  readonly retryAfter: number | undefined
  /** Members beside `error` and `code` in the body, such as a confirmation challenge. */
  readonly body: Record<string, unknown> | undefined

  constructor(
    code: FailureCode,
    message: string,
    options: {
      details?: unknown
      retryAfter?: number
      body?: Record<string, unknown>
      cause?: unknown
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'Failure'
    this.code = code
    this.details = options.details
    this.retryAfter = options.retryAfter
    this.body = options.body
  }
}

/** Throws `INVALID_INPUT` for the input at `path`; `message` continues after the path and says how to repair it. */
export function refuse(path: string, message: string): never {
  throw new Failure('INVALID_INPUT', `${path} ${message}`, { details: [{ path, message }] })
}

/**
 * Maximum number of faults that a refusal lists. The lengths below limit their texts in characters, so that answers
 * stay small.
 */
export const FAULTS_SHOWN = 100
const PATH_LENGTH = 400
const MESSAGE_LENGTH = 2_000

/**
 * Throws a failure that lists all faults of an input, up to `FAULTS_SHOWN`; its message counts them and quotes the
 * first.
 */
export function refuseFaults(
  faults: readonly Fault[],
  what = 'The input',
  code: FailureCode = 'INVALID_INPUT',
): never {
  const shown = faults.slice(0, FAULTS_SHOWN).map(shortened)
  const [first] = shown
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more, see details)` : ''
  const where = first?.path ? ` at ${first.path}` : ''
  throw new Failure(code, `${what} is not valid${where}: ${first?.message ?? 'unknown fault'}${more}`, {
    details: shown,
  })
}

/** Returns the faults that a failure lists; if it lists none, the failure itself as the only one. */
export function faultsOf({ details, message }: Failure): Fault[] {
  return Array.isArray(details) ? (details as Fault[]) : [{ path: '', message }]
}

function shortened({ path, message, ...rest }: Fault): Fault {
  return { path: cut(path, PATH_LENGTH), message: cut(message, MESSAGE_LENGTH), ...rest }
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length).toWellFormed()}…` : text
}
