import { pino } from 'pino'

import { databaseCode } from './catalogue/database-error.ts'

/**
 * Creates a logger that writes structured logs to standard output: ids and route patterns, never bodies, addresses or
 * tokens.
 */
export function createLogger(name: string, level: string) {
  return pino({
    name,
    level,
    timestamp: pino.stdTimeFunctions.isoTime,
    base: { pid: process.pid },
    serializers: { err: describeFault },
  })
}

/**
 * Returns the parts of an unexpected error that may be logged or enter a Temporal history. Database messages quote
 * values, so only the SQLSTATE and the stack are kept of those. Temporal's client says what failed, and the gRPC cause
 * says why, so both are kept.
 */
export function describeFault(error: unknown): {
  name: string
  message: string
  code?: string
  stack?: string
} {
  if (!(error instanceof Error)) return { name: 'unknown', message: typeof error }
  const code = databaseCode(error)
  const stack = error.stack
    ?.split('\n')
    .filter((line) => line.startsWith('    at '))
    .join('\n')
  return {
    name: error.name,
    message: code ? `database error ${code}` : `${error.message}${grpcReason(error.cause)}`.slice(0, 500),
    ...(code && { code }),
    ...(stack && { stack }),
  }
}

function grpcReason(cause: unknown): string {
  if (!(cause instanceof Error && 'metadata' in cause && 'details' in cause)) return ''
  return typeof cause.details === 'string' ? `: ${cause.details}` : ''
}
