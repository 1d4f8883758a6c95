import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/** The reasons for suppressing an address. */
export const SUPPRESSION_REASONS = ['HARD_BOUNCE', 'SOFT_BOUNCE', 'COMPLAINT', 'MANUAL', 'ERASED'] as const
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number]

/** The reasons that an imported list can give for all its addresses. */
export const IMPORTED_REASONS = ['HARD_BOUNCE', 'COMPLAINT', 'MANUAL'] as const
export type ImportedReason = (typeof IMPORTED_REASONS)[number]

/** An address to which no email is sent. */
export const Suppression = closed({
  email: nullable(
    Type.String({
      description: 'The address. Null if only a hash is kept, because the subscriber was erased.',
    }),
  ),
  reason: oneOf(SUPPRESSION_REASONS),
  source: Type.String({
    description: 'The origin of the suppression: delivery, report, api, import or erasure.',
  }),
  createdAt: Type.String(),
})
export type Suppression = Static<typeof Suppression>

/** The result of importing a list of suppressed addresses. */
export const SuppressedAddresses = closed({
  added: Type.Integer({ description: 'The number of addresses that were not suppressed before.' }),
  known: Type.Integer({
    description:
      'The number of addresses that were already suppressed for any reason, including repetitions in the list.',
  }),
  errors: Type.Array(closed({ index: Type.Integer(), email: Type.String(), error: Type.String() })),
})
export type SuppressedAddresses = Static<typeof SuppressedAddresses>
