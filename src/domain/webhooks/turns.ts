import { sql } from 'kysely'

import type { EventCause } from '../../../schema/event.ts'
import { WEBHOOK_PING } from '../../../schema/webhook.ts'
import { type EntityManager, execute, row, rows } from '../../database.ts'
import { encodeId, NIL_ID } from '../../ids.ts'
import { presentEvent } from '../subscribers/history.ts'
import { openSecret } from './secrets.ts'

/** A worker's lease on an endpoint. Until it ends, no other worker sends to the endpoint. Ids are uuids. */
export type Turn = {
  organizationId: string
  webhookId: string
  turn: number
  enabled: boolean
  isDeleted: boolean
  isReplaying: boolean
  /** Failed attempts since the last success. */
  failures: number
}

/**
 * An event to send. Its body is the same at every attempt; null when the event no longer exists. `isOnce` means that
 * there is no retry.
 */
export type DueDelivery = { eventId: string; attempt: number; body: string | null; isOnce: boolean }

/** Longer than a turn including its last request. */
const LEASE_SECONDS = 60
/** The longest pause between turns at a failing endpoint; the pause is one second per failure. */
const LONGEST_PAUSE_SECONDS = 60

/** The position of a round over the endpoints; null at its beginning. */
export type RoundPlace = { organizationId: string; webhookId: string } | null

/** How many endpoints with untried deliveries one call looks at; some of them may have to wait for their turn. */
const LOOKED_AT = 256

/** The condition of the index webhook_delivery_fresh: deliveries not tried since they were queued. */
const IS_FRESH = sql`attempts = 0 and next_attempt_at is not null`

/**
 * Leases endpoints of all organizations with due deliveries, least recently served first. Candidates are up to
 * `LOOKED_AT` endpoints with untried deliveries after `place`, and all endpoints that are due, deleted, replaying or
 * leased. Endpoints without anything due cost nothing. Returns the place of the next call.
 */
export async function claimTurns(
  em: EntityManager,
  most: number,
  place: RoundPlace,
): Promise<{ turns: Turn[]; place: RoundPlace }> {
  const found = await rows<{ turn: Turn | null; place: RoundPlace }>(
    em,
    sql`with recursive fresh as (
        (select organization_id, webhook_id, 1 as number from webhook_delivery where ${IS_FRESH}
          and (organization_id, webhook_id) > (${place?.organizationId ?? NIL_ID}, ${place?.webhookId ?? NIL_ID})
          order by organization_id, webhook_id limit 1)
        union all
        select following.*, fresh.number + 1 from fresh cross join lateral (
          select each.organization_id, each.webhook_id from webhook_delivery each where ${IS_FRESH}
            and (each.organization_id, each.webhook_id) > (fresh.organization_id, fresh.webhook_id)
          order by each.organization_id, each.webhook_id limit 1) following
        where fresh.number < ${LOOKED_AT}
      ), asked as materialized (
        select organization_id, webhook_id as id from fresh
        union select organization_id, id from webhook where due_at <= now()
        union select organization_id, id from webhook
          where deleted_at is not null or replay_after is not null or lease_until is not null
      ), due as (
        select hook.organization_id, hook.id from asked join webhook hook using (organization_id, id)
        where (lease_until is null or lease_until < now()) and next_turn_at <= now()
        order by next_turn_at limit ${most} for update of hook skip locked
      ), claimed as (
        update webhook set turn = webhook.turn + 1, lease_until = now() + make_interval(secs => ${LEASE_SECONDS}),
          due_at = null
        from due where webhook.organization_id = due.organization_id and webhook.id = due.id
        returning webhook.organization_id as "organizationId", webhook.id as "webhookId", turn, enabled, failures,
          deleted_at is not null as "isDeleted", replay_after is not null as "isReplaying"
      )
      select to_json(claimed) as turn, (select json_build_object('organizationId', organization_id,
          'webhookId', webhook_id) from fresh where number = ${LOOKED_AT}) as place
      from (select) once left join claimed on true`,
  )
  return { turns: found.flatMap(({ turn }) => turn ?? []), place: found[0]?.place ?? null }
}

