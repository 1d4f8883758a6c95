import { sql } from 'kysely'

import { type DomainStatus, EMAIL_LINE, type SubscriberStatus } from '../../schema/values.ts'
import { Failure } from '../catalogue/failure.ts'
import { refuseToken } from '../catalogue/principal.ts'
import type { Call } from '../catalogue/tool.ts'
import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { prepared, row } from '../database.ts'
import { decodeId, newId } from '../ids.ts'
import type { Services } from '../services.ts'
import { asciiDomain, emailFault, readEmail } from './addresses.ts'
import type { MessageSource } from './messages.ts'
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
  domainStatus: DomainStatus | null
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
  await acceptEmail(call, id, email, { judgedOnly: false })
  call.wakeLane('transactional')
  return id
}

/** Refuses what sendTransactional would refuse, and sends nothing. */
export async function judgeTransactional(call: Call, email: TransactionalEmail): Promise<void> {
  await acceptEmail(call, newId(), email, { judgedOnly: true })
}

async function acceptEmail(
  call: Call,
  id: string,
  email: TransactionalEmail,
  { judgedOnly }: { judgedOnly: boolean },
): Promise<void> {
  readEmail(email.to, 'to')
  if (email.replyTo !== undefined) readEmail(email.replyTo, 'replyTo')
  oneLine(email.subject, 'subject', EMAIL_LINE)
  const from = typeof email.from === 'string' ? readFrom(email.from) : (email.from ?? null)
  await refuseBacklog(call.services)
  const found = await row<{ verdict: Verdict | null }>(call.em, acceptance(call, id, email, from, judgedOnly))
  if (found?.verdict) refuse(found.verdict, email.to, from)
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
  'select accept_transactional($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) as verdict',
)

function acceptance(
  { organization, actor }: Call,
  id: string,
  email: TransactionalEmail,
  from: From | null,
  judgedOnly: boolean,
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
  )
}

function refuse(verdict: Verdict, to: string, from: From | null): never {
  if (verdict.isTokenGone) refuseToken()
  if (verdict.domainStatus !== 'VERIFIED') refuseSender(verdict.domainStatus, from)
  const { recipientStatus, bounceCategory, suppression } = verdict
  const state = suppression === null ? (recipientStatus ?? 'unknown') : 'suppressed'
  const why = suppression ?? bounceCategory
  throw new Failure(
    'WRONG_STATE',
    `to is ${state}${why ? ` (${why})` : ''} and gets no email; reactivate the subscriber first, or send to another address.`,
    { details: { to, status: recipientStatus, bounceCategory, suppression } },
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

/** Over a minute of waiting email, the lane takes no more; the count is shared by all requests of a moment. */
export async function refuseBacklog(services: Services): Promise<void> {
  const rate = services.config.laneRates.transactional
  if (rate === 0) return
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
  if (backlog.waiting <= most) return
  throw new Failure(
    'RATE_LIMITED',
    `More than ${BACKLOG_SECONDS} s of transactional email is waiting to be sent; repeat the request in a few seconds.`,
    { retryAfter: 5 },
  )
}
