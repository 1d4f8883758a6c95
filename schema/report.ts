import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/** The kinds of reports about an email. `AUTOMATIC` is an automatic answer, such as an out-of-office notice. */
const REPORT_KINDS = ['BOUNCE', 'DELAY', 'COMPLAINT', 'REPLY', 'AUTOMATIC'] as const
export type ReportKind = (typeof REPORT_KINDS)[number]

/** How many bytes of a report are kept. */
export const REPORT_BYTES = 256_000

const uuid = Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' })
const line = Type.String({ maxLength: 1_000 })

/**
 * A report as the inbound listener sends it to the API. The listener reads the ids of the organization and the email
 * from the signed address that the report was sent to.
 */
export const InboundReport = closed({
  organizationId: uuid,
  messageId: uuid,
  kind: oneOf(REPORT_KINDS),
  status: nullable(Type.String({ pattern: String.raw`^[245]\.\d{1,3}\.\d{1,3}$` })),
  diagnostic: nullable(line),
  subject: nullable(line),
  from: nullable(line),
  fingerprint: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  raw: Type.String({
    maxLength: Math.ceil(REPORT_BYTES / 3) * 4,
    description: 'The report, encoded in Base64.',
  }),
})
export type InboundReport = Static<typeof InboundReport>
