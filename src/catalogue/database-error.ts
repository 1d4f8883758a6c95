/** The SQLSTATE of a database error, through the wrapper that the entity manager puts around it. */
export function databaseCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if ('code' in error && typeof error.code === 'string' && /^[0-9A-Z]{5}$/.test(error.code)) return error.code
  return 'cause' in error ? databaseCode(error.cause) : undefined
}

/** Whether the database cut a statement off because it ran too long (SQLSTATE 57014). */
export function isTimedOut(error: unknown): boolean {
  return databaseCode(error) === '57014'
}

/**
 * Whether the values of a statement are at fault: data, integrity, limits, and what our functions raise (SQLSTATE classes
 * 22, 23, 54, P0). Trouble of the database itself has other classes.
 */
export function isOwnFault(error: unknown): boolean {
  return /^(22|23|54|P0)/.test(databaseCode(error) ?? '')
}

/** Whether the database broke a transaction off for the sake of others (SQLSTATE 40001, 40P01): a repetition may succeed. */
export function isConcurrencyFault(error: unknown): boolean {
  return ['40001', '40P01'].includes(databaseCode(error) ?? '')
}

const CONNECTION_CODES = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', '53300'])

/** Whether the database could not be reached or went away: connection failures, SQLSTATE classes 08 and 57P. */
export function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (CONNECTION_CODES.has(code) || /^(08|57P)/.test(code)) return true
  if (/^(Connection terminated|timeout exceeded when trying to connect)/.test(error.message)) return true
  return error.cause !== undefined && isDatabaseAway(error.cause)
}
