import type { StopReason } from '../../../schema/deliverability.ts'
import type { DomainStatus, SubscriberStatus } from '../../../schema/values.ts'
import type { KeptAnswer } from '../../catalogue/idempotency.ts'
import type { Call } from '../../catalogue/tool.ts'
import { type EntityManager, prepared, row, rows } from '../../database.ts'
import { decodeId, encodeId, newId } from '../../ids.ts'
import type { MessageSource } from './messages.ts'
import type { OverQuota } from './quota.ts'

/** A transactional email to one recipient. */
export type TransactionalEmail = MessageSource & {
  to: string
  /** `a@b`, `Name <a@b>` or a sender of the organization; undefined means the default sender. */
  from: string | From | undefined
  replyTo: string | undefined
  tracking: boolean
}

/** The From address of an email; `domain` is its domain in ASCII. */
export type From = { name: string | null; email: string; domain: string }

/** An email to be accepted and the uuid it will get; `from` is null for the default sender. */
export type Draft = {
  id: string
  email: TransactionalEmail
  from: From | null
  /** Whether the lane accepts no more email. A repeated idempotency key still gets its stored answer. */
  isFull: boolean
}

/** Why an email is not accepted, with the facts that the error needs. */
export type Verdict = {
  isTokenGone?: true
  isFull?: true
  overQuota?: OverQuota
  /** The stored answer to the idempotency key of the call; nothing else is judged then. */
  kept?: KeptAnswer
  domainStatus: DomainStatus | null
  stoppedFor: StopReason | null
  recipientStatus: SubscriberStatus | null
  bounceCategory: string | null
  suppression: string | null
}

/** Returns the answer to an accepted email. The accepting statement stores it under the call's idempotency key. */
export function sentAnswer(id: string): { id: string } {
  return { id: encodeId('eml', id) }
}

const acceptTransactional = prepared(
  'accept_transactional',
  `select accept_transactional($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
    as verdict`,
)

/** Accepts an email, or with `judgedOnly` only checks it. Returns why it is refused, or null. */
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

/** The emails that one statement can accept: those of one organization and token (uuids). */
export type TokenScope = { organizationId: string; tokenId: string | null }

/** Returns the token scope of a call. */
export function tokenScopeOf({ organization, actor }: Call): TokenScope {
  return { organizationId: organization.id, tokenId: tokenOf(actor) }
}

/** Returns a draft as the JSON that `acceptDrafts` takes. */
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
 * Accepts many emails in one statement. Returns the verdicts of the refused ones by their index. With `patienceMs`, the
 * statement fails with 55P03 after waiting so long for a lock.
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
