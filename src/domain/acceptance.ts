import type { StopReason } from '../../schema/deliverability.ts'
import type { DomainStatus, SubscriberStatus } from '../../schema/values.ts'
import type { KeptAnswer } from '../catalogue/idempotency.ts'
import type { Call } from '../catalogue/tool.ts'
import { type EntityManager, prepared, row, rows } from '../database.ts'
import { decodeId, encodeId, newId } from '../ids.ts'
import type { MessageSource } from './messages.ts'
import type { OverQuota } from './quota.ts'

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

/** An email that is to be accepted, with the id (uuid) that it gets; `from` is null for the default sender. */
export type Draft = {
  id: string
  email: TransactionalEmail
  from: From | null
  /** The lane takes no more; who repeats a key is answered all the same. */
  isFull: boolean
}

/** What stands in the way of an email. */
export type Verdict = {
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

/** The answer to an email that was accepted; the statement that accepts it keeps it for the key of the call. */
export function sentAnswer(id: string): { id: string } {
  return { id: encodeId('eml', id) }
}

const acceptTransactional = prepared(
  'accept_transactional',
  `select accept_transactional($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
    as verdict`,
)

/** Accepts an email, or only judges it; answers what stands in its way, or null. */
export async function acceptDraft(
  { em, organization, actor, keyed }: Call,
  { id, email, from, isFull }: Draft,
  { judgedOnly }: { judgedOnly: boolean } = { judgedOnly: false },
): Promise<Verdict | null> {
  const { to, replyTo, tracking } = email
  const found = await row<{ verdict: Verdict | null }>(
    em,
    acceptTransactional(
      organization.id,
      tokenOf(actor),
      id,
      newId(),
      from?.domain ?? null,
      from?.name ?? null,
      from?.email ?? null,
      to,
      replyTo ?? null,
      tracking,
      JSON.stringify(sourceOf(email)),
      judgedOnly,
      isFull,
      keyed?.key ?? null,
      keyed?.bodyHash ?? null,
      keyed?.operation ?? null,
      keyed ? JSON.stringify({ data: sentAnswer(id) }) : null,
    ),
  )
  return found?.verdict ?? null
}

const acceptTransactionals = prepared(
  'accept_transactionals',
  'select place, verdict from accept_transactionals($1, $2, $3, $4)',
)

/** Whose emails one statement accepts: an organization's, sent with one token (uuids). */
export type TokenScope = { organizationId: string; tokenId: string | null }

/** Whose emails this call sends. */
export function tokenScopeOf({ organization, actor }: Call): TokenScope {
  return { organizationId: organization.id, tokenId: tokenOf(actor) }
}

/** A draft as the statement for many takes it, as JSON. */
export function writeDraft({ keyed }: Call, { id, email, from, isFull }: Draft): string {
  const { to, replyTo, tracking } = email
  return JSON.stringify({
    id,
    newcomer: newId(),
    fromDomain: from?.domain,
    fromName: from?.name,
    fromEmail: from?.email,
    to,
    replyTo,
    tracking,
    source: sourceOf(email),
    isFull,
    ...(keyed && {
      key: keyed.key,
      hash: keyed.bodyHash.toString('hex'),
      operation: keyed.operation,
      answer: { data: sentAnswer(id) },
    }),
  })
}

/**
 * Accepts many by one statement; answers what stands in the way of which, by their places from 0. With `patienceMs`, a
 * wait for what others hold ends after so long, and the statement with it (55P03).
 */
export async function acceptDrafts(
  em: EntityManager,
  { organizationId, tokenId }: TokenScope,
  drafts: readonly string[],
  patienceMs?: number,
): Promise<Map<number, Verdict>> {
  const found = await rows<{ place: number; verdict: Verdict }>(
    em,
    acceptTransactionals(
      organizationId,
      tokenId,
      `[${drafts.join(',')}]`,
      patienceMs === undefined ? null : `${patienceMs}ms`,
    ),
  )
  return new Map(found.map(({ place, verdict }) => [place - 1, verdict]))
}

function tokenOf(actor: Call['actor']): string | null {
  return actor.kind === 'token' ? decodeId('tok', actor.id) : null
}

function sourceOf({ subject, content, contentType, preview, text }: TransactionalEmail): MessageSource {
  return { subject, content, contentType, preview, ...(text !== undefined && { text }) }
}
