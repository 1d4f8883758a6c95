import { sql } from 'kysely'

import type {
  ExportedSubscriber,
  QueryField,
  StatusCounts,
  Subscriber,
  SuppressedSubscriber,
} from '../../../schema/subscriber.ts'
import { SUBSCRIBER_STATUSES, type SubscriberStatus } from '../../../schema/values.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row, rows } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { type Audience, everybody, pageOf, type Question, readAudience } from '../audience/question.ts'
import { decodeCursor, encodeCursor, readPosition } from '../cursor.ts'
import { keyset, type Keyset, readWalk, type Walk } from '../keyset.ts'
import { timestamp, timestampOrNull } from '../text.ts'
import { presentRecord, RECORD_FIELDS, selectRecords } from './records.ts'
import { findTag, type TagChoice } from './tag-records.ts'

/** The page that a caller asks for. */
type Paging = { limit: number; cursor?: string | undefined }
type Page<Item> = { subscribers: Item[]; nextCursor: string | null; hasMore: boolean }

/** Filters of a subscriber list. */
type Narrowing = {
  status: SubscriberStatus | 'all'
  tag?: string | undefined
  query?: string | undefined
}

/** Lists subscribers, newest first. The cursor is an id, and works after its subscriber was deleted. */
export async function listSubscribers(call: Call, asked: Narrowing & Paging): Promise<Page<Subscriber>> {
  const { limit, cursor } = asked
  const page = keyset(cursor === undefined ? null : readPosition('sub', cursor), limit)
  const audience = await narrowed(call, asked)
  if (!audience) return { subscribers: [], nextCursor: null, hasMore: false }
  return asCursorPage(await readPage(call, audience, page, RECORD_FIELDS), (last) => last)
}

/** Lists the same subscribers by keyset, in both directions. */
export async function browseSubscribers(
  call: Call,
  asked: Narrowing & Walk,
): Promise<{ subscribers: Subscriber[]; hasMore: boolean }> {
  const walk = readWalk('sub', asked)
  const audience = await narrowed(call, asked)
  if (!audience) return { subscribers: [], hasMore: false }
  const { page, hasMore } = await readPage(call, audience, walk, RECORD_FIELDS)
  return { subscribers: page, hasMore }
}

/** Returns the audience of a list; null when there is no such tag, so that nobody matches. */
async function narrowed(call: Call, { status, tag, query }: Narrowing): Promise<Audience | null> {
  const tagId = tag === undefined ? undefined : await tagNamed(call, tag)
  if (tagId === null) return null
  return await readAudience(call, {
    query,
    ...(status !== 'all' && { statuses: [status] }),
    ...(tagId !== undefined && { tagId }),
  })
}

/** The input of count_subscribers; query_subscribers adds fields and a page. */
export type SubscriberQuery = {
  filters: readonly unknown[]
  status: SubscriberStatus | 'ALL'
  query?: string | undefined
}

/** Returns a page of matching subscribers, newest first, with only the requested members. */
export async function querySubscribers(
  call: Call,
  { fields, limit, cursor, ...query }: SubscriberQuery & Paging & { fields: readonly QueryField[] },
): Promise<Page<Partial<Subscriber>>> {
  const asked = ['query_subscribers', call.organization.id, query]
  const page = keyset(readBoundCursor(asked, cursor), limit)
  const audience = await readAudience(call, questionOf(query))
  const members = fields.includes('id') ? fields : (['id', ...fields] as const)
  const found = await readPage(call, audience, page, members)
  const { subscribers, ...rest } = asCursorPage(found, (last) => encodeCursor(asked, last))
  return { subscribers: fields.includes('id') ? subscribers : subscribers.map(withoutId), ...rest }
}

/** Counts matching subscribers. */
export async function countSubscribers(call: Call, query: SubscriberQuery): Promise<number> {
  const audience = await readAudience(call, questionOf(query))
  const found = await row<{ total: number }>(
    call.em,
    sql`select count(*)::int as total from (${everybody(audience)}) as found`,
  )
  return found?.total ?? 0
}

/** Counts matching subscribers by status. */
export async function countByStatus(
  call: Call,
  question: { filters: readonly unknown[]; query?: string | undefined },
): Promise<StatusCounts> {
  const audience = await readAudience(call, question)
  const found = await rows<{ status: SubscriberStatus; count: number }>(
    call.em,
    sql`select status, count(*)::int as count from (${everybody(audience)}) as found group by status`,
  )
  return statusCounts(found)
}

/** Returns counts for all statuses, with zero for missing ones. */
export function statusCounts(found: readonly { status: SubscriberStatus; count: number }[]): StatusCounts {
  const known = new Map(found.map(({ status, count }) => [status, count]))
  const counts = SUBSCRIBER_STATUSES.map((status) => [status, known.get(status) ?? 0] as const)
  // The keys are exactly the statuses, but the type of fromEntries loses them.
  return Object.fromEntries(counts) as StatusCounts
}

