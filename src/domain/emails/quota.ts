import { sql } from 'kysely'

import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { execute, row } from '../../database.ts'
import { count } from '../text.ts'

/** The monthly email limit and how many are left, when too few are left. */
export type OverQuota = { allowed: number; left: number }

const FEWER_RECIPIENTS = 'narrow recipientFilters (update_campaign_filters) until they fit'

/**
 * Throws `QUOTA_EXCEEDED` with the time until next month, or `WRONG_STATE` when even a whole month is too small.
 * `fewer` says how the caller can send fewer emails; by default, as for a campaign.
 */
export function refuseQuota(overQuota: OverQuota, now: Date, wanted = 1, fewer = FEWER_RECIPIENTS): never {
  const words = `${quotaWords(overQuota, wanted, fewer)}.`
  if (wanted > overQuota.allowed) throw new Failure('WRONG_STATE', words, { details: overQuota })
  const next = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)
  throw new Failure('QUOTA_EXCEEDED', words, {
    retryAfter: Math.ceil((next - now.getTime()) / 1_000),
    details: overQuota,
  })
}

/** Returns why `wanted` emails cannot be sent, as a sentence without its full stop. */
export function quotaWords({ allowed, left }: OverQuota, wanted: number, fewer = FEWER_RECIPIENTS): string {
  const need = wanted === 1 ? '' : `, and ${wanted} are needed`
  const rest = left === 0 ? 'none is left' : `${count(left, 'email')} ${left === 1 ? 'is' : 'are'} left`
  const repair =
    wanted > allowed ? `no month has room for so many, so ${fewer}` : 'wait for the first of next month (UTC)'
  return `Your plan has ${count(allowed, 'email')} a month and ${rest}${need}; ${repair}, or ask for a larger plan`
}

/** Takes emails from the month in the caller's transaction. Returns null, or what is left when there are not enough. */
async function takeEmails({ em, organization }: Call, wanted: number): Promise<OverQuota | null> {
  const found = await row<{ over: OverQuota | null }>(
    em,
    sql`select take_emails(${organization.id}, ${wanted}) as over`,
  )
  return found?.over ?? null
}

/** Counts an email that is sent even over the limit, such as a request for confirmation. */
export async function countEmail({ em, organization }: Call): Promise<void> {
  await execute(
    em,
    sql`select count_emails(${organization.id}, quota_month(), 1) where take_emails(${organization.id}, 1) is not null`,
  )
}

/** Refuses a campaign that would exceed the limit of the month it is due in, judged by the current numbers. */
export async function foreseeQuota(
  call: Call,
  due: number | null,
  countWanted: () => Promise<number>,
): Promise<void> {
  const { em, organization, now } = call
  const dueAt = new Date(due ?? now.getTime())
  const month = await row<{ allowed: number | null; used: number }>(
    em,
    sql`select email_limit(${organization.id}) as allowed,
        case when ${dueAt.toISOString()}::timestamptz at time zone 'utc' >= quota_month() + interval '1 month' then 0
          else coalesce(emails_counted(${organization.id}), 0) end as used`,
  )
  if (!month || month.allowed === null) return
  const { allowed, used } = month
  const wanted = await countWanted()
  const left = Math.max(0, allowed - used)
  if (wanted > left) refuseQuota({ allowed, left }, now, wanted)
}

/** Takes all emails of a campaign with a frozen audience. Returns null, or what is left when there are not enough. */
export async function takeCampaignEmails(
  call: Call,
  sendId: string,
  wanted: number,
): Promise<OverQuota | null> {
  const over = await takeEmails(call, wanted)
  if (over !== null) return over
  const { em, organization } = call
  await execute(
    em,
    sql`update campaign_send set quota_taken = ${wanted}, quota_month = quota_month()
      where organization_id = ${organization.id} and id = ${sendId} and email_limit(${organization.id}) is not null`,
  )
  return null
}

/** Gives emails back to their month that an ended campaign took but did not enqueue. Safe to repeat. */
export async function giveBackEmails(
  { em, organization }: Call,
  { campaignId, number }: { campaignId: string; number: number },
): Promise<void> {
  await execute(
    em,
    sql`with unused as (
        update campaign_send send set quota_taken = send.enqueued from campaign_send before
        where send.organization_id = ${organization.id} and send.campaign_id = ${campaignId} and send.number = ${number}
          and before.organization_id = send.organization_id and before.id = send.id
          and before.quota_taken > before.enqueued
        returning send.organization_id, before.quota_month as month, before.quota_taken - before.enqueued as emails)
      select count_emails(organization_id, month, -emails) from unused`,
  )
}
