import { sql } from 'kysely'

import type { ReportKind } from '../../../schema/report.ts'
import { HARD_BOUNCES } from '../../../schema/values.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Actor, Call } from '../../catalogue/tool.ts'
import { execute, row } from '../../database.ts'
import { encodeId, missing, newId } from '../../ids.ts'
import { writeAwaited } from '../campaigns/batches.ts'
import { recordEvents } from '../events.ts'
import { NO_ADDRESS } from '../subscribers/erasure.ts'
import { type EmailOrigin, emailFacts } from './facts.ts'
import { isPending } from './messages.ts'

/** The actor of events that reports cause. */
export const REPORTER: Actor = { kind: 'system', id: 'inbound', name: 'Inbound mail' }

/** A report about an email. `category` is that of a bounce; SENDER_REFUSED says nothing about the recipient. */
export type EmailReport = {
  /** The uuid of the email. */
  messageId: string
  kind: ReportKind
  category: string | null
  status: string | null
  diagnostic: string | null
  subject: string | null
  from: string | null
  /** Equal for repetitions of the same report. */
  fingerprint: Buffer
  /** The report as received. */
  raw: Buffer
}

type Reported = EmailOrigin & {
  status: string
  recipient: string
  subscriberId: string | null
  subject: string | null
  isTest: boolean
  isErased: boolean
}

/** The limit of reports of one kind per email, because its recipient could send any number of them. */
const MOST_OF_A_KIND = 10
/** This many bounces of an address within `SOFT_DAYS` suppress it, even if all are soft. */
const SOFT_BOUNCES = 5
const SOFT_DAYS = 14

/** The statuses of an email in which a bounce changes it; in other statuses it changes nothing, however late it is. */
const MAY_BOUNCE: readonly string[] = ['SENT', 'DELIVERED']

/**
 * Processes a report about an email in the caller's transaction: updates the email, the subscriber and the
 * suppressions, and records an event. Repeated reports and repeated outcomes change nothing, in any order. Throws
 * `NOT_FOUND` for an unknown email and `UNAVAILABLE` while its sending is not recorded, so that the report is retried.
 * Returns whether the report was new.
 */
export async function takeReport(call: Call, report: EmailReport): Promise<boolean> {
  const email = await lockEmail(call, report.messageId)
  if (isPending(email)) {
    throw new Failure(
      'UNAVAILABLE',
      'The sending of this email is not recorded yet; report again in a minute.',
      { retryAfter: 60 },
    )
  }
  // No data about erased people is stored.
  if (email.isErased) return false
  if (!(await keep(call, report))) return false
  switch (report.kind) {
    case 'BOUNCE':
      await bounce(call, email, report)
      break
    case 'COMPLAINT':
      await complain(call, email)
      break
    case 'DELAY':
      await delay(call, email, report)
      break
    case 'REPLY':
      await tell(call, email, 'EMAIL_RECEIVED', { from: report.from, subject: report.subject })
      break
    case 'AUTOMATIC':
      break
  }
  return true
}

async function lockEmail({ em, organization }: Call, messageId: string): Promise<Reported> {
  await writeAwaited(em, [{ organizationId: organization.id, messageId }])
  const found = await row<Reported>(
    em,
    sql`select m.id as "messageId", m.status, m.recipient, m.subscriber_id as "subscriberId", m.subject,
        m.class = 'TEST' as "isTest", m.campaign_id as "campaignId", m.automation_id as "automationId",
        m.run_id as "runId", m.step_id as "stepId", m.recipient = ${NO_ADDRESS} as "isErased"
      from message m
      where m.organization_id = ${organization.id} and m.id = ${messageId} for update of m`,
  )
  return found ?? missing('eml', encodeId('eml', messageId))
}

/** Stores the report; returns false when it is known already, or the limit of its kind is reached. */
async function keep({ em, organization }: Call, report: EmailReport): Promise<boolean> {
  const { messageId, kind, fingerprint, category, status, diagnostic, raw } = report
  const kept = await execute(
    em,
    sql`insert into email_report (id, organization_id, message_id, kind, fingerprint, category, status, diagnostic, raw)
      select ${newId()}, ${organization.id}, ${messageId}, ${kind}, ${fingerprint}, ${category}, ${status},
        ${diagnostic}, ${raw}
      where (select count(*) from email_report where organization_id = ${organization.id}
        and message_id = ${messageId} and kind = ${kind}) < ${MOST_OF_A_KIND}
      on conflict (organization_id, message_id, fingerprint) do nothing`,
  )
  return kept === 1
}