/** Lists the subscribers with a tag, newest first. */
export async function listByTag(
  call: Call,
  { limit, cursor, ...choice }: TagChoice & Paging,
): Promise<Page<Subscriber>> {
  const tag = await findTag(call, choice)
  const asked = ['get_subscribers_by_tag', call.organization.id, tag.id]
  const page = keyset(readBoundCursor(asked, cursor), limit)
  const audience = await readAudience(call, { tagId: tag.id })
  const found = await readPage(call, audience, page, RECORD_FIELDS)
  return asCursorPage(found, (last) => encodeCursor(asked, last))
}

/** Lists subscribers of the given statuses (bounced or complained), newest first, with the reason if known. */
export async function listSuppressed(
  call: Call,
  { statuses, limit, cursor }: Paging & { statuses: readonly SuppressedSubscriber['status'][] },
): Promise<Page<SuppressedSubscriber>> {
  const asked = ['list_suppressed_subscribers', call.organization.id, [...statuses].sort()]
  const page = keyset(readBoundCursor(asked, cursor), limit)
  const audience = await readAudience(call, { statuses: [...new Set(statuses)] })
  const found = await rows<SuppressedSubscriber>(
    call.em,
    sql`select s.id, s.email, s.name, s.status, s.bounce_category as "bounceCategory", blocked.reason,
        blocked.created_at as "suppressedAt", s.created_at as "createdAt"
      from (${pageOf(audience, page)}) as s
      left join lateral (
        select reason, created_at from suppression where organization_id = ${call.organization.id}
          and email_key = any(suppression_keys(${call.organization.id}, s.email_key)) order by reason limit 1
      ) as blocked on true
      ${page.order(sql`s.id`)}`,
  )
  const shown = page.page(found)
  const people = shown.page.map((person) => ({
    ...person,
    id: encodeId('sub', person.id),
    suppressedAt: timestampOrNull(person.suppressedAt),
    createdAt: timestamp(person.createdAt),
  }))
  return asCursorPage({ page: people, hasMore: shown.hasMore }, (last) => encodeCursor(asked, last))
}

const EXPORTED = ['email', 'name', 'phone', 'status', 'tags', 'customFields', 'createdAt'] as const

/** Returns the newest subscribers with a status and a tag, for an export. */
export async function exportedSubscribers(
  call: Call,
  asked: { status?: SubscriberStatus | undefined; tag?: string | undefined; limit: number },
): Promise<ExportedSubscriber[]> {
  const tagId = asked.tag === undefined ? undefined : await tagNamed(call, asked.tag)
  if (tagId === null) return []
  const audience = await readAudience(call, {
    ...(asked.status !== undefined && { statuses: [asked.status] }),
    ...(tagId !== undefined && { tagId }),
  })
  const { page } = await readPage(call, audience, keyset(null, asked.limit), ['id', ...EXPORTED])
  return page.map(({ email, name, phone, status, tags, customFields, createdAt }) => ({
    email,
    name,
    phone,
    status,
    tags,
    customFields,
    createdAt,
  }))
}

function withoutId(found: Partial<Subscriber>): Partial<Subscriber> {
  const { id: _id, ...rest } = found
  return rest
}

/** Returns the requested members of a page of subscribers. */
async function readPage(
  { em }: Call,
  audience: Audience,
  walk: Keyset,
  fields: readonly (keyof Subscriber)[],
): Promise<{ page: Subscriber[]; hasMore: boolean }> {
  const people = sql`(${pageOf(audience, walk)})`
  const found = await rows<Subscriber>(
    em,
    sql`${selectRecords(fields, people)} ${walk.order(sql`subscriber.id`)}`,
  )
  const { page, hasMore } = walk.page(found)
  return { page: page.map(presentRecord), hasMore }
}

/** Returns a page in the form of the tools; `cursorOf` makes a cursor from the id of its last record. */
function asCursorPage<Item extends { id: string }>(
  { page, hasMore }: { page: Item[]; hasMore: boolean },
  cursorOf: (last: string) => string,
): Page<Item> {
  const last = page.at(-1)
  return { subscribers: page, nextCursor: hasMore && last ? cursorOf(last.id) : null, hasMore }
}

function questionOf({ filters, status, query }: SubscriberQuery): Question {
  return { filters, query, ...(status !== 'ALL' && { statuses: [status] }) }
}

/** Returns the uuid of a tag by name, ignoring letter case; null when there is none. */
async function tagNamed({ em, organization }: Call, name: string): Promise<string | null> {
  const found = await row<{ id: string }>(
    em,
    sql`select id from tag where organization_id = ${organization.id} and name_key = lower(${name})`,
  )
  return found?.id ?? null
}

function readBoundCursor(asked: unknown, cursor: string | undefined): string | null {
  return cursor === undefined ? null : decodeCursor(asked, 'sub', cursor)
}
