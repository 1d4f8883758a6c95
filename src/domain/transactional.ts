import { sql } from 'kysely'

import type { StopReason } from '../../schema/deliverability.ts'
import { type DomainStatus, EMAIL_LINE, type SubscriberStatus } from '../../schema/values.ts'
import { Failure } from '../catalogue/failure.ts'
import { type KeptAnswer, readKept, replay } from '../catalogue/idempotency.ts'
import { refuseToken } from '../catalogue/principal.ts'
import type { Call } from '../catalogue/tool.ts'
import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { json, prepared, row, rows } from '../database.ts'
import { decodeId, encodeId, newId } from '../ids.ts'
import type { Services } from '../services.ts'
import { asciiDomain, emailFault, readEmail } from './addresses.ts'
import type { MessageSource } from './messages.ts'
import { WORDS_OF } from './deliverability/stop-words.ts'
import { type OverQuota, refuseQuota } from './quota.ts'
import { oneLine } from './text.ts'

/** One email to one person, as v1 takes it. */
export type TransactionalEmail = MessageSource & {
  to: string
  /** `a@b`, `Name <a@b>`, or a sender of the organization; the default sender when absent. */
  from: string | From | undefined
  replyTo: string | undefined
  tracking: boolean
}

/** Who an email comes from. */
export type From = { name: string | null; email: string; domain: string }

/** What stands in the way of an email. */
type Verdict = {
  isTokenGone?: true
  isFull?: true
  overQuota?: OverQuota
  /** What the key of the call has already; then nothing was judged. */
  kept?: KeptAnswer
  domainStatus: DomainStatus | null
  stoppedFor: StopReason | null
  recipientStatus: SubscriberStatus | null
  bounceCategory: string | null
  suppression: string | null
}

const BACKLOG_SECONDS = 60
const BACKLOG_FRESH_MS = 250
const MAXIMUM_NAME = 200

/**
 * Accepts one transactional email: token, sender, recipient and suppression are judged and the rows are written by one
 * function (see the migration), so that it costs one round trip and no planning. An unknown recipient becomes a
 * TRANSACTIONAL subscriber. Answers the id (uuid) of the message, which exists once the transaction commits.
 */
export async function sendTransactional(call: Call, email: TransactionalEmail): Promise<string> {
  const id = newId()
  const earlier = await acceptEmail(call, id, email, { judgedOnly: false })
  if (earlier !== null) return earlier
  call.wakeLane('transactional')
  return id
}

/** The answer to an email that was accepted; the statement that accepts it keeps it for the key of the call. */
export function sentAnswer(id: string): { id: string } {
  return { id: encodeId('eml', id) }
}

/**
 * Accepts many at once, in the caller's transaction, which ends when one of them is refused; `refused` tells which, but
 * for the emails of the month, of which all of them are too many. Answers their ids in the order of the input.
 */
export async function sendTransactionals(
  call: Call,
  emails: readonly TransactionalEmail[],
  refused: (error: unknown, index: number) => never,
): Promise<string[]> {
  const drafts = emails.map((email, position) => {
    try {
      return { email, position, id: newId(), from: readEnvelope(email) }
    } catch (error) {
      return refused(error, position)
    }
  })
  await refuseBacklog(call.services)
  const found = await rows<{ position: number; verdict: Verdict | null }>(call.em, acceptances(call, drafts))
  const verdicts = new Map(found.map(({ position, verdict }) => [position, verdict]))
  for (const { email, from, position } of drafts) {
    const verdict = verdicts.get(position)
    if (verdict?.overQuota) {
      const { allowed } = verdict.overQuota
      const left = found.filter((each) => each.verdict === null).length
      const fewer = `leave at most ${allowed} of them in emails`
      refuseQuota({ allowed, left }, call.now, drafts.length, fewer)
    }
    try {
      if (verdict) refuse(call, verdict, email.to, from)
    } catch (error) {
      refused(error, position)
    }
  }
  call.wakeLane('transactional')
  return drafts.map(({ id }) => id)
}

/** Refuses what sendTransactional would refuse, and sends nothing. */
export async function judgeTransactional(call: Call, email: TransactionalEmail): Promise<void> {
  await acceptEmail(call, newId(), email, { judgedOnly: true })
}

