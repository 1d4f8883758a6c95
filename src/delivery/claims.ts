import { sql } from 'kysely'

import { array, type EntityManager, execute, json, prepared, row, rows } from '../database.ts'
import type { MessageClass, MessageSource } from '../domain/emails/messages.ts'

/** The two delivery lanes: transactional email never waits behind bulk email. */
export type LaneName = 'transactional' | 'bulk'

/** An email with everything that rendering needs. All ids are uuids. */
export type Mail = {
  id: string
  organizationId: string
  organizationName: string
  class: MessageClass
  marketing: boolean
  recipient: string
  fromName: string | null
  fromEmail: string
  replyTo: string | null
  tracking: boolean
  subscriberId: string | null
  subscriberName: string | null
  phone: string | null
  fields: Record<string, unknown>
  campaignId: string | null
  automationId: string | null
  versionId: string | null
  runId: string | null
  stepId: string | null
  source: MessageSource | null
}

/**
 * A claimed email. `attempt` is its fencing token: every later statement about the email must match it. With a
 * `batchId`, the email may have no row yet: it gets its row with its outcome, or earlier by `writeOut`.
 */
export type ClaimedMail = Mail & { attempt: number; tries: number; batchId: string | null }

/**
 * The columns of a `Mail`, from the aliases `m` (message), `s` (subscriber), `o` (organization) and `content`
 * (message_content).
 */
const MAIL_COLUMNS = sql`m.id, m.organization_id as "organizationId", o.name as "organizationName", m.class,
  m.marketing, m.recipient, m.from_name as "fromName", m.from_email as "fromEmail", m.reply_to as "replyTo",
  m.tracking, m.subscriber_id as "subscriberId", s.name as "subscriberName", s.phone, coalesce(s.fields, '{}') as fields,
  m.campaign_id as "campaignId", m.automation_id as "automationId", m.version_id as "versionId", m.run_id as "runId",
  m.step_id as "stepId", content.source`

/** The joins that `MAIL_COLUMNS` needs besides `message m`. */
const MAIL_JOINS = sql`join organization o on o.id = m.organization_id
  left join subscriber s on s.organization_id = m.organization_id and s.id = m.subscriber_id
  left join message_content content on content.organization_id = m.organization_id and content.message_id = m.id`

const ORGANIZATIONS_A_TURN = 64
/** How many rows of each kind (held, deferred, lost) `reviveQueue` requeues in one call. */
const REVIVED = 5_000
const claim = prepared('claim_mails', 'select * from claim_mails($1, $2, $3, $4, $5)')
const claimCampaigns = prepared('claim_campaign_mails', 'select * from claim_campaign_mails($1, $2, $3)')

/**
 * Claims about `want` queued emails of a lane for `leaseMs`, oldest first. The organizations after `cursor` share them:
 * in each, email with a weight above 0 (automations) gets three parts where email of weight 0 (retries of campaigns)
 * gets one. Returns the last organization served as the next cursor; null means that the round starts over.
 */
export async function claimMails(
  em: EntityManager,
  lane: LaneName,
  want: number,
  leaseMs: number,
  cursor: string | null,
): Promise<{ mails: ClaimedMail[]; cursor: string | null }> {
  const found = await rows<ClaimedMail & { lastOrganization: string | null }>(
    em,
    claim(lane, want, leaseMs / 1_000, cursor, ORGANIZATIONS_A_TURN * 2),
  )
  const last = found[0]?.lastOrganization ?? null
  return { mails: found, cursor: found.length === 0 ? null : last }
}

/**
 * Claims about `want` recipients of campaigns for `leaseMs`, as one batch of each send. All organizations that are
 * sending campaigns share them.
 */
export async function claimCampaignMails(
  em: EntityManager,
  want: number,
  leaseMs: number,
): Promise<ClaimedMail[]> {
  return await rows<ClaimedMail>(em, claimCampaigns(want, leaseMs / 1_000, ORGANIZATIONS_A_TURN))
}

/** Returns one email by id for the online view, or null. */
export async function findMail(em: EntityManager, organizationId: string, id: string): Promise<Mail | null> {
  return await row<Mail>(
    em,
    sql`select ${MAIL_COLUMNS} from message m ${MAIL_JOINS} where m.organization_id = ${organizationId} and m.id = ${id}`,
  )
}

/**
 * Writes the emails of batches that have no row yet into `message` and the queue, where their sender still holds them.
 * `areOut` says whether a relay may already have them.
 */
