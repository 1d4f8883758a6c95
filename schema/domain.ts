import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'
import { SendingStop } from './deliverability.ts'
import { DOMAIN_STATUSES } from './values.ts'

/** The result of the last check of a DNS record. */
const RECORD_STATUSES = ['PENDING', 'VERIFIED', 'MISMATCH', 'MISSING'] as const

/** The purpose of a DNS record. DMARC is recommended; the others are required. */
const RECORD_PURPOSES = ['OWNERSHIP', 'DKIM', 'MAIL_FROM_MX', 'MAIL_FROM_SPF', 'DMARC'] as const

/** One DNS record of a sending domain (decisions, section 8). `repair` says what to do while it is not VERIFIED. */
export const DomainRecord = closed({
  name: Type.String(),
  type: oneOf(['TXT', 'MX']),
  value: Type.String(),
  priority: Type.Optional(Type.Integer()),
  purpose: oneOf(RECORD_PURPOSES, { description: 'DMARC is recommended; the others are required.' }),
  status: oneOf(RECORD_STATUSES),
  found: Type.Optional(Type.Array(Type.String(), { description: 'The values found at the last check.' })),
  repair: Type.Optional(Type.String({ description: 'What to do so that the record becomes VERIFIED.' })),
  checkedAt: nullable(Type.String({ description: 'The time of the last check.' })),
})
export type DomainRecord = Static<typeof DomainRecord>

/** A sending domain on the wire (contract, "Domain"). */
export const Domain = closed({
  id: Type.String(),
  domain: Type.String(),
  status: oneOf(DOMAIN_STATUSES),
  region: Type.String({ description: 'The sending region of the installation.' }),
  providerRecords: Type.Array(DomainRecord),
  fallbackPriority: nullable(
    Type.Integer({
      description:
        'The position among the domains that replace others; the lowest number is used first. Null means that it never does.',
    }),
  ),
  verificationRequestedAt: nullable(
    Type.String({ description: 'The time at which a check was last requested.' }),
  ),
  createdAt: Type.String(),
  stops: Type.Array(SendingStop, {
    description: 'The kinds of email that are not sent from this domain until `resume_sending`.',
  }),
})
export type Domain = Static<typeof Domain>
