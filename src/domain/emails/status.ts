import type { LastEvent } from '../../../schema/subscriber.ts'
import { DELIVERY_STATUSES, type DeliveryStatus } from '../../../schema/values.ts'

/** What each status of a message is for readers of an email's delivery. */
const STATUSES = {
  QUEUED: ['PENDING', 'queued'],
  SUBMITTING: ['PENDING', 'queued'],
  DELAYED: ['PENDING', 'delivery_delayed'],
  SENT: ['SENT', 'sent'],
  DELIVERED: ['DELIVERED', 'delivered'],
  BOUNCED: ['BOUNCED', 'bounced'],
  FAILED: ['BOUNCED', 'failed'],
  COMPLAINED: ['COMPLAINED', 'complained'],
} as const satisfies Record<string, readonly [DeliveryStatus, LastEvent]>

/** The statuses of emails that somebody gets, got or should have got. */
export type EmailStatus = keyof typeof STATUSES

/** The status of an email that was withheld; it is listed nowhere as an email to anybody. */
type Withheld = 'SKIPPED'

/** Readers of an email, as far as they are known. */
type Read = { openedAt: string | null; clickedAt: string | null }

/** How far the delivery of an email is. */
export function deliveryStatus(status: EmailStatus): DeliveryStatus {
  return STATUSES[status][0]
}

/** The statuses of messages that come to these of delivery; all without any. */
export function statusesOf(status: DeliveryStatus | undefined): string[] {
  const wanted: readonly DeliveryStatus[] = status === undefined ? DELIVERY_STATUSES : [status]
  return Object.entries(STATUSES).flatMap(([name, [delivery]]) => (wanted.includes(delivery) ? [name] : []))
}

/** What last happened to an email; a reader counts for more than the server that took it. */
export function lastEvent({
  status,
  openedAt,
  clickedAt,
}: Read & { status: EmailStatus | Withheld }): LastEvent {
  if (status === 'SKIPPED') return 'suppressed'
  const [delivery, event] = STATUSES[status]
  if (delivery !== 'SENT' && delivery !== 'DELIVERED') return event
  if (clickedAt !== null) return 'clicked'
  return openedAt !== null ? 'opened' : event
}