/** Answers the id (uuid) of the email that the key of the call has made before, or null. */
async function acceptEmail(
  call: Call,
  id: string,
  email: TransactionalEmail,
  { judgedOnly }: { judgedOnly: boolean },
): Promise<string | null> {
  const from = readEnvelope(email)
  const isFull = await hasBacklog(call.services)
  const statement = acceptance(call, { id, email, from, judgedOnly, isFull })
  const { verdict } = (await row<{ verdict: Verdict | null }>(call.em, statement)) ?? { verdict: null }
  if (verdict?.kept) return earlierId(verdict.kept)
  if (verdict) refuse(call, verdict, email.to, from)
  return null
}

function earlierId(kept: KeptAnswer): string {
  return decodeId('eml', String(Object(replay(readKept(kept))).id))
}

/** Judges the lines of an email, and reads who it comes from; null is the default sender. */
function readEnvelope({ to, replyTo, subject, from }: TransactionalEmail): From | null {
  readEmail(to, 'to')
  if (replyTo !== undefined) readEmail(replyTo, 'replyTo')
  oneLine(subject, 'subject', EMAIL_LINE)
  return typeof from === 'string' ? readFrom(from) : (from ?? null)
}

/** `a@b`, `<a@b>`, `Name <a@b>` or `"Name" <a@b>`. */
function readFrom(text: string): From {
  if (text.length > EMAIL_LINE) refuseFrom(`it is longer than ${EMAIL_LINE} characters`)
  const whole = text.trim()
  const open = whole.endsWith('>') ? whole.lastIndexOf('<') : -1
  const email = open < 0 ? whole : whole.slice(open + 1, -1)
  const phrase = open < 0 ? '' : whole.slice(0, open).trim()
  const quoted = /^"((?:[^"\\]|\\.)*)"$/.exec(phrase)?.[1]
  const name = quoted === undefined ? phrase : quoted.replaceAll(/\\(.)/g, '$1').trim()
  const fault = fromFault(text, { email, name, isQuoted: quoted !== undefined })
  if (fault !== null) refuseFrom(fault)
  return { name: name || null, email, domain: asciiDomain(email.slice(email.lastIndexOf('@') + 1)) ?? '' }
}

function refuseFrom(fault: string): never {
  throw new Failure(
    'INVALID_FROM_ADDRESS',
    `from is not a sender: ${fault}; send "hello@example.com" or "Name <hello@example.com>".`,
  )
}

