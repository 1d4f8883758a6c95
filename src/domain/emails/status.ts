import type { LastEvent } from '../../../schema/subscriber.ts'
import { DELIVERY_STATUSES, type DeliveryStatus } from '../../../schema/values.ts'

/** The delivery status and the last event of each message status. */
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

/** The message statuses of emails that were not withheld. */
export type EmailStatus = keyof typeof STATUSES

/** The status of an email that was withheld; such emails are not listed among a subscriber's emails. */
type Withheld = 'SKIPPED'

/** When the recipient opened and clicked, if known. */
type Read = { openedAt: string | null; clickedAt: string | null }

/** Returns the delivery status of a message status. */
export function deliveryStatus(status: EmailStatus): DeliveryStatus {
  return STATUSES[status][0]
}

/** Returns the message statuses with a delivery status; without one, those of all delivery statuses. */
export function statusesOf(status: DeliveryStatus | undefined): string[] {
  const wanted: readonly DeliveryStatus[] = status === undefined ? DELIVERY_STATUSES : [status]
  return Object.entries(STATUSES).flatMap(([name, [delivery]]) => (wanted.includes(delivery) ? [name] : []))
}

/** Returns the last event of an email; opens and clicks take precedence over delivery. */
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
