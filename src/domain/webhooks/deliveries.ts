import { sql } from 'kysely'

import {
  type Webhook,
  WEBHOOK_LIMITS,
  WEBHOOK_PING,
  type WebhookDelivery,
  type WebhookDeliveryStatus,
} from '../../../schema/webhook.ts'
import { Failure, refuse } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { execute, row, rows } from '../../database.ts'
import { decodeId, encodeId, missing, newId } from '../../ids.ts'
import { readMoment } from '../audience/moment.ts'
import { readWalk, type Walk } from '../keyset.ts'
import { timestamp, timestampOrNull } from '../text.ts'
import { findWebhook, isWebhook } from './webhooks.ts'

type DeliveryRow = Omit<WebhookDelivery, 'id'> & { eventId: string }
const COLUMNS = sql`event_id as "eventId", type as "eventType", status, attempts,
  response_status as "responseStatus", response_body as "responseBody", error, queued_at as "queuedAt",
  last_attempt_at as "lastAttemptAt", next_attempt_at as "nextAttemptAt"`

/** Identifies a delivery. */
export type DeliveryChoice = { webhookId: string; deliveryId: string }

/** Lists deliveries of a webhook by keyset, newest event first. */
export async function browseDeliveries(
  call: Call,
  { webhookId, status, ...asked }: Walk & { webhookId: string; status?: WebhookDeliveryStatus | undefined },
): Promise<{ deliveries: WebhookDelivery[]; hasMore: boolean }> {
  const { id } = await findWebhook(call, webhookId)
  const walk = readWalk('evt', asked)
  const found = await rows<DeliveryRow>(
    call.em,
    sql`select ${COLUMNS} from webhook_delivery
      where organization_id = ${call.organization.id} and webhook_id = ${decodeId('whk', id)}
        ${status === undefined ? sql`` : sql`and status = ${status}`} ${walk.part(sql`event_id`)}`,
  )
  const { page, hasMore } = walk.page(found)
  return { deliveries: page.map(present), hasMore }
}

/** Returns one delivery. Throws `NOT_FOUND` when there is none. */
export async function findDelivery(call: Call, choice: DeliveryChoice): Promise<WebhookDelivery> {
  const { webhookId, deliveryId } = choice
  const { id } = await findWebhook(call, webhookId)
  const found = await row<DeliveryRow>(
    call.em,
    sql`select ${COLUMNS} from webhook_delivery where organization_id = ${call.organization.id}
      and webhook_id = ${decodeId('whk', id)} and event_id = ${decodeId('evt', deliveryId)}`,
  )
  return found ? present(found) : missing('evt', deliveryId)
}

/** Queues a test delivery, which belongs to no subscriber event and is tried once. */
export async function pingWebhook(call: Call, webhookId: string): Promise<WebhookDelivery> {
  const id = await requireEnabled(call, webhookId)
  const made = await row<DeliveryRow>(
    call.em,
    sql`insert into webhook_delivery (organization_id, webhook_id, event_id, type)
      values (${call.organization.id}, ${id}, ${newId()}, ${WEBHOOK_PING}) returning ${COLUMNS}`,
  )
  if (!made) throw new Error('a ping was not queued')
  return present(made)
}

/** Assignments that queue a delivery again; a pending one becomes due now and keeps its attempts. */
export const AGAIN = sql`status = 'PENDING', next_attempt_at = now(),
  queued_at = case when delivery.status = 'PENDING' then delivery.queued_at else now() end,
  attempts = case when delivery.status = 'PENDING' then delivery.attempts else 0 end,
  first_attempt_at = case when delivery.status = 'PENDING' then delivery.first_attempt_at end`

/** Queues one event again, whatever its status. */
export async function replayDelivery(call: Call, choice: DeliveryChoice): Promise<WebhookDelivery> {
  const id = await requireEnabled(call, choice.webhookId)
  await findDelivery(call, choice)
  await execute(
    call.em,
    sql`with queued as (
        update webhook_delivery delivery set ${AGAIN} where organization_id = ${call.organization.id}
          and webhook_id = ${id} and event_id = ${decodeId('evt', choice.deliveryId)}
      )
      update webhook set due_at = now() where organization_id = ${call.organization.id} and id = ${id}`,
  )
  return await findDelivery(call, choice)
}

/** Records from when on events are to be sent again; a worker queues them page by page (`replayPage`). */
export async function replaySince(
  call: Call,
  { webhookId, since }: { webhookId: string; since: string },
): Promise<Webhook> {
  const id = await requireEnabled(call, webhookId)
  const moment = readMoment(since, call.organization.timezone)
  if (!moment) refuse('since', 'must be an ISO 8601 date, such as "2027-01-31" or "2027-01-31T09:00:00Z".')
  const from = new Date(moment.start)
  if (from > call.now) refuse('since', 'is in the future; send the time from which events are missing.')
  if (from.getTime() < call.now.getTime() - WEBHOOK_LIMITS.days * 86_400_000) {
    refuse('since', `is more than ${WEBHOOK_LIMITS.days} days ago; send a later time.`)
  }
  await execute(
    call.em,
    sql`update webhook set replay_until = id_floor(now()),
        replay_after = least(coalesce(replay_after, id_floor(now())), id_floor(${from.toISOString()}::timestamptz))
      where organization_id = ${call.organization.id} and id = ${id}`,
  )
  return await findWebhook(call, webhookId)
}

/** Returns the uuid of an enabled webhook and locks its row. Throws `WRONG_STATE` when it is disabled. */
async function requireEnabled(call: Call, webhookId: string): Promise<string> {
  const found = await row<{ id: string; enabled: boolean }>(
    call.em,
    sql`select id, enabled from webhook where ${isWebhook(call, webhookId)} for update`,
  )
  if (!found) missing('whk', webhookId)
  if (!found.enabled) {
    throw new Failure(
      'WRONG_STATE',
      'This webhook is disabled and receives nothing; enable it first (PATCH with {"enabled": true}).',
    )
  }
  return found.id
}

function present({ eventId, ...found }: DeliveryRow): WebhookDelivery {
  return {
    ...found,
    id: encodeId('evt', eventId),
    queuedAt: timestamp(found.queuedAt),
    lastAttemptAt: timestampOrNull(found.lastAttemptAt),
    nextAttemptAt: timestampOrNull(found.nextAttemptAt),
  }
}
