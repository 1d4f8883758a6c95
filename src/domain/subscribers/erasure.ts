import { type RawBuilder, sql } from 'kysely'

import { audit } from '../../catalogue/audit.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call, Impact } from '../../catalogue/tool.ts'
import { array, execute, row, rows } from '../../database.ts'
import { decodeId, encodeId, newId } from '../../ids.ts'
import { IS_ACTIVE } from '../automations/runs/active.ts'
import { cancelRuns } from '../automations/runs/runs.ts'
import { writeAwaitedOf } from '../campaigns/batches.ts'
import { likeLiteral } from '../text.ts'
import { chooseSubscriber, findSubscriber, missingSubscriber, subscriberCondition } from './records.ts'

/** Replaces an address in columns that need one; `.invalid` never resolves (RFC 2606). */
export const NO_ADDRESS = 'erased@erased.invalid'

/** Members of event data that are numbers or identify the organization's own records. They survive an erasure. */
const IMPERSONAL = ['amount', 'currency', 'campaignId', 'workflowId', 'stepId']

/** The suppression reason that follows from a status, for an address without a suppression. */
const REASONS = sql`case subscriber.status when 'BANNED' then 'MANUAL' when 'COMPLAINED' then 'COMPLAINT'
  when 'BOUNCED' then 'HARD_BOUNCE' else 'ERASED' end`

/** The first key of the advisory lock; see the migration of campaign sends. */
const CLAIMS_LOCK = 7_305_106

/** The retry delay while an email is being handed over; most servers accept one within this time. */
const HANDOVER_SECONDS = 5

type Person = { id: string; email: string; addresses: string[] }

/**
 * Erases a person, named by id or email (GDPR, article 17). Their rows are deleted or anonymized, statistics keep their
 * counts under a random id, and the hash of the address stays suppressed. Repeating it changes nothing. Returns the
 * TypeID they had.
 */
export async function eraseSubscriber(call: Call, subscriber: string): Promise<string> {
  const known = await readPerson(call, subscriber)
  if (!known) return await findErased(call, subscriber)
  await holdTags(call, known)
  await holdCampaigns(call)
  await writeAwaitedOf(call.em, { organizationId: call.organization.id, subscriberId: known.id })
  await holdEmails(call, known)
  const person = await readPerson(call, encodeId('sub', known.id), { lock: true })
  if (!person) return await findErased(call, encodeId('sub', known.id))
  const nobody = newId()
  await cancelRuns(call, await activeRuns(call, person.id), 'MANUAL')
  await anonymizeMessages(call, person, nobody)
  await anonymizeAudiences(call, person, nobody)
  await anonymizeHistory(call, person.id, nobody)
  await scrubRecords(call, person)
  await hashSuppressions(call, person)
  await execute(
    call.em,
    sql`delete from subscriber where organization_id = ${call.organization.id} and id = ${person.id}`,
  )
  const id = encodeId('sub', person.id)
  await audit(call, 'subscriber.erased', id, {})
  return id
}

/** Summarizes what erasing will do. */
export async function summarizeErasure(call: Call, subscriber: string): Promise<Impact> {
  const { email } = await findSubscriber(call, chooseSubscriber(subscriber))
  return {
    target: email,
    effects: ['All data about this person is erased; the address stays suppressed.'],
    warnings: ['It cannot be undone.'],
  }
}

/** Returns a person with every address they had in emails or changes, except addresses of other subscribers now. */
async function readPerson(
  { em, organization }: Call,
  subscriber: string,
  { lock = false } = {},
): Promise<Person | null> {
  const found = await row<{ id: string; email: string; key: string }>(
    em,
    sql`select id, email, email_key as key from subscriber where organization_id = ${organization.id}
      and ${subscriberCondition(chooseSubscriber(subscriber))} ${lock ? sql`for update` : sql``}`,
  )
  if (!found) return null
  const known = await rows<{ address: string }>(
    em,
    sql`with used as (
        select lower(recipient) as address from message
        where organization_id = ${organization.id} and subscriber_id = ${found.id}
        union select lower(value #>> '{}') from subscriber_event, jsonb_each(data)
        where organization_id = ${organization.id} and subscriber_id = ${found.id} and type = 'FIELD_UPDATED'
          and data ->> 'field' = 'email' and key in ('from', 'to')
      )
      select address from used where address like '%@%' and not exists (select from subscriber other
        where other.organization_id = ${organization.id} and other.email_key = address)`,
  )
  const { id, email, key } = found
  return { id, email, addresses: [key, ...known.map(({ address }) => address)] }
}

