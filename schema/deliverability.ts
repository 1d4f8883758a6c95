import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/** What a domain sends: mail to many, and mail that one person waits for. Each is judged, and stops, by itself. */
const STREAMS = ['MARKETING', 'TRANSACTIONAL'] as const
export type Stream = (typeof STREAMS)[number]

/** What a domain has too many of. */
export const STOP_REASONS = ['BOUNCES', 'COMPLAINTS'] as const
export type StopReason = (typeof STOP_REASONS)[number]

/** That a domain has crossed the line and sends no more of a stream until resume_sending. */
export const SendingStop = closed({
  stream: oneOf(STREAMS),
  reason: oneOf(STOP_REASONS),
  message: Type.String(),
  stoppedAt: Type.String(),
})
export type SendingStop = Static<typeof SendingStop>

/** How bad a finding is: STOP is over the line at which sending stops. */
export const LEVELS = ['OK', 'WARN', 'STOP'] as const
export type Level = (typeof LEVELS)[number]

/** Something about how email fares, and what to do about it. */
export const HealthFinding = closed({
  level: oneOf(LEVELS),
  code: Type.String(),
  message: Type.String(),
  repair: Type.String(),
})
export type HealthFinding = Static<typeof HealthFinding>

const rate = nullable(Type.Number({ description: '0.05 is 5 %; null when there is nothing to divide by.' }))

/** How the email of the last days fared. */
export const HealthWindow = closed({
  days: Type.Integer(),
  emails: Type.Integer({ description: 'What servers took or refused.' }),
  delivered: Type.Integer({ description: 'Taken, and not returned since.' }),
  bounced: Type.Integer(),
  complained: Type.Integer(),
  opened: Type.Integer({ description: 'By people.' }),
  deliveryRate: rate,
  bounceRate: rate,
  complaintRate: rate,
  openRate: rate,
})
export type HealthWindow = Static<typeof HealthWindow>

/** How the email to one mailbox provider fares. */
export const ProviderHealth = closed({
  provider: Type.String({ description: 'Google, Microsoft, …, or the domain of their mail servers.' }),
  windows: Type.Array(HealthWindow),
  findings: Type.Array(HealthFinding),
})
export type ProviderHealth = Static<typeof ProviderHealth>

/** How the email of a domain fares, and at whom. */
export const DomainHealth = closed({
  id: Type.String(),
  domain: Type.String(),
  level: oneOf(LEVELS),
  stops: Type.Array(SendingStop),
  windows: Type.Array(HealthWindow, { description: 'Of 1, 7 and 30 days.' }),
  findings: Type.Array(HealthFinding, { description: 'The worst first.' }),
  providers: Type.Array(ProviderHealth, { description: 'The largest first.' }),
})
export type DomainHealth = Static<typeof DomainHealth>

const line = closed({ warn: Type.Number(), stop: Type.Number() })

/** How the email of an organization fares, against what. */
export const Health = closed({
  thresholds: closed({ bounceRate: line, complaintRate: line }),
  domains: Type.Array(DomainHealth),
})
export type Health = Static<typeof Health>
