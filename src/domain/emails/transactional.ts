import { sql } from 'kysely'

import type { StopReason } from '../../../schema/deliverability.ts'
import { type DomainStatus, EMAIL_LINE } from '../../../schema/values.ts'
import { Failure } from '../../catalogue/failure.ts'
import { type KeptAnswer, readKept, replay } from '../../catalogue/idempotency.ts'
import { refuseToken } from '../../catalogue/principal.ts'
import type { Call } from '../../catalogue/tool.ts'
import { type EntityManager, row, rows } from '../../database.ts'
import { decodeId, newId } from '../../ids.ts'
import type { Services } from '../../services.ts'
import { asciiDomain, ownEmailFault, readEmail, readOwnEmail } from '../addresses.ts'
import { WORDS_OF } from '../deliverability/stop-words.ts'
import { oneLine } from '../text.ts'
import { acceptGrouped } from './acceptance-groups.ts'
import {
  acceptDraft,
  acceptDrafts,
  type Draft,
  type From,
  tokenScopeOf,
  type TransactionalEmail,
  type Verdict,
  writeDraft,
} from './acceptance.ts'
import { refuseQuota } from './quota.ts'

const BACKLOG_SECONDS = 60
const BACKLOG_FRESH_MS = 250
const MAXIMUM_NAME = 200

/**
 * Accepts one transactional email. One database function checks token, sender, recipient and suppressions and writes
 * the rows, in one round trip that concurrent emails share. An unknown recipient becomes a TRANSACTIONAL subscriber.
 * Returns the uuid of the message, which exists once the transaction commits.
 */
export async function sendTransactional(call: Call, email: TransactionalEmail): Promise<string> {
  const id = newId()
  const earlier = await acceptEmail(call, id, email)
  if (earlier !== null) return earlier
  call.wakeLane('transactional')
  return id
}

/**
 * Accepts many emails in the caller's transaction. When one is refused, `refused` is called with the error and its
 * index, and its throw ends the transaction. Too many emails for the month are an error of the whole list. Returns the
 * uuids in input order.
 */
export async function sendTransactionals(
  call: Call,
  emails: readonly TransactionalEmail[],
  refused: (error: unknown, index: number) => never,
): Promise<string[]> {
  const drafts = emails.map((email, place): Draft => {
    try {
      return { id: newId(), email, from: readEnvelope(email), isFull: false }
    } catch (error) {
      return refused(error, place)
    }
  })
  await refuseBacklog(call)
  const written = drafts.map((draft) => writeDraft(call, draft))
  const verdicts = await acceptDrafts(call.em, tokenScopeOf(call), written)
  for (const [place, { email, from }] of drafts.entries()) {
    const verdict = verdicts.get(place)
    if (verdict?.overQuota) {
      const { allowed } = verdict.overQuota
      const left = drafts.length - verdicts.size
      const fewer = `leave at most ${allowed} of them in emails`
      refuseQuota({ allowed, left }, call.now, drafts.length, fewer)
    }
    try {
      if (verdict) refuse(call, verdict, email.to, from)
    } catch (error) {
      refused(error, place)
    }
  }
  call.wakeLane('transactional')
  return drafts.map(({ id }) => id)
}

/** Throws what `sendTransactional` would throw, and sends nothing. */
export async function judgeTransactional(call: Call, email: TransactionalEmail): Promise<void> {
  const draft = await readDraft(call, newId(), email)
  const verdict = await acceptDraft(call, draft, { judgedOnly: true })
  if (verdict) refuse(call, verdict, email.to, draft.from)
}

/** Accepts an email. Returns null, or the uuid of the email that the call's idempotency key already made. */
async function acceptEmail(call: Call, id: string, email: TransactionalEmail): Promise<string | null> {
  const draft = await readDraft(call, id, email)
  const isAlone = call.em.isInTransaction()
  const verdict = await (isAlone ? acceptDraft(call, draft) : acceptGrouped(call, draft))
  if (verdict?.kept) return earlierId(verdict.kept)
  if (verdict) refuse(call, verdict, email.to, draft.from)
  return null
}

async function readDraft(call: Call, id: string, email: TransactionalEmail): Promise<Draft> {
  return { id, email, from: readEnvelope(email), isFull: await hasBacklog(call) }
}

function earlierId(kept: KeptAnswer): string {
  return decodeId('eml', String(Object(replay(readKept(kept))).id))
}

/** Checks the header lines of an email and returns its sender; null means the default sender. */
function readEnvelope({ to, replyTo, subject, from }: TransactionalEmail): From | null {
  readEmail(to, 'to')
  if (replyTo !== undefined) readOwnEmail(replyTo, 'replyTo')
  oneLine(subject, 'subject', EMAIL_LINE)
  return typeof from === 'string' ? readFrom(from) : (from ?? null)
}

/** Parses `a@b`, `<a@b>`, `Name <a@b>` or `"Name" <a@b>`. */
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
  return ownEmailFault(email)
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

type Backlog = { readAt: number; refused: ReadonlySet<string> }
const backlogs = new WeakMap<Services, Backlog>()

/** Throws `RATE_LIMITED` when the lane accepts no more email of the organization; for other ways to enqueue email. */
export async function refuseBacklog(call: Call): Promise<void> {
  if (await hasBacklog(call)) refuseFull()
}

/**
 * Whether the lane refuses more email of the organization. When more than a minute of email is waiting, an organization
 * is refused that has more than an equal share of that minute. The lane serves organizations in turn, so email of the
 * others still leaves within the minute. The result is cached for `BACKLOG_FRESH_MS`.
 */
async function hasBacklog({ em, services, organization }: Call): Promise<boolean> {
  const rate = services.config.laneRates.transactional
  if (rate === 0) return false
  let backlog = backlogs.get(services)
  if (!backlog || performance.now() - backlog.readAt > BACKLOG_FRESH_MS) {
    backlog = { readAt: performance.now(), refused: backlog?.refused ?? new Set() }
    backlogs.set(services, backlog)
    backlog.refused = await findCrowding(em, rate * BACKLOG_SECONDS)
  }
  return backlog.refused.has(organization.id)
}

/**
 * Returns the organizations (uuids) with more than an equal share of `most` waiting emails; empty below `most`. `em` is
 * that of the call: calls that held their connection and waited for a second one could keep each other waiting.
 */
async function findCrowding(em: EntityManager, most: number): Promise<Set<string>> {
  const waiting = sql`delivery_queue where lane = 'transactional' and state = 'queued'`
  const found = await row<{ waiting: number }>(
    em,
    sql`select count(*)::int as waiting from (select from ${waiting} limit ${most + 1}) waiting`,
  )
  if ((found?.waiting ?? 0) <= most) return new Set()
  const crowding = await rows<{ id: string }>(
    em,
    sql`with recursive sender as (
        (select organization_id as id from ${waiting} order by organization_id limit 1)
        union all
        select following.id from sender cross join lateral (select organization_id as id from ${waiting}
          and organization_id > sender.id order by organization_id limit 1) following
      ), part as materialized (select ${most} / greatest(count(*), 1) as emails from sender)
      select sender.id from part, sender cross join lateral (select count(*) as emails from (
        select from ${waiting} and organization_id = sender.id limit part.emails + 1) each) own
      where own.emails > part.emails`,
  )
  return new Set(crowding.map(({ id }) => id))
}

function refuseFull(): never {
  throw new Failure(
    'RATE_LIMITED',
    `More than ${BACKLOG_SECONDS} s of transactional email is waiting to be sent, and much of it is yours; repeat the request in a few seconds.`,
    { retryAfter: 5 },
  )
}
