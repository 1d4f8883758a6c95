import { sql } from 'kysely'

import type { ContentType } from '../../../schema/values.ts'
import type { Call } from '../../catalogue/tool.ts'
import { execute, json, rows } from '../../database.ts'
import { newId } from '../../ids.ts'

/** The kind of source of an email; it decides the lane and the weight within it. */
export type MessageClass = 'TRANSACTIONAL' | 'AUTOMATION' | 'CAMPAIGN' | 'TEST'

/** The content of an email that belongs to no automation version; deleted after its retention. */
export type MessageSource = {
  subject: string
  /** Text, or a document that includes its snippets. */
  content: unknown
  contentType: ContentType | 'HTML'
  preview: string | null
  /** The text part of an email received by SMTP; otherwise the text part is made from the content. */
  text?: string
  /** The email asks to confirm a subscription, so {{confirmUrl}} gets a link. */
  confirms?: true
}

/** An email to be sent. Ids are uuids; `subscriberId` may be null only for tests. */
export type NewMessage = {
  class: MessageClass
  /** Marketing email goes only to SUBSCRIBED subscribers and has one-click unsubscribe headers. */
  marketing: boolean
  /** Makes the message unique: a second message with this key returns the id of the first. */
  key?: string
  subscriberId: string | null
  recipient: string
  fromName: string | null
  fromEmail: string
  /** The sender's own address when a fallback domain is used instead of it. */
  stoodInFor?: string | null
  replyTo?: string | null
  /** Whether opens and clicks are tracked; true by default. */
  tracking?: boolean
  /** Absent for automation email, whose content is in its version. */
  source?: MessageSource
  campaignId?: string | null
  automationId?: string | null
  versionId?: string | null
  runId?: string | null
  stepId?: string | null
  visit?: number | null
}

/** The id of a message, and whether this call created it. */
export type Enqueued = { id: string; created: boolean }

type Stored = { position: number; id: string }

/** Returns the lane of a class. Tests use the transactional lane, because somebody waits for them and they are few. */
function laneOf(messageClass: MessageClass): 'transactional' | 'bulk' {
  return messageClass === 'TRANSACTIONAL' || messageClass === 'TEST' ? 'transactional' : 'bulk'
}

/**
 * Queues emails for sending in one statement of the caller's transaction, and wakes their lanes after the commit.
 * Returns results in input order. It skips checks that are made again when an email is submitted.
 */
export async function enqueueMessages(call: Call, messages: readonly NewMessage[]): Promise<Enqueued[]> {
  if (messages.length === 0) return []
  const drafts = messages.map((message) => ({ ...message, id: newId() }))
  const firstOfKey = new Map<string, number>()
  for (const [position, { key }] of drafts.entries()) {
    if (key !== undefined && !firstOfKey.has(key)) firstOfKey.set(key, position)
  }
  const sources = drafts.map(({ key }, position) =>
    key === undefined ? position : (firstOfKey.get(key) ?? position),
  )
  const input = drafts.flatMap((draft, position) =>
    sources[position] === position ? [asRow(draft, position)] : [],
  )
  const stored = await rows<Stored>(call.em, insertion(call.organization.id, input))
  const ids = new Map(stored.map(({ position, id }) => [position, id]))
  for (const lane of new Set(input.map(({ lane }) => lane))) call.wakeLane(lane)
  return drafts.map((draft, position) => {
    const id = ids.get(sources[position] ?? position) ?? draft.id
    return { id, created: id === draft.id }
  })
}

function asRow(draft: NewMessage & { id: string }, position: number) {
  const { class: messageClass, source, tracking, ...rest } = draft
  return {
    ...rest,
    position,
    message_class: messageClass,
    lane: laneOf(messageClass),
    weight: messageClass === 'CAMPAIGN' ? 0 : 1,
    tracking: tracking ?? true,
    source: source ?? null,
  }
}

/**
 * The insert statement. An existing key is "updated" to itself, because only an update returns the row of a concurrent
 * transaction; its message then has another id than the proposed one, and nothing is inserted.
 */
function insertion(organizationId: string, input: readonly ReturnType<typeof asRow>[]) {
  return sql`with input as materialized (
      select * from jsonb_to_recordset(${json(input)}) as input (
        position int, id uuid, key text, message_class text, marketing boolean, lane text, weight smallint,
        "subscriberId" uuid, recipient text, "fromName" text, "fromEmail" text, "stoodInFor" text, "replyTo" text,
        tracking boolean,
        source jsonb, "campaignId" uuid, "automationId" uuid, "versionId" uuid, "runId" uuid, "stepId" text, visit int)
    ), keyed as (
      insert into message_key (organization_id, key, message_id)
      select ${organizationId}, key, id from input where key is not null order by key
      on conflict (organization_id, key) do update set key = excluded.key
      returning key, message_id
    ), fresh as materialized (
      select input.* from input left join keyed using (key) where keyed.message_id is null or keyed.message_id = input.id
    ), messages as (
      insert into message (id, organization_id, class, marketing, subscriber_id, recipient, from_name, from_email,
        stood_in_for, reply_to, tracking, campaign_id, automation_id, version_id, run_id, step_id, visit)
      select id, ${organizationId}, message_class, marketing, "subscriberId", recipient, "fromName", "fromEmail",
        "stoodInFor", "replyTo", tracking, "campaignId", "automationId", "versionId", "runId", "stepId", visit
      from fresh order by id
    ), contents as (
      insert into message_content (organization_id, message_id, source)
      select ${organizationId}, id, source from fresh where jsonb_typeof(source) = 'object' order by id
    ), queue as (
      insert into delivery_queue (id, organization_id, lane, weight)
      select id, ${organizationId}, lane, weight from fresh order by id
    )
    select input.position, coalesce(keyed.message_id, input.id) as id from input left join keyed using (key)`
}

/** Queues held emails of a campaign or domain again. The wait was not their fault, so their day of retries restarts. */
export async function releaseHeld({ em, organization }: Call, holderId: string): Promise<void> {
  await execute(
    em,
    sql`update delivery_queue set state = 'queued', held_by = null, first_tried_at = null
      where organization_id = ${organization.id} and held_by = ${holderId} and state = 'held'`,
  )
}

/** Whether the outcome of an email is still open; the same as is_pending() in SQL. */
export function isPending({ status }: { status: string }): boolean {
  return status === 'QUEUED' || status === 'SUBMITTING' || status === 'DELAYED'
}
