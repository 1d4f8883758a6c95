/** Where an uploaded list stands. */
export const IMPORT_STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELED'] as const
export type ImportStatus = (typeof IMPORT_STATUSES)[number]
