import { type RawBuilder, sql } from 'kysely'

import {
  type EventCause,
  MAXIMUM_AMOUNT,
  type PaymentEventType,
  SERVICE_EVENT_TYPES,
  type SubscriberEvent,
} from '../../../schema/event.ts'
import type { SubscriberEmail } from '../../../schema/subscriber.ts'
import type { DeliveryStatus, SubscriberEventType } from '../../../schema/values.ts'
import { refuse } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, execute, rows } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { SUBJECT } from '../emails/records.ts'
import { deliveryStatus, type EmailStatus, lastEvent, statusesOf } from '../emails/status.ts'
import { recordEvents } from '../events.ts'
import { readWalk, type Walk } from '../keyset.ts'
import { timestamp, timestampOrNull } from '../text.ts'
import { findSubscriber, type SubscriberChoice } from './records.ts'

/** The limit of an event's metadata, in bytes of JSON. */
export const METADATA_BYTES = 16_384

const CURRENCY_NAMES = new Intl.DisplayNames('en', { type: 'currency', fallback: 'none' })

/**
 * Returns whether a text is an ISO 4217 code: one with a name, because `Intl.supportedValuesOf` lacks current ones, such
 * as VED. Currencies of the past have a name as well.
 */
export function isCurrency(code: string): boolean {
  return /^[A-Z]{3}$/.test(code) && CURRENCY_NAMES.of(code) !== undefined
}

/** A payment, refund or custom event that a caller records; the amount is in major units. */
export type ToldEvent = SubscriberChoice & {
  eventType: string
  amount?: number | undefined
  currency: string
  metadata?: Record<string, unknown> | undefined
}

/** Records an event; a payment or refund changes the subscriber's revenue in the same transaction. */
export async function recordTold(call: Call, input: ToldEvent): Promise<SubscriberEvent> {
  const { eventType, currency, metadata = {} } = input
  if (SERVICE_EVENT_TYPES.has(eventType)) {
    refuse('eventType', `is ${eventType}, which only the service itself records; choose another name.`)
  }
  if (!isCurrency(currency)) {
    refuse('currency', 'is not an ISO 4217 code; send three capital letters, such as "USD".')
  }
  if (Buffer.byteLength(JSON.stringify(metadata)) > METADATA_BYTES) {
    refuse('metadata', `is larger than ${METADATA_BYTES} bytes of JSON; keep what you need to know later.`)
  }
  const amount = input.amount === undefined ? undefined : readAmount(input.amount)
  const { id: subscriberId } = await findSubscriber(call, input, { lock: true })
  // Revenue changes first, so that triggers which read it include this payment.
  const direction = REVENUE[eventType]
  if (amount && direction) await moveRevenue(call, subscriberId, direction * amount)
  const [recorded] = await recordEvents(call, [
    { subscriberId, type: eventType, data: toldFacts({ amount, currency, metadata }) },
  ])
  if (!recorded) throw new Error('an event was not recorded')
  return presentEvent({ ...recorded, cause: call.actor, createdAt: call.now.toISOString() })
}

/** Returns the data of a payment, refund or custom event. */
export function toldFacts({
  amount,
  currency,
  metadata = {},
}: Pick<ToldEvent, 'amount' | 'currency' | 'metadata'>): Record<string, unknown> {
  return { ...(amount !== undefined && { amount }), currency, metadata }
}

/** Returns why a number cannot be the amount of an event, or null if it can. */
export function amountFault(amount: number): string | null {
  if (amount < 0 || amount > MAXIMUM_AMOUNT) {
    return `must be from 0 to ${MAXIMUM_AMOUNT} in major units; a refund is its own event type`
  }
  const cents = amount * 100
  return Math.abs(cents - Math.round(cents)) > 1e-4 ? 'has more than two decimals; round it' : null
}

function readAmount(amount: number): number {
  const wrong = amountFault(amount)
  return wrong === null ? amount : refuse('amount', `${wrong}.`)
}

/** The sign with which an event changes revenue; custom events do not change it. */
export const REVENUE: Readonly<Record<string, 1 | -1>> = {
  SUBSCRIBER_PAYMENT: 1,
  SUBSCRIBER_REFUND: -1,
} satisfies Record<PaymentEventType, 1 | -1>

async function moveRevenue({ em, organization }: Call, subscriberId: string, amount: number): Promise<void> {
  await execute(
    em,
    sql`insert into subscriber_stat (organization_id, subscriber_id, revenue)
      values (${organization.id}, ${subscriberId}, ${amount}::numeric)
      on conflict (organization_id, subscriber_id) do update set revenue = subscriber_stat.revenue + excluded.revenue`,
  )
}

type EventRow = {
  id: string
  subscriberId: string
  type: string
  data: Record<string, unknown>
  cause: EventCause
  createdAt: string
}

const EVENT_COLUMNS = sql`id, subscriber_id as "subscriberId", type, data, cause, created_at as "createdAt"`

