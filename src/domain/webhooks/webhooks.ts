import { sql } from 'kysely'

import { type NewWebhook, type Webhook, WEBHOOK_LIMITS } from '../../../schema/webhook.ts'
import { audit } from '../../catalogue/audit.ts'
import { Failure, refuse } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, execute, row, rows } from '../../database.ts'
import { decodeId, encodeId, missing, newId } from '../../ids.ts'
import { readWalk, type Walk } from '../keyset.ts'
import { oneLine, timestamp, timestampOrNull } from '../text.ts'
import { makeSecret, sealSecret } from './secrets.ts'

/** The input of create_webhook. */
export type WebhookInput = { url: string; description: string; eventTypes: readonly string[] | null }

/** The input of update_webhook. */
export type WebhookPatch = {
  webhookId: string
  url?: string | undefined
  description?: string | undefined
  eventTypes?: readonly string[] | null | undefined
  enabled?: boolean | undefined
}

/** How long the previous secret also signs after a rotation. */
const OVERLAP_HOURS = 24

const LOCK = 7_305_119
const EVENT_TYPE = /^[A-Z][A-Z0-9_]{1,63}$/

/** Returns the condition that a `webhook` row is the organization's one with this id and not deleted. */
export function isWebhook({ organization }: Call, webhookId: string) {
  return sql<boolean>`organization_id = ${organization.id} and id = ${decodeId('whk', webhookId)}
    and deleted_at is null`
}

type WebhookRow = Omit<Webhook, 'replaying'> & { isReplaying: boolean }
const COLUMNS = sql`id, url, description, event_types as "eventTypes", enabled, disabled_at as "disabledAt",
  disabled_reason as "disabledReason", failing_since as "failingSince", replay_after is not null as "isReplaying",
  case when previous_until > now() then previous_until end as "previousSecretUntil",
  created_at as "createdAt", updated_at as "updatedAt"`

/** Lists webhooks by keyset, newest first. */
export async function browseWebhooks(
  { em, organization }: Call,
  asked: Walk,
): Promise<{ webhooks: Webhook[]; hasMore: boolean }> {
  const walk = readWalk('whk', asked)
  const found = await rows<WebhookRow>(
    em,
    sql`select ${COLUMNS} from webhook where organization_id = ${organization.id} and deleted_at is null
      ${walk.part(sql`id`)}`,
  )
  const { page, hasMore } = walk.page(found)
  return { webhooks: page.map(present), hasMore }
}

/** Returns a webhook by TypeID. Throws `NOT_FOUND` when there is none. */
export async function findWebhook(call: Call, webhookId: string): Promise<Webhook> {
  const found = await row<WebhookRow>(
    call.em,
    sql`select ${COLUMNS} from webhook where ${isWebhook(call, webhookId)}`,
  )
  return found ? present(found) : missing('whk', webhookId)
}

/** Creates a webhook for events from now on, and returns it with its secret. */
export async function createWebhook(
  call: Call,
  { url, description, eventTypes }: WebhookInput,
): Promise<NewWebhook> {
  const { em, organization, services } = call
  const id = newId()
  const secret = makeSecret()
  await execute(em, sql`select pg_advisory_xact_lock(${LOCK}, hashtext(${organization.id}))`)
  const made = await execute(
    em,
    sql`insert into webhook (id, organization_id, url, description, event_types, secret)
      select ${id}, ${organization.id}, ${readUrl(url)}, ${readDescription(description)}, ${readTypes(eventTypes)},
        ${sealSecret(services.config.encryptionKey, id, secret)}
      where (select count(*) from webhook where organization_id = ${organization.id} and deleted_at is null)
        < ${WEBHOOK_LIMITS.perOrganization}`,
  )
  if (made === 0) {
    throw new Failure(
      'WRONG_STATE',
      `The organization has ${WEBHOOK_LIMITS.perOrganization} webhooks, which is the limit; change or delete one of them instead.`,
    )
  }
  const webhookId = encodeId('whk', id)
  await audit(call, 'webhook.created', webhookId, {})
  return { ...(await findWebhook(call, webhookId)), secret }
}