function fromFault(
  text: string,
  { email, name, isQuoted }: { email: string; name: string; isQuoted: boolean },
): string | null {
  if (/\p{Cc}/u.test(text)) return 'it holds a control character'
  if (name.length > MAXIMUM_NAME) return `its name is longer than ${MAXIMUM_NAME} characters`
  if (!isQuoted && /[<>"]/.test(name)) return 'its name holds "<", ">" or a quotation mark outside quotes'
  return emailFault(email)
}

const acceptTransactional = prepared(
  'accept_transactional',
  `select accept_transactional($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
    as verdict`,
)

type Acceptance = {
  id: string
  email: TransactionalEmail
  from: From | null
  judgedOnly: boolean
  isFull: boolean
}

function acceptance(
  { organization, actor, keyed }: Call,
  { id, email, from, judgedOnly, isFull }: Acceptance,
) {
  const { subject, content, contentType, preview, text, to, replyTo, tracking } = email
  return acceptTransactional(
    organization.id,
    actor.kind === 'token' ? decodeId('tok', actor.id) : null,
    id,
    newId(),
    from?.domain ?? null,
    from?.name ?? null,
    from?.email ?? null,
    to,
    replyTo ?? null,
    tracking,
    JSON.stringify({ subject, content, contentType, preview, text }),
    judgedOnly,
    isFull,
    keyed?.key ?? null,
    keyed?.bodyHash ?? null,
    keyed?.operation ?? null,
    keyed ? JSON.stringify({ data: sentAnswer(id) }) : null,
  )
}

type Draft = { email: TransactionalEmail; position: number; id: string; from: From | null }

/** One statement for all; people are met in the same order by everybody, so that nobody waits in a circle. */
function acceptances({ organization, actor }: Call, drafts: readonly Draft[]) {
  const input = drafts.map(({ email, position, id, from }) => {
    const { subject, content, contentType, preview, text, to, replyTo, tracking } = email
    const source = { subject, content, contentType, preview, text }
    return { position, id, newcomer: newId(), from, to, replyTo, tracking, source }
  })
  return sql`select position, accept_transactional(${organization.id},
      ${actor.kind === 'token' ? decodeId('tok', actor.id) : null}, id, newcomer, "from" ->> 'domain', "from" ->> 'name',
      "from" ->> 'email', "to", "replyTo", tracking, source, false, false, null, null, null,
      null) as verdict
    from (
      select * from jsonb_to_recordset(${json(input)}) as input (position int, id uuid, newcomer uuid, "from" jsonb,
        "to" text, "replyTo" text, tracking boolean, source jsonb) order by lower("to"), position offset 0
    ) as ordered`
}

function refuse({ now }: Call, verdict: Verdict, to: string, from: From | null): never {
  if (verdict.isTokenGone) refuseToken()
  if (verdict.isFull) refuseFull()
  if (verdict.overQuota) refuseQuota(verdict.overQuota, now)
  if (verdict.domainStatus !== 'VERIFIED') refuseSender(verdict.domainStatus, from)
  if (verdict.stoppedFor !== null) refuseStopped(verdict.stoppedFor, from)
  const { recipientStatus, bounceCategory, suppression } = verdict
  const state = suppression === null ? (recipientStatus ?? 'unknown') : 'suppressed'
  const why = suppression ?? bounceCategory
  throw new Failure(
    'WRONG_STATE',
    `to is ${state}${why ? ` (${why})` : ''} and gets no email; reactivate the subscriber first, or send to another address.`,
    { details: { to, status: recipientStatus, bounceCategory, suppression } },
  )
}

function refuseStopped(reason: StopReason, from: From | null): never {
  const what = from === null ? 'the domain of the default sender' : from.domain
  throw new Failure(
    'WRONG_STATE',
    `Transactional email from ${what} is stopped because of too many ${WORDS_OF[reason]}; get_deliverability_health says what to repair, and resume_sending lifts it; until then, send from another domain.`,
  )
}

function refuseSender(status: DomainStatus | null, from: From | null): never {
  if (from === null && status === null) {
    throw new Failure(
      'INVALID_FROM_ADDRESS',
      'from is missing and this organization has no default sender; send from, or make one with create_email_sender.',
    )
  }
  const what = from === null ? 'the domain of the default sender' : `the domain ${from.domain} of from`
  throw new Failure(
    'DOMAIN_NOT_VERIFIED',
    status === null
      ? `There is no sending domain for ${what}; add and verify it, or send from an address on a verified domain.`
      : `Email cannot be sent because ${what} is ${status}; verify it with verify_domain, or send from a verified one.`,
  )
}

type Backlog = { readAt: number; waiting: number }
const backlogs = new WeakMap<Services, Backlog>()

/** Refuses email that is not accepted by this file's statement, when the lane takes no more. */
export async function refuseBacklog(services: Services): Promise<void> {
  if (await hasBacklog(services)) refuseFull()
}

/** Over a minute of waiting email, the lane takes no more; the count is shared by all requests of a moment. */
async function hasBacklog(services: Services): Promise<boolean> {
  const rate = services.config.laneRates.transactional
  if (rate === 0) return false
  const most = rate * BACKLOG_SECONDS
  let backlog = backlogs.get(services)
  if (!backlog || performance.now() - backlog.readAt > BACKLOG_FRESH_MS) {
    backlog = { readAt: performance.now(), waiting: backlog?.waiting ?? 0 }
    backlogs.set(services, backlog)
    const found = await row<{ waiting: number }>(
      crossOrganization(services),
      sql`select count(*)::int as waiting from (select from delivery_queue
        where lane = 'transactional' and state = 'queued' limit ${most + 1}) waiting`,
    )
    backlog.waiting = found?.waiting ?? 0
  }
  return backlog.waiting > most
}

function refuseFull(): never {
  throw new Failure(
    'RATE_LIMITED',
    `More than ${BACKLOG_SECONDS} s of transactional email is waiting to be sent; repeat the request in a few seconds.`,
    { retryAfter: 5 },
  )
}
