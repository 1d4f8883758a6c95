/** The SQLSTATE of a database error, through the wrapper that the entity manager puts around it. */
export function databaseCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if ('code' in error && typeof error.code === 'string' && /^[0-9A-Z]{5}$/.test(error.code)) return error.code
  return 'cause' in error ? databaseCode(error.cause) : undefined
}
