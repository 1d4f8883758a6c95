import { sql } from 'kysely'

import type { ReportKind } from '../../schema/report.ts'
import { HARD_BOUNCES } from '../../schema/values.ts'
import { Failure } from '../catalogue/failure.ts'
import type { Actor, Call } from '../catalogue/tool.ts'
import { execute, row } from '../database.ts'
import { encodeId, missing, newId } from '../ids.ts'
import { writeAwaited } from './campaigns/batches.ts'
import { type EmailOrigin, emailFacts } from './email-facts.ts'
import { NO_ADDRESS } from './erasure.ts'
import { recordEvents } from './events.ts'
import { isPending } from './messages.ts'

/** The actor of reports, as the history shows it. */
export const REPORTER: Actor = { kind: 'system', id: 'inbound', name: 'Inbound mail' }

/** What came back about an email; `category` is that of a bounce, SENDER_REFUSED where it says nothing of the recipient. */
export type EmailReport = {
  /** Uuid. */
  messageId: string
  kind: ReportKind
  category: string | null
  status: string | null
  diagnostic: string | null
  subject: string | null
  from: string | null
  /** The same for a repetition of the same report. */
  fingerprint: Buffer
  /** As it came. */
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

/** Reports of one kind about an email that are taken: whoever got it could bring others without end. */
const MOST_OF_A_KIND = 10
/** The fifth soft bounce within these days suppresses an address. */
const SOFT_BOUNCES = 5
const SOFT_DAYS = 14

/** From which status of an email a report leads where; from the others it changes nothing, however late it comes. */
const MOVES: Readonly<Partial<Record<ReportKind, readonly string[]>>> = {
  BOUNCE: ['SENT', 'DELIVERED'],
  COMPLAINT: ['SENT', 'DELIVERED', 'BOUNCED'],
}

/**
 * Takes a report about an email, in the caller's transaction: the email, its person and the suppressions move, and an
 * event says so, once for the same report and once for each outcome, in whatever order reports come. Refuses what is
 * about no email (NOT_FOUND) or about one whose sending is not recorded yet (UNAVAILABLE: it is told again). Answers
 * whether it was new.
 */
export async function takeReport(call: Call, report: EmailReport): Promise<boolean> {
  const email = await lockEmail(call, report.messageId)
  if (isPending(email)) {
    throw new Failure(
      'UNAVAILABLE',
      'The sending of this email is not recorded yet; report again in a minute.',
    )
  }
  // Nothing is kept of who was erased.
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

/** Writes the report down; false when it is known already, or more than enough of its kind are. */
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
  if (!MOVES.BOUNCE?.includes(email.status)) return
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

async function complain(call: Call, email: Reported): Promise<void> {
  if (!MOVES.COMPLAINT?.includes(email.status)) return
  await execute(
    call.em,
    sql`update message set status = 'COMPLAINED'
      where organization_id = ${call.organization.id} and id = ${email.messageId}`,
  )
  await suppress(call, email, 'COMPLAINT')
  await moveSubscriber(call, email, { status: 'COMPLAINED', category: null })
  await tell(call, email, 'EMAIL_COMPLAINED', {})
}

/** Servers say again and again that they go on trying, and only the first time is news. */
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

/** Whether emails to this address bounced so often recently that it gets no more. */
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

/** Not when they have another address by now: what is known of the old one says nothing of it. */
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
