import { type RawBuilder, sql } from 'kysely'

import type { Subscriber } from '../../schema/subscriber.ts'
import type { SubscriberStatus } from '../../schema/values.ts'
import { Failure } from '../catalogue/failure.ts'
import type { Call } from '../catalogue/tool.ts'
import { array, row, rows } from '../database.ts'
import { decodeId, encodeId, missing, readId } from '../ids.ts'
import { likeLiteral, refuse, timestamp } from './text.ts'

/** How a caller names a person: exactly one of the two. */
export type SubscriberChoice = { subscriberId?: string | undefined; email?: string | undefined }

/** The choice in one text that is an id or an email address. */
export function chooseSubscriber(subscriber: string): SubscriberChoice {
  return subscriber.includes('@') ? { email: subscriber } : { subscriberId: subscriber }
}

/** A person inside the database layer: what decisions are made from. */
export type SubscriberRow = {
  id: string
  email: string
  name: string | null
  phone: string | null
  country: string | null
  ipAddress: string | null
  status: SubscriberStatus
  fields: Record<string, string | number | boolean>
}

/** The columns of SubscriberRow, of the table or alias `subscriber`. */
export const SUBSCRIBER_COLUMNS = sql`subscriber.id, subscriber.email, subscriber.name, subscriber.phone,
  subscriber.country, subscriber.ip_address as "ipAddress", subscriber.status, subscriber.fields`

/** The condition that finds the one person a caller names; refuses both and neither. */
export function subscriberCondition({ subscriberId, email }: SubscriberChoice): RawBuilder<boolean> {
  if ((subscriberId === undefined) === (email === undefined)) {
    refuse('subscriberId', 'and email stand for the same person: send exactly one of them.')
  }
  if (subscriberId !== undefined) return sql<boolean>`subscriber.id = ${decodeId('sub', subscriberId)}`
  return sql<boolean>`subscriber.email_key = lower(${email})`
}

/** The person a caller names by id or email, or NOT_FOUND; `lock` keeps the row for a change. */
export async function findSubscriber(
  { em, organization }: Call,
  choice: SubscriberChoice,
  options: { lock?: boolean } = {},
): Promise<SubscriberRow> {
  const found = await row<SubscriberRow>(
    em,
    sql`select ${SUBSCRIBER_COLUMNS} from subscriber
      where subscriber.organization_id = ${organization.id} and ${subscriberCondition(choice)}
      ${options.lock ? sql`for update` : sql``}`,
  )
  return found ?? missingSubscriber(choice)
}

/** NOT_FOUND for a person, by whatever the caller named. */
export function missingSubscriber({ subscriberId, email }: SubscriberChoice): never {
  if (subscriberId !== undefined) missing('sub', subscriberId)
  throw new Failure(
    'NOT_FOUND',
    `There is no subscriber with the email ${JSON.stringify((email ?? '').slice(0, 260))} in this organization; add_subscriber makes one.`,
  )
}

type RecordRow = Omit<Subscriber, 'tags'> & { tags: string[] }

const RECORD = sql`subscriber.id, subscriber.email, subscriber.name, subscriber.phone, subscriber.status,
  subscriber.country, subscriber.fields as "customFields",
  array(select tag.name from subscriber_tag link
    join tag on tag.organization_id = link.organization_id and tag.id = link.tag_id
    where link.organization_id = subscriber.organization_id and link.subscriber_id = subscriber.id
    order by tag.name_key) as tags,
  coalesce(stat.revenue, 0)::float8 as revenue, coalesce(stat.email_count, 0) as "emailCount",
  coalesce(stat.open_count, 0) as "openCount", coalesce(stat.click_count, 0) as "clickCount",
  subscriber.created_at as "createdAt", subscriber.updated_at as "updatedAt"`

const STAT = sql`left join subscriber_stat stat
  on stat.organization_id = subscriber.organization_id and stat.subscriber_id = subscriber.id`

/** The record of one person, by the id of the database layer. */
export async function readSubscriber({ em, organization }: Call, id: string): Promise<Subscriber> {
  return await readRecord({ em, organization }, sql<boolean>`subscriber.id = ${id}`, () =>
    missing('sub', encodeId('sub', id)),
  )
}

