import { sql } from 'kysely'

import type {
  ImportedReason,
  SuppressedAddresses,
  Suppression,
  SuppressionReason,
} from '../../../schema/suppression.ts'
import type { SubscriberStatus } from '../../../schema/values.ts'
import { audit } from '../../catalogue/audit.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call, Impact } from '../../catalogue/tool.ts'
import { array, rows } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { emailFault, readEmail } from '../addresses.ts'
import { decodeCursor, encodeCursor } from '../cursor.ts'
import { recordEvents } from '../events.ts'
import { keyset } from '../keyset.ts'
import { timestamp } from '../text.ts'

/** The status that a suppression gives a subscriber, and the statuses it does not change. */
const LEADS_TO: Readonly<
  Record<ImportedReason, { status: SubscriberStatus; notFrom: readonly SubscriberStatus[] }>
> = {
  MANUAL: { status: 'BANNED', notFrom: ['BANNED'] },
  COMPLAINT: { status: 'COMPLAINED', notFrom: ['BANNED', 'COMPLAINED'] },
  HARD_BOUNCE: { status: 'BOUNCED', notFrom: ['BANNED', 'COMPLAINED', 'BOUNCED'] },
}

type Row = Suppression & { id: string }
type Moved = { id: string; from: SubscriberStatus; to: SubscriberStatus }

/** Lists suppressed addresses, newest first. */
export async function listSuppressions(
  { em, organization }: Call,
  asked: { reason?: SuppressionReason | undefined; limit: number; cursor?: string | undefined },
): Promise<{ suppressions: Suppression[]; nextCursor: string | null; hasMore: boolean }> {
  const { reason = null, limit, cursor } = asked
  const query = ['list_suppressions', organization.id, reason]
  const walk = keyset(cursor === undefined ? null : decodeCursor(query, 'sup', cursor), limit)
  const found = await rows<Row>(
    em,
    sql`select id, case when email_key like 'sha256:%' then null else email_key end as email, reason, source,
        created_at as "createdAt"
      from suppression where organization_id = ${organization.id}
        ${reason === null ? sql`` : sql`and reason = ${reason}`} ${walk.part(sql`id`)}`,
  )
  const { page, hasMore } = walk.page(found)
  const last = page.at(-1)
  return {
    suppressions: page.map(({ id: _id, ...row }) => ({ ...row, createdAt: timestamp(row.createdAt) })),
    nextCursor: hasMore && last ? encodeCursor(query, encodeId('sup', last.id)) : null,
    hasMore,
  }
}

/**
 * Suppresses addresses in the caller's transaction and updates their subscribers. Invalid addresses are returned by
 * index. An address that is suppressed already keeps its reason, except that MANUAL replaces any other.
 */
export async function addSuppressions(
  call: Call,
  emails: readonly string[],
  { reason, source }: { reason: ImportedReason; source: 'api' | 'import' },
): Promise<SuppressedAddresses> {
  const { em, organization } = call
  const judged = emails.map((email, index) => ({ index, email, error: emailFault(email) }))
  const errors = judged.flatMap(({ index, email, error }) =>
    error === null ? [] : [{ index, email, error }],
  )
  const addresses = judged.flatMap(({ email, error }) => (error === null ? [email] : []))
  // Sorted, so that two concurrent lists wait for each other instead of deadlocking.
  const keys = sql`(select distinct lower(address) as email_key
    from unnest(${array(addresses, 'text')}) as address order by email_key)`
  const written = await rows<{ isNew: boolean }>(
    em,
    sql`insert into suppression as known (id, organization_id, email_key, reason, source)
      select new_id(), ${organization.id}, email_key, ${reason}, ${source} from ${keys} as given
      on conflict (organization_id, email_key) do update set reason = excluded.reason, source = excluded.source
        where excluded.reason = 'MANUAL' and known.reason <> 'MANUAL'
      returning known.xmax = 0 as "isNew"`,
  )
  const moved = await rows<Moved>(
    em,
    sql`with found as (
        select id, status from subscriber where organization_id = ${organization.id}
          and email_key = any(array${keys}) and status <> all(${array(LEADS_TO[reason].notFrom, 'text')})
        order by id for update)
      update subscriber s set status = ${LEADS_TO[reason].status},
        bounce_category = case when ${reason} = 'HARD_BOUNCE' then 'NO_SUCH_USER' else s.bounce_category end
      from found where s.organization_id = ${organization.id} and s.id = found.id
      returning s.id, found.status as from, s.status as to`,
  )
  await tellMoves(call, moved)
  const added = written.filter(({ isNew }) => isNew).length
  await audit(call, 'suppression.added', `${addresses.length} addresses`, { reason, added })
  return { added, known: emails.length - errors.length - added, errors }
}