/** Changes the given members. A webhook that is enabled again receives events from now on. */
export async function updateWebhook(call: Call, patch: WebhookPatch): Promise<Webhook> {
  const { webhookId, ...fields } = patch
  const { url, description, eventTypes, enabled } = fields
  const changes = [
    ...(url === undefined ? [] : [sql`url = ${readUrl(url)}`]),
    ...(description === undefined ? [] : [sql`description = ${readDescription(description)}`]),
    ...(eventTypes === undefined ? [] : [sql`event_types = ${readTypes(eventTypes)}`]),
    ...(enabled === true ? [ENABLING] : []),
    ...(enabled === false ? [disabling('REQUESTED')] : []),
  ]
  if (enabled === true) await closeEarlier(call, webhookId)
  if (changes.length > 0) {
    const changed = await execute(
      call.em,
      sql`update webhook set ${sql.join(changes)} where ${isWebhook(call, webhookId)}`,
    )
    if (changed > 0) await audit(call, 'webhook.updated', webhookId, { fields: Object.keys(fields) })
  }
  return await findWebhook(call, webhookId)
}

/** The error of deliveries that were pending when their webhook was disabled. */
export const CLOSED = 'The webhook was disabled before this could be delivered.'

/** Fails what a disabled webhook has pending: it may be enabled before a worker did so. */
async function closeEarlier(call: Call, webhookId: string): Promise<void> {
  await execute(
    call.em,
    sql`with own as materialized (
        select organization_id, id from webhook where ${isWebhook(call, webhookId)} and not enabled for update
      )
      update webhook_delivery delivery set status = 'FAILED', next_attempt_at = null, error = ${CLOSED} from own
      where delivery.organization_id = own.organization_id and delivery.webhook_id = own.id
        and delivery.next_attempt_at is not null`,
  )
}

const ENABLING = sql`enabled = true, disabled_at = null, disabled_reason = null, failures = 0, failing_since = null,
  next_turn_at = now()`

/** Assignments that disable a webhook and have a worker close its pending deliveries; an earlier reason stays. */
export function disabling(reason: NonNullable<Webhook['disabledReason']>) {
  return sql`enabled = false, due_at = now(), disabled_at = coalesce(disabled_at, now()), replay_after = null, replay_until = null,
    disabled_reason = coalesce(disabled_reason, ${reason})`
}

/** Deletes a webhook; a worker deletes its deliveries page by page. */
export async function deleteWebhook(call: Call, webhookId: string): Promise<void> {
  const changed = await execute(
    call.em,
    sql`update webhook set enabled = false, deleted_at = now(), next_turn_at = now()
      where ${isWebhook(call, webhookId)}`,
  )
  if (changed === 0) missing('whk', webhookId)
  await audit(call, 'webhook.deleted', webhookId, {})
}

/** Makes a new secret. The current one also signs for `OVERLAP_HOURS`; the one before it stops signing. */
export async function rotateSecret(call: Call, webhookId: string): Promise<NewWebhook> {
  const secret = makeSecret()
  const sealed = sealSecret(call.services.config.encryptionKey, decodeId('whk', webhookId), secret)
  const changed = await execute(
    call.em,
    sql`update webhook set previous_secret = secret, previous_until = now() + make_interval(hours => ${OVERLAP_HOURS}),
        secret = ${sealed}
      where ${isWebhook(call, webhookId)}`,
  )
  if (changed === 0) missing('whk', webhookId)
  await audit(call, 'webhook.secret-rotated', webhookId, {})
  return { ...(await findWebhook(call, webhookId)), secret }
}

function present({ isReplaying, ...found }: WebhookRow): Webhook {
  return {
    ...found,
    id: encodeId('whk', found.id),
    replaying: isReplaying,
    disabledAt: timestampOrNull(found.disabledAt),
    failingSince: timestampOrNull(found.failingSince),
    previousSecretUntil: timestampOrNull(found.previousSecretUntil),
    createdAt: timestamp(found.createdAt),
    updatedAt: timestamp(found.updatedAt),
  }
}

/** Checks an address. Its host is resolved at each attempt, because DNS may change. */
function readUrl(text: string): string {
  const line = oneLine(text, 'url', WEBHOOK_LIMITS.url)
  const url = URL.parse(line)
  if (!url || !/^https?:\/\//i.test(line) || url.hostname === '') {
    refuse('url', 'is not an http or https address; send one such as "https://shop.example/hooks".')
  }
  if (url.username !== '' || url.password !== '') {
    refuse('url', 'holds a user or password; the signature tells who calls, so leave it out.')
  }
  return line
}

function readDescription(text: string): string {
  return oneLine(text, 'description', WEBHOOK_LIMITS.description)
}

function readTypes(types: readonly string[] | null) {
  if (types === null) return null
  for (const [index, type] of types.entries()) {
    if (!EVENT_TYPE.test(type)) {
      refuse(
        `eventTypes[${index}]`,
        'is not an event type; send capital letters, digits and underscores, such as "EMAIL_BOUNCED".',
      )
    }
  }
  return array([...new Set(types)], 'text')
}