async function findErased({ em, organization }: Call, subscriber: string): Promise<string> {
  const choice = chooseSubscriber(subscriber)
  const condition =
    choice.subscriberId === undefined
      ? sql`email_key = erased_email_key(${organization.id}, ${subscriber})`
      : sql`subscriber_id = ${decodeId('sub', subscriber)}`
  const found = await row<{ id: string }>(
    em,
    sql`select subscriber_id as id from erasure where organization_id = ${organization.id} and ${condition}
      order by created_at desc limit 1`,
  )
  return found ? encodeId('sub', found.id) : missingSubscriber(choice)
}

async function activeRuns({ em, organization }: Call, id: string): Promise<string[]> {
  const found = await rows<{ id: string }>(
    em,
    sql`select id from automation_run where organization_id = ${organization.id} and subscriber_id = ${id}
      and ${IS_ACTIVE}`,
  )
  return found.map((run) => run.id)
}

/**
 * Waits for deletions of the person's tags, and keeps others from beginning: they record events of many people without
 * a lock on each.
 */
async function holdTags({ em, organization }: Call, { id }: Person): Promise<void> {
  await execute(
    em,
    sql`select from tag where organization_id = ${organization.id} and id in (select tag_id from subscriber_tag
        where organization_id = ${organization.id} and subscriber_id = ${id})
      order by id for key share`,
  )
}

/**
 * Keeps senders from claiming campaign recipients meanwhile, also of campaigns that begin only now: they would read an
 * address that is being erased. `claim_recipients` asks for the same lock.
 */
async function holdCampaigns({ em, organization }: Call): Promise<void> {
  await execute(em, sql`select pg_advisory_xact_lock(${CLAIMS_LOCK}, hashtext(${organization.id}))`)
}

/**
 * Locks the queued emails to a person, or about them (NOTIFY), and returns the ids of all of these. Delivery locks
 * emails before subscribers, so this runs before the lock on the subscriber, and again after it for emails that arrived
 * in between.
 */
async function holdEmails({ em, organization }: Call, person: Person): Promise<string[]> {
  const addresses = array(person.addresses, 'text')
  const found = await rows<{ id: string }>(
    em,
    sql`select id from message where organization_id = ${organization.id} and subscriber_id = ${person.id}
      union
      select id from message
      where organization_id = ${organization.id} and subscriber_id is null and lower(recipient) = any(${addresses})
      union
      select (step.outcome ->> 'messageId')::uuid from automation_run run
      join run_step step on step.organization_id = run.organization_id and step.run_id = run.id
      where run.organization_id = ${organization.id} and run.subscriber_id = ${person.id} and step.type = 'NOTIFY'
        and step.outcome ->> 'messageId' is not null`,
  )
  const ids = found.map(({ id }) => id)
  const leaving = await row(
    em,
    sql`select from (select submitting, lease_until from delivery_queue
        where organization_id = ${organization.id} and id = any(${array(ids, 'uuid')}) order by id for update) q
      where submitting and lease_until > clock_timestamp() limit 1`,
  )
  if (leaving) {
    throw new Failure(
      'UNAVAILABLE',
      'An email to this subscriber is just being handed to a mail server, so nothing was erased; repeat the request in a few seconds.',
      { retryAfter: HANDOVER_SECONDS },
    )
  }
  return ids
}

/** Removes personal data from emails; their outcomes and times stay. */
async function anonymizeMessages(call: Call, person: Person, nobody: string): Promise<void> {
  const { em, organization } = call
  const ids = array(await holdEmails(call, person), 'uuid')
  const ofMessages = sql`organization_id = ${organization.id} and message_id = any(${ids})`
  await execute(
    em,
    sql`delete from delivery_queue where organization_id = ${organization.id} and id = any(${ids})`,
  )
  await execute(
    em,
    sql`update message set recipient = ${NO_ADDRESS}, reply_to = null, subject = null, response = null,
        subscriber_id = case when subscriber_id is not null then ${nobody}::uuid end, version_id = null,
        reason = case when is_pending(status) then 'ERASED' else reason end,
        status = case when is_pending(status) then 'SKIPPED' else status end
      where organization_id = ${organization.id} and id = any(${ids})`,
  )
  await execute(em, sql`delete from message_content where ${ofMessages}`)
  await execute(em, sql`delete from link where ${ofMessages}`)
  await execute(em, sql`delete from email_report where ${ofMessages}`)
  await execute(em, sql`delete from pending_visit where ${ofMessages}`)
  await execute(em, sql`update tracking_event set user_agent = null where ${ofMessages}`)
}