/**
 * Ends a lease. A failing endpoint pauses; a disabled one with pending deliveries is due at once, to close them. A
 * `due_at` that was set during the turn stays if it is earlier, because its delivery may not be visible here yet.
 */
export async function endTurn(em: EntityManager, { organizationId, webhookId, turn }: Turn): Promise<void> {
  const first = sql`(select next_attempt_at from webhook_delivery where organization_id = ${organizationId}
    and webhook_id = ${webhookId} and next_attempt_at is not null order by next_attempt_at limit 1)`
  await execute(
    em,
    sql`update webhook set lease_until = null,
        due_at = case when enabled then least(due_at, ${first}) when ${first} is not null then now() end,
        next_turn_at = now() + make_interval(secs => case
        when deleted_at is not null and not exists (select from webhook_delivery delivery
          where delivery.organization_id = ${organizationId} and delivery.webhook_id = ${webhookId})
          then ${LONGEST_PAUSE_SECONDS}
        when enabled then least(failures, ${LONGEST_PAUSE_SECONDS}) else 0 end)
      where organization_id = ${organizationId} and id = ${webhookId} and turn = ${turn}`,
  )
}

/** The address of an endpoint, and the secrets that sign requests to it, the current one first. */
export type Endpoint = { url: string; secrets: string[] }

/** Returns the current endpoint; null when the webhook was disabled, or the lease expired and another turn began. */
export async function readEndpoint(
  em: EntityManager,
  encryptionKey: Buffer,
  { organizationId, webhookId, turn }: Turn,
): Promise<Endpoint | null> {
  const found = await row<{ url: string; sealed: Buffer[] }>(
    em,
    sql`select url, array_remove(array[secret, case when previous_until > now() then previous_secret end], null) as sealed
      from webhook where organization_id = ${organizationId} and id = ${webhookId} and turn = ${turn} and enabled`,
  )
  if (!found) return null
  return { url: found.url, secrets: found.sealed.map((each) => openSecret(encryptionKey, webhookId, each)) }
}

type DueRow = {
  eventId: string
  type: string
  attempts: number
  queuedAt: string
  subscriberId: string | null
  email: string | null
  data: Record<string, unknown>
  cause: EventCause
  createdAt: string
}

/** Returns due deliveries of the endpoint, longest waiting first. */
export async function readDue(
  em: EntityManager,
  { organizationId, webhookId }: Turn,
  most: number,
): Promise<DueDelivery[]> {
  const found = await rows<DueRow>(
    em,
    sql`select due.event_id as "eventId", due.type, attempts, queued_at as "queuedAt",
        subscriber_id as "subscriberId", email, data, cause, event.created_at as "createdAt"
      from (select * from webhook_delivery where organization_id = ${organizationId} and webhook_id = ${webhookId}
        and next_attempt_at <= now() order by next_attempt_at limit ${most}) due
      left join lateral (select * from subscriber_event event where event.organization_id = ${organizationId}
        and event.id = due.event_id offset 0) event on true
      left join subscriber on subscriber.organization_id = ${organizationId} and subscriber.id = event.subscriber_id
      order by next_attempt_at`,
  )
  return found.map((due) => ({
    eventId: due.eventId,
    attempt: due.attempts + 1,
    body: bodyOf(organizationId, webhookId, due),
    isOnce: due.type === WEBHOOK_PING,
  }))
}

/** Returns the payload in the form of Standard Webhooks: type, time and data; null when the event is gone. */
function bodyOf(organizationId: string, webhookId: string, due: DueRow): string | null {
  const { eventId, type, subscriberId, queuedAt } = due
  const own = { organizationId: encodeId('org', organizationId), webhookId: encodeId('whk', webhookId) }
  if (type === WEBHOOK_PING) {
    const timestamp = new Date(queuedAt).toISOString()
    return JSON.stringify({ type, timestamp, data: { id: encodeId('evt', eventId), ...own } })
  }
  if (subscriberId === null) return null
  const event = presentEvent({ ...due, id: eventId, subscriberId })
  return JSON.stringify({ type, timestamp: event.createdAt, data: { ...event, email: due.email, ...own } })
}