/**
 * Removes the suppression of an address. A BANNED subscriber becomes UNSUBSCRIBED, because lifting a ban does not
 * restore consent; other statuses stay. Returns the removed reason, or throws `NOT_FOUND`.
 */
export async function removeSuppression(call: Call, email: string): Promise<SuppressionReason> {
  const { em, organization } = call
  const address = readEmail(email, 'email')
  const keys = sql`email_key = any(suppression_keys(${organization.id}, ${address}))`
  const [lifted] = await rows<{ id: string; reason: SuppressionReason }>(
    em,
    sql`with lifted as (delete from suppression where organization_id = ${organization.id} and ${keys} returning *)
      select id, reason from lifted order by reason`,
  )
  if (!lifted) return refuseUnknown(email)
  const moved = await rows<Moved>(
    em,
    sql`update subscriber set status = 'UNSUBSCRIBED' where organization_id = ${organization.id}
      and email_key = lower(${address}) and status = 'BANNED' returning id, 'BANNED' as from, status as to`,
  )
  await tellMoves(call, moved)
  await audit(call, 'suppression.removed', encodeId('sup', lifted.id), { reason: lifted.reason })
  return lifted.reason
}

/** Summarizes what adding suppressions will do. */
export function summarizeSuppressing(emails: readonly string[], reason: ImportedReason): Impact {
  const [only = ''] = emails
  const { status } = LEADS_TO[reason]
  return {
    target: emails.length === 1 ? only : `${emails.length} addresses`,
    effects: [
      `No email of any kind is sent there any more; a subscriber with such an address becomes ${status}.`,
    ],
    warnings: [],
  }
}

/** Summarizes what removing a suppression will do. */
export async function summarizeRemoval({ em, organization }: Call, email: string): Promise<Impact> {
  const address = readEmail(email, 'email')
  const [found] = await rows<{ reason: SuppressionReason; status: SubscriberStatus | null }>(
    em,
    sql`select b.reason, s.status from suppression b left join subscriber s
        on s.organization_id = b.organization_id and s.email_key = lower(${address})
      where b.organization_id = ${organization.id}
        and b.email_key = any(suppression_keys(${organization.id}, ${address})) order by b.reason`,
  )
  if (!found) return refuseUnknown(email)
  const { reason, status } = found
  const stays = status === 'BOUNCED' || status === 'COMPLAINED'
  return {
    target: email,
    effects: [
      `The suppression (${reason}) is lifted.`,
      ...(status === 'BANNED' ? ['The subscriber moves from BANNED to UNSUBSCRIBED.'] : []),
      ...(stays ? [`The subscriber stays ${status}; reactivate_subscriber subscribes them again.`] : []),
    ],
    warnings: reason === 'MANUAL' ? [] : ['Bounces and complaints harm the delivery of your other email.'],
  }
}

function refuseUnknown(email: string): never {
  throw new Failure(
    'NOT_FOUND',
    `${JSON.stringify(email.slice(0, 254))} is not suppressed in this organization; list_suppressions shows which addresses are.`,
  )
}

async function tellMoves(call: Call, moved: readonly Moved[]): Promise<void> {
  await recordEvents(
    call,
    moved.map(({ id, from, to }) => ({
      subscriberId: id,
      type: 'FIELD_UPDATED',
      data: { field: 'status', custom: false, from, to },
    })),
  )
}