/** Lists the events of a subscriber, newest first. */
export async function listEvents(
  call: Call,
  choice: SubscriberChoice,
  { eventType, limit }: { eventType?: SubscriberEventType | undefined; limit: number },
): Promise<{ events: SubscriberEvent[]; hasMore: boolean }> {
  const { id } = await findSubscriber(call, choice)
  const found = await rows<EventRow>(
    call.em,
    sql`select ${EVENT_COLUMNS} from subscriber_event
      where organization_id = ${call.organization.id} and subscriber_id = ${id}
        ${eventType === undefined ? sql`` : sql`and type = ${eventType}`}
      order by id desc limit ${limit + 1}`,
  )
  return { events: found.slice(0, limit).map(presentEvent), hasMore: found.length > limit }
}

type Browsing = Walk & { eventType?: string | undefined }

/** Lists the events of all subscribers by keyset, in both directions. */
export async function browseEvents(
  call: Call,
  asked: Browsing,
): Promise<{ events: SubscriberEvent[]; hasMore: boolean }> {
  return await browse(call, asked, sql``)
}

/** Does the same for one subscriber. */
export async function browseSubscriberEvents(
  call: Call,
  { eventType, limit, after, before, ...choice }: SubscriberChoice & Browsing,
): Promise<{ events: SubscriberEvent[]; hasMore: boolean }> {
  const { id } = await findSubscriber(call, choice)
  return await browse(call, { eventType, limit, after, before }, sql`and subscriber_id = ${id}`)
}

async function browse(
  { em, organization }: Call,
  { eventType, limit, after, before }: Browsing,
  whose: RawBuilder<unknown>,
): Promise<{ events: SubscriberEvent[]; hasMore: boolean }> {
  const walk = readWalk('evt', { limit, after, before })
  const found = await rows<EventRow>(
    em,
    sql`select ${EVENT_COLUMNS} from subscriber_event
      where organization_id = ${organization.id} ${whose}
        ${eventType === undefined ? sql`` : sql`and type = ${eventType}`} ${walk.part(sql`id`)}`,
  )
  const { page, hasMore } = walk.page(found)
  return { events: page.map(presentEvent), hasMore }
}

/** Returns all events of a subscriber (uuid), oldest first. */
export async function readAllEvents({ em, organization }: Call, id: string): Promise<SubscriberEvent[]> {
  const found = await rows<EventRow>(
    em,
    sql`select ${EVENT_COLUMNS} from subscriber_event
      where organization_id = ${organization.id} and subscriber_id = ${id} order by id`,
  )
  return found.map(presentEvent)
}

/** Returns an event in its API form. */
export function presentEvent({ id, subscriberId, type, data, cause, createdAt }: EventRow): SubscriberEvent {
  return {
    id: encodeId('evt', id),
    subscriberId: encodeId('sub', subscriberId),
    type,
    data,
    cause: { kind: cause.kind, id: cause.id, name: cause.name },
    createdAt: timestamp(createdAt),
  }
}

type EmailRow = Omit<SubscriberEmail, 'status' | 'lastEvent'> & { status: EmailStatus }

/** Lists the emails of a subscriber with their outcomes, newest first. */
export async function listEmails(
  call: Call,
  choice: SubscriberChoice,
  { status, limit }: { status?: DeliveryStatus | undefined; limit: number },
): Promise<{ emails: SubscriberEmail[]; hasMore: boolean }> {
  const { id } = await findSubscriber(call, choice)
  const found = await rows<EmailRow>(
    call.em,
    sql`select m.id, m.campaign_id as "campaignId", campaign.name as "campaignName", ${SUBJECT} as subject,
        m.from_email as "from", m.stood_in_for as "stoodInFor", m.status, m.reason,
        m.bounce_category as "bounceCategory", m.created_at as "createdAt", m.sent_at as "sentAt",
        m.delivered_at as "deliveredAt", m.opened_at as "openedAt", m.clicked_at as "clickedAt"
      from message m left join campaign
        on campaign.organization_id = m.organization_id and campaign.id = m.campaign_id
      where m.organization_id = ${call.organization.id} and m.subscriber_id = ${id}
        and m.status = any(${array(statusesOf(status), 'text')})
      order by m.id desc limit ${limit + 1}`,
  )
  return { emails: found.slice(0, limit).map(presentEmail), hasMore: found.length > limit }
}

function presentEmail(found: EmailRow): SubscriberEmail {
  return {
    ...found,
    id: encodeId('eml', found.id),
    campaignId: found.campaignId && encodeId('cmp', found.campaignId),
    status: deliveryStatus(found.status),
    lastEvent: lastEvent(found),
    createdAt: timestamp(found.createdAt),
    sentAt: timestampOrNull(found.sentAt),
    deliveredAt: timestampOrNull(found.deliveredAt),
    openedAt: timestampOrNull(found.openedAt),
    clickedAt: timestampOrNull(found.clickedAt),
  }
}
