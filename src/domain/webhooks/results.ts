import { sql } from 'kysely'

import { audit } from '../../catalogue/audit.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, execute, row } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { disabling } from './webhooks.ts'

/**
 * The result of an attempt. `wasAsked` is false when no request was sent; `status` is null without a response.
 * `waitSeconds` is the delay the endpoint asked for; `isOver` ends the retries.
 */
export type DeliveryResult = {
  eventId: string
  attempt: number
  wasAsked: boolean
  status: number | null
  body: string | null
  error: string | null
  waitSeconds: number
  isOver: boolean
}

/** How long a delivery is retried after its first attempt, regardless of how long it was queued before. */
export const HOURS = 24
const FIRST_RETRY_SECONDS = 5
const LONGEST_RETRY_SECONDS = 14_400
/** A webhook is disabled after this many days with only failures, and at least this many of them. */
const FAILING_DAYS = 5
const FAILING_ATTEMPTS = 20

/**
 * Records the results of attempts: delivered, retried with growing delays, or failed. A result is ignored when another
 * worker has recorded that attempt. Disables an endpoint that only fails or responds 410; returns whether it did.
 */
export async function reportResults(
  call: Call,
  webhookId: string,
  results: readonly DeliveryResult[],
): Promise<boolean> {
  const { em, organization } = call
  const column = <Key extends keyof DeliveryResult>(key: Key) => results.map((result) => result[key])
  await execute(
    em,
    // Locks the webhook first, in the same order as a replay.
    sql`with own as materialized (
        select from webhook where organization_id = ${organization.id} and id = ${webhookId} for no key update
      ), given as materialized (
        select *, error is null as succeeded, greatest(least(wait_seconds, ${LONGEST_RETRY_SECONDS}), least(${LONGEST_RETRY_SECONDS},
          ${FIRST_RETRY_SECONDS} * 3 ^ least(attempt - 1, 10)) * (0.8 + 0.4 * random())) as delay
        from own cross join unnest(${array(column('eventId'), 'uuid')}, ${array(column('attempt'), 'int')},
          ${array(column('status'), 'int')}, ${array(column('body'), 'text')}, ${array(column('error'), 'text')},
          ${array(column('waitSeconds'), 'int')}, ${array(column('isOver'), 'boolean')})
          as given (event_id, attempt, status, body, error, wait_seconds, is_over)
      ), noted as (
        update webhook_delivery delivery set attempts = given.attempt, last_attempt_at = now(),
          first_attempt_at = coalesce(delivery.first_attempt_at, now()), response_status = given.status,
          response_body = given.body, error = given.error, status = judged.status,
          next_attempt_at = case judged.status when 'PENDING' then now() + make_interval(secs => delay) end
        from given cross join lateral (select first_attempt_at from webhook_delivery before
            where before.organization_id = ${organization.id} and before.webhook_id = ${webhookId}
              and before.event_id = given.event_id) before
          cross join lateral (select case when succeeded then 'DELIVERED'
            when is_over
              or now() + make_interval(secs => delay) > before.first_attempt_at + make_interval(hours => ${HOURS})
              then 'FAILED' else 'PENDING' end as status) judged
        where delivery.organization_id = ${organization.id} and delivery.webhook_id = ${webhookId}
          and delivery.event_id = given.event_id and delivery.status = 'PENDING'
          and delivery.attempts = given.attempt - 1
        returning delivery.next_attempt_at
      )
      -- The turn may be over by now, and its successor's too.
      update webhook set due_at = least(due_at, first) from (select min(next_attempt_at) as first from noted) noted
      where organization_id = ${organization.id} and id = ${webhookId} and first is not null`,
  )
  return await noteHealth(call, webhookId, results)
}

async function noteHealth(
  call: Call,
  webhookId: string,
  results: readonly DeliveryResult[],
): Promise<boolean> {
  const { em, organization, services } = call
  const asked = results.filter(({ wasAsked }) => wasAsked)
  const failed = asked.filter(({ error }) => error !== null).length
  const own = sql`organization_id = ${organization.id} and id = ${webhookId}`
  if (failed < asked.length) {
    await execute(
      em,
      sql`update webhook set failures = 0, failing_since = null where ${own} and failing_since is not null`,
    )
    return false
  }
  if (failed === 0) return false
  const noted = await row<{ isOver: boolean }>(
    em,
    sql`update webhook set failures = failures + ${failed}, failing_since = coalesce(failing_since, now())
      where ${own} returning failures >= ${FAILING_ATTEMPTS}
        and failing_since <= now() - make_interval(days => ${FAILING_DAYS}) as "isOver"`,
  )
  const isGone = asked.some(({ status }) => status === 410)
  if (!noted?.isOver && !isGone) return false
  const reason = isGone ? 'GONE' : 'FAILING'
  const changed = await execute(em, sql`update webhook set ${disabling(reason)} where ${own} and enabled`)
  if (changed > 0) {
    await audit(call, 'webhook.disabled', encodeId('whk', webhookId), { reason })
    services.log.warn({ webhookId: encodeId('whk', webhookId), reason }, 'a webhook is disabled')
  }
  return true
}