async function bounce(
  call: Call,
  email: Reported,
  { category, status, diagnostic }: EmailReport,
): Promise<void> {
  if (!MAY_BOUNCE.includes(email.status)) return
  const isOfSender = category === 'SENDER_REFUSED'
  await execute(
    call.em,
    sql`update message set status = ${isOfSender ? 'FAILED' : 'BOUNCED'},
        bounce_category = ${isOfSender ? null : category}, reason = ${category}, response = ${diagnostic},
        failed_at = now(), delivered_at = null
      where organization_id = ${call.organization.id} and id = ${email.messageId}`,
  )
  if (isOfSender) return
  if (HARD_BOUNCES.some((hard) => hard === category)) {
    await suppress(call, email, 'HARD_BOUNCE')
    await moveSubscriber(call, email, { status: 'BOUNCED', category })
  } else if (await bouncesTooOften(call, email)) {
    await suppress(call, email, 'SOFT_BOUNCE')
  }
  await tell(call, email, 'EMAIL_BOUNCED', { category, status, diagnostic })
}

/**
 * Counts whatever became of the email: a relay may have taken one whose answer was lost, and that was withdrawn or
 * given up before it could be sent again. An email that somebody complains about has arrived.
 */
async function complain(call: Call, email: Reported): Promise<void> {
  if (email.status === 'COMPLAINED') return
  await execute(
    call.em,
    sql`update message set status = 'COMPLAINED',
        delivered_at = case when status = 'SENT' then now() else delivered_at end
      where organization_id = ${call.organization.id} and id = ${email.messageId}`,
  )
  await suppress(call, email, 'COMPLAINT')
  await moveSubscriber(call, email, { status: 'COMPLAINED', category: null })
  await tell(call, email, 'EMAIL_COMPLAINED', {})
}

/** Records only the first delay report: servers repeat it while they retry. */
async function delay(call: Call, email: Reported, { status, diagnostic }: EmailReport): Promise<void> {
  const told = await row<{ count: number }>(
    call.em,
    sql`select count(*)::int as count from email_report where organization_id = ${call.organization.id}
      and message_id = ${email.messageId} and kind = 'DELAY'`,
  )
  if (email.status === 'SENT' && told?.count === 1) {
    await tell(call, email, 'EMAIL_DELIVERY_DELAYED', { status, diagnostic })
  }
}

/** Whether emails to this address bounced often enough recently to suppress it. */
async function bouncesTooOften(
  { em, organization }: Call,
  { recipient, subscriberId }: Reported,
): Promise<boolean> {
  if (subscriberId === null) return false
  const found = await row<{ count: number }>(
    em,
    sql`select count(*)::int as count from message where organization_id = ${organization.id}
      and subscriber_id = ${subscriberId} and status = 'BOUNCED' and lower(recipient) = lower(${recipient})
      and id > id_floor(now() - make_interval(days => ${SOFT_DAYS}))`,
  )
  return (found?.count ?? 0) >= SOFT_BOUNCES
}

async function suppress(
  { em, organization }: Call,
  { recipient }: Reported,
  reason: 'HARD_BOUNCE' | 'SOFT_BOUNCE' | 'COMPLAINT',
): Promise<void> {
  await execute(
    em,
    sql`insert into suppression (id, organization_id, email_key, reason, source)
      values (${newId()}, ${organization.id}, lower(${recipient}), ${reason}, 'report')
      on conflict (organization_id, email_key) do nothing`,
  )
}

/** Changes the status unless the address has changed since: a report about the old one says nothing about the new. */
async function moveSubscriber(
  { em, organization }: Call,
  { subscriberId, recipient }: Reported,
  to: { status: 'BOUNCED' | 'COMPLAINED'; category: string | null },
): Promise<void> {
  const kept = to.status === 'BOUNCED' ? sql`('BANNED', 'COMPLAINED')` : sql`('BANNED')`
  await execute(
    em,
    sql`update subscriber set status = ${to.status}, bounce_category = coalesce(${to.category}::text, bounce_category)
      where organization_id = ${organization.id} and id = ${subscriberId} and email_key = lower(${recipient})
        and status not in ${kept}`,
  )
}

async function tell(
  call: Call,
  email: Reported,
  type: string,
  facts: Record<string, unknown>,
): Promise<void> {
  if (email.subscriberId === null || email.isTest) return
  const known = Object.entries({ subject: email.subject, ...facts }).filter(([, fact]) => fact !== null)
  const data = { ...emailFacts(email), ...Object.fromEntries(known) }
  await recordEvents(call, [{ subscriberId: email.subscriberId, type, data }])
}