/** The record of the person a caller names; one statement. */
export async function getSubscriber(call: Call, choice: SubscriberChoice): Promise<Subscriber> {
  return await readRecord(call, subscriberCondition(choice), () => missingSubscriber(choice))
}

async function readRecord(
  { em, organization }: Pick<Call, 'em' | 'organization'>,
  condition: RawBuilder<boolean>,
  refused: () => never,
): Promise<Subscriber> {
  const found = await row<RecordRow>(
    em,
    sql`select ${RECORD} from subscriber ${STAT}
      where subscriber.organization_id = ${organization.id} and ${condition}`,
  )
  return found ? present(found) : refused()
}

/** What list_subscribers takes. */
export type SubscriberQuery = {
  limit: number
  status: SubscriberStatus | 'all'
  tag?: string | undefined
  query?: string | undefined
  cursor?: string | undefined
}

/** A page of people, newest first; the cursor is a position and may name somebody who is gone. */
export async function listSubscribers(
  { em, organization }: Call,
  { limit, status, tag, query, cursor }: SubscriberQuery,
): Promise<{ subscribers: Subscriber[]; nextCursor: string | null; hasMore: boolean }> {
  const conditions = [sql`subscriber.organization_id = ${organization.id}`]
  if (status !== 'all') conditions.push(sql`subscriber.status = ${status}`)
  const position = tag === undefined ? sql`subscriber.id` : sql`link.subscriber_id`
  if (cursor !== undefined) conditions.push(sql`${position} < ${readCursor(cursor)}`)
  if (query?.trim()) conditions.push(search(query.trim()))
  const found = await rows<RecordRow>(
    em,
    sql`with page as (
        select subscriber.* from ${tag === undefined ? sql`subscriber` : carriersOf(organization.id, tag)}
        where ${sql.join(conditions, sql` and `)} order by ${position} desc limit ${limit + 1}
      )
      select ${RECORD} from page subscriber ${STAT} order by subscriber.id desc`,
  )
  const hasMore = found.length > limit
  const subscribers = found.slice(0, limit).map(present)
  return { subscribers, nextCursor: hasMore ? (subscribers.at(-1)?.id ?? null) : null, hasMore }
}

/** Who has a tag, walked along the index of the tag, so that a rare tag is as quick as a common one. */
function carriersOf(organizationId: string, tag: string): RawBuilder<unknown> {
  return sql`(select tag_id, subscriber_id from subscriber_tag where organization_id = ${organizationId}
      and tag_id = (select id from tag where organization_id = ${organizationId} and name_key = lower(${tag}))) as link
    join subscriber on subscriber.organization_id = ${organizationId} and subscriber.id = link.subscriber_id`
}

function readCursor(cursor: string): string {
  return (
    readId('sub', cursor) ??
    refuse(
      'cursor',
      'is not a position in this list; send the nextCursor of the page before, or leave it out.',
    )
  )
}

/** A part of the email or the name, whatever its letter case; an index of trigrams answers it. */
function search(text: string): RawBuilder<boolean> {
  const pattern = `%${likeLiteral(text)}%`
  return sql<boolean>`(subscriber.email_key like lower(${pattern}) or subscriber.name ilike ${pattern})`
}

function present(found: RecordRow): Subscriber {
  return {
    ...found,
    id: encodeId('sub', found.id),
    createdAt: timestamp(found.createdAt),
    updatedAt: timestamp(found.updatedAt),
  }
}

/** Ids of the database layer for ids on the wire, each once; one that is missing here refuses all, naming the missing. */
export async function findSubscriberIds(
  { em, organization }: Call,
  ids: readonly string[],
): Promise<string[]> {
  const known = ids.map((id) => readId('sub', id)).filter((id) => id !== null)
  const found = await rows<{ id: string }>(
    em,
    sql`select id from subscriber where organization_id = ${organization.id} and id = any(${array(known, 'uuid')})`,
  )
  const present = new Set(found.map(({ id }) => encodeId('sub', id)))
  const lost = ids.filter((id) => !present.has(id))
  if (lost.length === 0) return found.map(({ id }) => id)
  throw new Failure(
    'NOT_FOUND',
    `There is no subscriber ${JSON.stringify(lost[0]?.slice(0, 80))} in this organization${lost.length > 1 ? ` (and ${lost.length - 1} more, see details)` : ''}; nothing was changed, repeat the call without them.`,
    { details: { missing: lost } },
  )
}