/**
 * Anonymizes the person in campaign audiences, whose size stays. The message ids are replaced, because they are used
 * only until an email is written. The subscriber id is replaced only after sending, because paging runs over it.
 */
async function anonymizeAudiences({ em, organization }: Call, { id }: Person, nobody: string): Promise<void> {
  await execute(
    em,
    sql`update campaign_recipient r set message_id = new_id(),
        subscriber_id = case when c.status = 'SENT' then ${nobody}::uuid else r.subscriber_id end
      from campaign c where c.organization_id = ${organization.id} and r.organization_id = c.organization_id
        and r.campaign_id = c.id and r.subscriber_id = ${id}`,
  )
}

async function anonymizeHistory({ em, organization }: Call, id: string, nobody: string): Promise<void> {
  // The response of a webhook endpoint may repeat the personal data it was sent.
  await execute(
    em,
    sql`update webhook_delivery delivery set response_body = null
      from webhook, subscriber_event event
      where webhook.organization_id = ${organization.id} and event.organization_id = ${organization.id}
        and event.subscriber_id = ${id} and delivery.organization_id = ${organization.id}
        and delivery.webhook_id = webhook.id and delivery.event_id = event.id`,
  )
  await execute(
    em,
    sql`update subscriber_event set subscriber_id = ${nobody},
        data = coalesce((select jsonb_object_agg(key, value) from jsonb_each(data)
          where key = any(${array(IMPERSONAL, 'text')})), '{}'),
        cause = case cause ->> 'kind' when 'public' then '{"kind": "public", "id": "", "name": ""}' else cause end
      where organization_id = ${organization.id} and subscriber_id = ${id}`,
  )
  await execute(
    em,
    sql`update decision set subscriber_id = ${nobody}, data = '{}'
      where organization_id = ${organization.id} and subscriber_id = ${id}`,
  )
}

/** Deletes idempotency records and rejected import rows that mention the person, and empties such audit data. */
async function scrubRecords({ em, organization }: Call, { id, addresses }: Person): Promise<void> {
  const names = [...addresses, encodeId('sub', id)]
  const patterns = array(names.map(wholeWord), 'text')
  // Most records do not hold the names at all, which LIKE finds out several times as fast as the patterns.
  const parts = array(
    names.map((name) => `%${likeLiteral(name)}%`),
    'text',
  )
  const mentions = (text: RawBuilder<unknown>) =>
    sql`(lower(${text}) like any(${parts}) and lower(${text}) ~ any(${patterns}))`
  const own = sql`organization_id = ${organization.id}`
  await execute(
    em,
    sql`delete from idempotency_record where ${own} and ${mentions(sql`key || ' ' || answer::text`)}`,
  )
  await execute(em, sql`update audit_entry set data = '{}' where ${own} and ${mentions(sql`data::text`)}`)
  await execute(em, sql`delete from import_rejection where ${own} and ${mentions(sql`cells::text || error`)}`)
}

/**
 * Returns a PostgreSQL pattern for an address or id that is not a part of another one. An escape of JSON, such as "\n",
 * may stand before it. So may "/", "=" or "'", which addresses hardly ever hold, but URLs and quotations do.
 */
function wholeWord(text: string): string {
  const literal = text.replaceAll(/[!-/:-?[-`{-~]/g, String.raw`\$&`)
  return String.raw`(?:^|[^[:alnum:]._+-]|\\[bfnrt]|\\u[0-9a-f]{4})${literal}(?!-*[[:alnum:]]|\.[[:alnum:]])`
}

/** Replaces the person's suppressed addresses by hashes, and suppresses the current address in any case. */
async function hashSuppressions({ em, organization }: Call, { id, addresses }: Person): Promise<void> {
  await execute(
    em,
    sql`with blocked as (
        delete from suppression where organization_id = ${organization.id}
          and email_key = any(${array(addresses, 'text')})
        returning email_key as address, reason
      ), kept as (
        select subscriber.email_key as address, coalesce(blocked.reason, ${REASONS}) as reason
        from subscriber left join blocked on blocked.address = subscriber.email_key
        where subscriber.organization_id = ${organization.id} and subscriber.id = ${id}
        union select address, reason from blocked
      ), noted as (
        insert into erasure (organization_id, subscriber_id, email_key)
        select ${organization.id}, ${id}, erased_email_key(${organization.id}, ${addresses[0]})
      )
      insert into suppression (id, organization_id, email_key, reason, source)
      select new_id(), ${organization.id}, erased_email_key(${organization.id}, kept.address), kept.reason, 'erasure'
      from kept
      on conflict (organization_id, email_key) do update set reason = excluded.reason
        where suppression.reason = 'ERASED'`,
  )
}
