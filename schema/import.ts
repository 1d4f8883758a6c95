import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/** The statuses that an import may give to subscribers. */
export const IMPORTED_STATUSES = ['SUBSCRIBED', 'UNSUBSCRIBED'] as const
export type ImportedStatus = (typeof IMPORTED_STATUSES)[number]

/** The states of an import. */
const IMPORT_STATUSES = ['PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELED'] as const
export type ImportStatus = (typeof IMPORT_STATUSES)[number]

/** An uploaded list of subscribers and its progress. */
export const SubscriberImport = closed({
  id: Type.String(),
  status: oneOf(IMPORT_STATUSES),
  bytes: Type.Integer({ description: 'The size of the file in bytes.' }),
  sha256: Type.String({ description: 'The SHA-256 hash of the file, in hexadecimal.' }),
  mapping: Type.Record(Type.String(), nullable(Type.String()), {
    description: 'The target of each column. Null if the column is not used.',
  }),
  rows: Type.Integer({ description: 'The number of rows processed so far, including refused rows.' }),
  expectedRows: Type.Integer({
    description: 'The total number of rows: an estimate while the import runs, exact at the end.',
  }),
  imported: Type.Integer({ description: 'The number of subscribers that were created.' }),
  updated: Type.Integer({ description: 'The number of rows about subscribers who already existed.' }),
  failed: Type.Integer({
    description: 'The number of refused rows. GET /api/v2/imports/{id}/rejected returns them.',
  }),
  error: nullable(Type.String({ description: 'The reason for the status FAILED.' })),
  createdAt: Type.String(),
  startedAt: nullable(Type.String()),
  finishedAt: nullable(Type.String()),
  temporalUrl: nullable(Type.String()),
})
export type SubscriberImport = Static<typeof SubscriberImport>
