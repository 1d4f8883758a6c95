import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/**
 * The two streams of a domain: mail to many recipients, and mail that one person expects. Each is judged and stopped
 * separately.
 */
const STREAMS = ['MARKETING', 'TRANSACTIONAL'] as const
export type Stream = (typeof STREAMS)[number]

/** The rate that was too high when sending stopped. */
export const STOP_REASONS = ['BOUNCES', 'COMPLAINTS'] as const
export type StopReason = (typeof STOP_REASONS)[number]

/** A stream of a domain that crossed a threshold. Nothing of it is sent until `resume_sending`. */
export const SendingStop = closed({
  stream: oneOf(STREAMS, {
    description: 'The kind of email: MARKETING goes to many recipients, TRANSACTIONAL is expected by one.',
  }),
  reason: oneOf(STOP_REASONS),
  message: Type.String(),
  stoppedAt: Type.String(),
})
export type SendingStop = Static<typeof SendingStop>

/** The severity of a finding. STOP is above the threshold at which sending stops. */
export const LEVELS = ['OK', 'WARN', 'STOP'] as const
export type Level = (typeof LEVELS)[number]

/** A finding about deliverability and how to repair it. */
export const HealthFinding = closed({
  level: oneOf(LEVELS),
  code: Type.String(),
  message: Type.String(),
  repair: Type.String(),
})
export type HealthFinding = Static<typeof HealthFinding>

const rate = nullable(
  Type.Number({ description: 'A fraction: 0.05 is 5 %. Null if there is nothing to divide by.' }),
)

/** Deliverability over the last `days` days. */
export const HealthWindow = closed({
  days: Type.Integer(),
  emails: Type.Integer({ description: 'The number of emails that mail servers accepted or refused.' }),
  delivered: Type.Integer({
    description: 'The number of emails that were accepted and have not bounced since.',
  }),
  bounced: Type.Integer(),
  complained: Type.Integer(),
  opened: Type.Integer({ description: 'The number of emails opened by people, not by machines.' }),
  deliveryRate: rate,
  bounceRate: rate,
  complaintRate: rate,
  openRate: rate,
})
export type HealthWindow = Static<typeof HealthWindow>

/** Deliverability at one mailbox provider. */
export const ProviderHealth = closed({
  provider: Type.String({
    description: 'The mailbox provider: Google, Microsoft, …, or the domain of its mail servers.',
  }),
  windows: Type.Array(HealthWindow),
  findings: Type.Array(HealthFinding),
})
export type ProviderHealth = Static<typeof ProviderHealth>

/** Deliverability of a domain, in total and by mailbox provider. */
export const DomainHealth = closed({
  id: Type.String(),
  domain: Type.String(),
  level: oneOf(LEVELS),
  stops: Type.Array(SendingStop),
  windows: Type.Array(HealthWindow, { description: 'The windows of 1, 7 and 30 days.' }),
  findings: Type.Array(HealthFinding, { description: 'The findings, the most severe first.' }),
  providers: Type.Array(ProviderHealth, { description: 'The providers, the one with the most email first.' }),
})
export type DomainHealth = Static<typeof DomainHealth>

const line = closed({ warn: Type.Number(), stop: Type.Number() })

/** Deliverability of an organization's domains, with the thresholds they are judged by. */
export const Health = closed({
  thresholds: closed({ bounceRate: line, complaintRate: line }),
  domains: Type.Array(DomainHealth),
})
export type Health = Static<typeof Health>
