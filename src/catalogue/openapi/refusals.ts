import Type, { type TSchema } from 'typebox'

import { closed } from '../../../schema/define.ts'
import { type FailureCode, FAILURES, toolCode } from '../failure.ts'
import type { Tool } from '../tool.ts'

/** The shapes of refusals, as `api/errors.ts` writes them. */
export type Door = 'tools' | 'rest' | 'v1' | 'admin'

type Described = { status: number; word: string }

// Derived from FAILURES, so a new code is documented without further changes.
const CODES = Object.keys(FAILURES) as FailureCode[]

const SHAPES: Record<Door, (words: string[], status: number) => TSchema> = {
  tools: (words, status) =>
    closed({
      success: Type.Literal(false),
      error: Type.String({ description: 'What was wrong, where, and how to repair it.' }),
      code: Type.Enum(words),
      details: details(),
      ...(status === 428 && CHALLENGE),
      ...(status === 429 && {
        limit: Type.Optional(Type.Integer({ description: 'The number of requests per minute.' })),
      }),
    }),
  rest: (words, status) =>
    closed({
      name: Type.Enum(words),
      message: Type.String({ description: 'What was wrong, where, and how to repair it.' }),
      statusCode: Type.Literal(status),
      details: details(),
    }),
  v1: () =>
    closed({
      success: Type.Literal(false),
      message: Type.String({ description: 'What was wrong, where, and how to repair it.' }),
    }),
  admin: () =>
    closed({ message: Type.String({ description: 'What was wrong, where, and how to repair it.' }) }),
}

/** The confirmation challenge (decisions, section 2, "Confirmation"). */
const CHALLENGE = {
  confirmationCode: Type.String({ pattern: '^[0-9]{5}$' }),
  expiresAt: Type.String({ format: 'date-time' }),
  summary: closed({
    action: Type.String(),
    target: Type.String(),
    recipients: Type.Optional(Type.Integer()),
    effects: Type.Array(Type.String()),
    warnings: Type.Array(Type.String()),
  }),
}

/** Returns the codes with which a door can refuse an operation; excludes those that cannot happen. */
export function codesOf(
  tool: Tool,
  { door, hasBody, isGated }: { door: Door; hasBody: boolean; isGated: boolean },
): FailureCode[] {
  const changes = tool.effect !== 'read'
  const applies: Partial<Record<FailureCode, boolean>> = {
    INVALID_PARAMETER: door !== 'tools',
    INVALID_IDEMPOTENCY_KEY: true,
    MALFORMED_BODY: hasBody,
    TOO_LARGE: hasBody,
    UNSUPPORTED_MEDIA_TYPE: hasBody,
    FORBIDDEN: tool.permission !== null,
    TOOL_NOT_FOUND: false,
    METHOD_NOT_ALLOWED: false,
    STALE_VERSION: changes,
    ALREADY_EXISTS: changes,
    INVALID_FROM_ADDRESS: changes,
    DOMAIN_NOT_VERIFIED: changes,
    IDEMPOTENCY_MISMATCH: changes,
    IDEMPOTENCY_IN_PROGRESS: changes,
    QUOTA_EXCEEDED: changes,
    CONFIRMATION_REQUIRED: isGated,
  }
  return CODES.filter((code) => applies[code] ?? true)
}

/** Returns the responses for these codes: one for each status, as a reference to a component of the door. */
export function refusals(door: Door, codes: readonly FailureCode[]): Record<string, { $ref: string }> {
  const statuses = [...new Set(codes.map((code) => describe(door, code).status))].sort((a, b) => a - b)
  return Object.fromEntries(
    statuses.map((status) => [status, { $ref: `#/components/responses/${nameOf(door, status)}` }]),
  )
}

/** Returns the responses of all doors as components. */
export function refusalComponents(): Record<string, unknown> {
  const doors = Object.keys(SHAPES) as Door[]
  return Object.fromEntries(doors.flatMap((door) => componentsOf(door)))
}

function componentsOf(door: Door): [string, unknown][] {
  const byStatus = Map.groupBy(CODES, (code) => describe(door, code).status)
  return [...byStatus].map(([status, codes]) => {
    const words = [...new Set(codes.map((code) => describe(door, code).word))]
    return [
      nameOf(door, status),
      {
        description: words.join(', '),
        headers: {
          'x-request-id': { $ref: '#/components/headers/RequestId' },
          ...(status === 429 && { 'retry-after': { $ref: '#/components/headers/RetryAfter' } }),
        },
        content: { 'application/json': { schema: SHAPES[door](words, status) } },
      },
    ]
  })
}

function describe(door: Door, code: FailureCode): Described {
  const { status, rest } = FAILURES[code]
  if (door === 'tools' || door === 'admin') return { status, word: toolCode(code) }
  return { status: rest[1], word: rest[0] }
}

function nameOf(door: Door, status: number): string {
  return `${door}-${status}`
}

function details(): TSchema {
  return Type.Optional(
    Type.Unknown({ description: 'For an invalid input: a list of all faults, each {path, message}.' }),
  )
}
