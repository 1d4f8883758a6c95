/** Returns the SQLSTATE of a database error, also when the entity manager has wrapped it; undefined if it has none. */
export function databaseCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if ('code' in error && typeof error.code === 'string' && /^[0-9A-Z]{5}$/.test(error.code)) return error.code
  return 'cause' in error ? databaseCode(error.cause) : undefined
}

/** Returns whether the database cancelled a statement because it ran too long (SQLSTATE 57014). */
export function isTimedOut(error: unknown): boolean {
  return databaseCode(error) === '57014'
}

/**
 * Returns whether the statement's own values caused the error: data, constraints, limits, or exceptions raised by our
 * functions (SQLSTATE classes 22, 23, 54, P0). Failures of the database itself have other classes.
 */
export function isOwnFault(error: unknown): boolean {
  return /^(22|23|54|P0)/.test(databaseCode(error) ?? '')
}

/**
 * Returns whether the error is a serialization failure or a deadlock (SQLSTATE 40001, 40P01), so that a retry may
 * succeed.
 */
export function isConcurrencyFault(error: unknown): boolean {
  return ['40001', '40P01'].includes(databaseCode(error) ?? '')
}

const CONNECTION_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  '53300',
])

/**
 * Returns whether the database could not be reached or the connection was lost: errors of sockets and name resolution,
 * SQLSTATE 53300, classes 08 and 57P.
 */
export function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (CONNECTION_CODES.has(code) || /^(08|57P)/.test(code)) return true
  if (/^(Connection terminated|timeout exceeded when trying to connect)/.test(error.message)) return true
  return error.cause !== undefined && isDatabaseAway(error.cause)
}