export async function writeOut(
  em: EntityManager,
  mails: readonly Pick<ClaimedMail, 'id' | 'organizationId' | 'batchId' | 'recipient'>[],
  { areOut }: { areOut: boolean },
): Promise<void> {
  const unwritten = mails.filter(({ batchId }) => batchId !== null)
  if (unwritten.length === 0) return
  await execute(
    em,
    sql`select write_recipients("organizationId", "batchId", array_agg(id), array_agg(recipient), ${areOut})
      from jsonb_to_recordset(${json(
        unwritten.map(({ id, organizationId, batchId, recipient }) => ({
          id,
          organizationId,
          batchId,
          recipient,
        })),
      )}) as given (id uuid, "organizationId" uuid, "batchId" uuid, recipient text)
      group by "organizationId", "batchId" order by "batchId"`,
  )
}

/** Puts claimed emails that were not started back into the queue, for example at shutdown. */
export async function releaseClaims(em: EntityManager, mails: readonly ClaimedMail[]): Promise<void> {
  if (mails.length === 0) return
  await writeOut(em, mails, { areOut: false })
  await execute(
    em,
    sql`update delivery_queue q set state = 'queued', lease_until = null
      from jsonb_to_recordset(${JSON.stringify(fences(mails))}::jsonb) as given (id uuid, attempt int)
      where q.id = given.id and q.attempt = given.attempt and q.state = 'claimed' and not q.submitting`,
  )
}

/** Extends the leases of emails whose relay has not answered yet, so that no other process sends them. */
export async function renewLeases(
  em: EntityManager,
  mails: readonly ClaimedMail[],
  leaseMs: number,
): Promise<void> {
  if (mails.length === 0) return
  await execute(
    em,
    sql`update delivery_queue q set lease_until = clock_timestamp() + make_interval(secs => ${leaseMs / 1_000}::float8)
      from jsonb_to_recordset(${JSON.stringify(fences(mails))}::jsonb) as given (id uuid, attempt int)
      where q.id = given.id and q.attempt = given.attempt and q.submitting`,
  )
  const batches = mails.flatMap(({ batchId }) => batchId ?? [])
  if (batches.length === 0) return
  await execute(
    em,
    sql`with held as materialized (
        select organization_id, id from campaign_batch where organization_id = any(${array(
          mails.map(({ organizationId }) => organizationId),
          'uuid',
        )}) and id = any(${array(batches, 'uuid')}) order by id for update)
      update campaign_batch b set lease_until = clock_timestamp() + make_interval(secs => ${leaseMs / 1_000}::float8)
      from held where b.organization_id = held.organization_id and b.id = held.id`,
  )
}

/**
 * Requeues retries that are due, held emails whose automation, campaign or domain is no longer paused or stopped (their
 * day of retries starts over), and emails whose lease has expired. Rows are never deleted. Returns the number of rows
 * that changed.
 */
export async function reviveQueue(em: EntityManager): Promise<number> {
  await execute(em, sql`select revive_batches()`)
  return await execute(
    em,
    sql`with recursive holders as (
        (select organization_id, held_by from delivery_queue where state = 'held'
          order by organization_id, held_by limit 1)
        union all
        select following.* from holders cross join lateral (
          select q.organization_id, q.held_by from delivery_queue q where q.state = 'held'
            and (q.organization_id, q.held_by) > (holders.organization_id, holders.held_by)
          order by q.organization_id, q.held_by limit 1) following
      ), released as materialized (
        select * from holders where not exists (select from automation a
            where a.organization_id = holders.organization_id and a.id = holders.held_by and a.status = 'PAUSED')
          and not exists (select from campaign c
            where c.organization_id = holders.organization_id and c.id = holders.held_by and c.paused)
          and not exists (select from sending_stop s
            where s.organization_id = holders.organization_id and s.domain_id = holders.held_by)
      ), held as (
        select q.id from released cross join lateral (select each.id from delivery_queue each
          where each.state = 'held' and each.organization_id = released.organization_id
            and each.held_by = released.held_by limit ${REVIVED} for update skip locked) q limit ${REVIVED}
      ), deferred as (
        select id from delivery_queue where state = 'deferred' and next_attempt_at <= now()
        order by next_attempt_at limit ${REVIVED} for update skip locked
      ), lost as (
        select id from delivery_queue where state = 'claimed' and lease_until < now()
        limit ${REVIVED} for update skip locked
      )
      update delivery_queue q set state = 'queued', lease_until = null, held_by = null,
        first_tried_at = case when q.state <> 'held' then q.first_tried_at end,
        ambiguous = q.ambiguous or q.submitting, submitting = false
      where q.id = any (array(select id from held union all select id from deferred union all select id from lost))`,
  )
}

function fences(mails: readonly ClaimedMail[]) {
  return mails.map(({ id, attempt }) => ({ id, attempt }))
}
