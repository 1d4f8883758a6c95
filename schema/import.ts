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
  bytes: Type.Integer({ description: 'The size of the file.' }),
  sha256: Type.String({ description: 'Of the file, in hexadecimal.' }),
  mapping: Type.Record(Type.String(), nullable(Type.String()), {
    description: 'Where each column goes; null where it is not used.',
  }),
  rows: Type.Integer({ description: 'Rows dealt with so far, refused ones among them.' }),
  expectedRows: Type.Integer({ description: 'An estimate while it runs, exact at the end.' }),
  imported: Type.Integer({ description: 'New people.' }),
  updated: Type.Integer({ description: 'Rows about people who were known.' }),
  failed: Type.Integer({ description: 'Refused rows; GET /api/v2/imports/{id}/rejected has them.' }),
  error: nullable(Type.String({ description: 'Why it FAILED.' })),
  createdAt: Type.String(),
  startedAt: nullable(Type.String()),
  finishedAt: nullable(Type.String()),
  temporalUrl: nullable(Type.String()),
})
export type SubscriberImport = Static<typeof SubscriberImport>
