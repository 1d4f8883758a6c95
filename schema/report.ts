import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/** What can come back about an email. `AUTOMATIC` is what a machine says of itself, such as an absence. */
const REPORT_KINDS = ['BOUNCE', 'DELAY', 'COMPLAINT', 'REPLY', 'AUTOMATIC'] as const
export type ReportKind = (typeof REPORT_KINDS)[number]

/** So many bytes of a report are kept. */
export const REPORT_BYTES = 256_000

const uuid = Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' })
const line = Type.String({ maxLength: 1_000 })

/** A report as the inbound listener hands it to the API; it has read from a signed address which email it is about. */
export const InboundReport = closed({
  organizationId: uuid,
  messageId: uuid,
  kind: oneOf(REPORT_KINDS),
  status: nullable(Type.String({ pattern: String.raw`^[245]\.\d{1,3}\.\d{1,3}$` })),
  diagnostic: nullable(line),
  subject: nullable(line),
  from: nullable(line),
  fingerprint: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  raw: Type.String({ maxLength: Math.ceil(REPORT_BYTES / 3) * 4, description: 'Base64.' }),
})
export type InboundReport = Static<typeof InboundReport>
