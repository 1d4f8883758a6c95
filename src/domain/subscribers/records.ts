import { type RawBuilder, sql } from 'kysely'

import type { Subscriber } from '../../../schema/subscriber.ts'
import type { SubscriberStatus } from '../../../schema/values.ts'
import { Failure, refuse } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, type EntityManager, row, rows } from '../../database.ts'
import { decodeId, encodeId, missing, readId } from '../../ids.ts'
import { timestamp } from '../text.ts'

/** Names a subscriber: exactly one of the two members. */
export type SubscriberChoice = { subscriberId?: string | undefined; email?: string | undefined }

/** Returns the choice for a text that is an id or an email address. */
export function chooseSubscriber(subscriber: string): SubscriberChoice {
  return subscriber.includes('@') ? { email: subscriber } : { subscriberId: subscriber }
}

/** A subscriber as domain rules need it; `id` is a uuid. */
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

/** The columns of `SubscriberRow` from the table or alias `subscriber`. */
export const SUBSCRIBER_COLUMNS = sql`subscriber.id, subscriber.email, subscriber.name, subscriber.phone,
  subscriber.country, subscriber.ip_address as "ipAddress", subscriber.status, subscriber.fields`

/**
 * Returns the condition that finds the named subscriber. Throws `INVALID_INPUT` when both members or none are given.
 */
export function subscriberCondition({ subscriberId, email }: SubscriberChoice): RawBuilder<boolean> {
  if ((subscriberId === undefined) === (email === undefined)) {
    refuse('subscriberId', 'and email stand for the same person: send exactly one of them.')
  }
  if (subscriberId !== undefined) return sql<boolean>`subscriber.id = ${decodeId('sub', subscriberId)}`
  return sql<boolean>`subscriber.email_key = lower(${email})`
}

/** Returns a subscriber by id or email. Throws `NOT_FOUND` when there is none. `lock` locks the row. */
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

/** Throws `NOT_FOUND` for a subscriber as the caller named them. */
export function missingSubscriber({ subscriberId, email }: SubscriberChoice): never {
  if (subscriberId !== undefined) missing('sub', subscriberId)
  throw new Failure(
    'NOT_FOUND',
    `There is no subscriber with the email ${JSON.stringify((email ?? '').slice(0, 260))} in this organization; add_subscriber makes one.`,
  )
}

/** A subscriber and the organization that writes to them, as shown on pages behind email links. */
export type NamedReader = { organization: string; email: string; status: SubscriberStatus }

/** Returns the subscriber that a link names (uuids); null when they are gone. */
export async function findNamedReader(
  em: EntityManager,
  organizationId: string,
  subscriberId: string,
): Promise<NamedReader | null> {
  return await row<NamedReader>(
    em,
    sql`select organization.name as organization, subscriber.email, subscriber.status
      from subscriber join organization on organization.id = subscriber.organization_id
      where subscriber.organization_id = ${organizationId} and subscriber.id = ${subscriberId}`,
  )
}

/**
 * Returns the name of the organization that erased this person (uuids) and keeps their address from getting email; null
 * if it did not, or if they have come back since.
 */
export async function findForgetter(
  em: EntityManager,
  organizationId: string,
  subscriberId: string,
): Promise<string | null> {
  const found = await row<{ name: string }>(
    em,
    sql`select organization.name from erasure
      join suppression on suppression.organization_id = erasure.organization_id
        and suppression.email_key = erasure.email_key
      join organization on organization.id = erasure.organization_id
      where erasure.organization_id = ${organizationId} and erasure.subscriber_id = ${subscriberId}`,
  )
  return found?.name ?? null
}

/** The column of each member of a record, from the tables or aliases `subscriber` and `stat`. */
const RECORD_COLUMNS: Readonly<Record<keyof Subscriber, RawBuilder<unknown>>> = {
  id: sql`subscriber.id`,
  email: sql`subscriber.email`,
  name: sql`subscriber.name`,
  phone: sql`subscriber.phone`,
  status: sql`subscriber.status`,
  country: sql`subscriber.country`,
  tags: sql`array(select tag.name from subscriber_tag link
    join tag on tag.organization_id = link.organization_id and tag.id = link.tag_id
    where link.organization_id = subscriber.organization_id and link.subscriber_id = subscriber.id
    order by tag.name_key) as tags`,
  customFields: sql`subscriber.fields as "customFields"`,
  revenue: sql`coalesce(stat.revenue, 0)::float8 as revenue`,
  emailCount: sql`coalesce(stat.email_count, 0) as "emailCount"`,
  openCount: sql`coalesce(stat.open_count, 0) as "openCount"`,
  clickCount: sql`coalesce(stat.click_count, 0) as "clickCount"`,
  createdAt: sql`subscriber.created_at as "createdAt"`,
  updatedAt: sql`subscriber.updated_at as "updatedAt"`,
}
const NUMBERS = ['revenue', 'emailCount', 'openCount', 'clickCount'] as const

const STAT = sql`left join subscriber_stat stat
  on stat.organization_id = subscriber.organization_id and stat.subscriber_id = subscriber.id`

/** All members of a record. */
export const RECORD_FIELDS = Object.keys(RECORD_COLUMNS) as (keyof Subscriber)[]

/** Selects only the given members of records; `people` are rows of `subscriber`. */
export function selectRecords(fields: readonly (keyof Subscriber)[], people: RawBuilder<unknown>) {
  const columns = sql.join(fields.map((field) => RECORD_COLUMNS[field]))
  const counted = NUMBERS.some((field) => fields.includes(field))
  return sql`select ${columns} from ${people} as subscriber ${counted ? STAT : sql``}`
}

/** Returns the record of a subscriber by uuid. Throws `NOT_FOUND` when there is none. */
export async function readSubscriber({ em, organization }: Call, id: string): Promise<Subscriber> {
  return await readRecord({ em, organization }, sql<boolean>`subscriber.id = ${id}`, () =>
    missing('sub', encodeId('sub', id)),
  )
}

/** Returns the record of a subscriber by id or email, in one statement. */
export async function getSubscriber(call: Call, choice: SubscriberChoice): Promise<Subscriber> {
  return await readRecord(call, subscriberCondition(choice), () => missingSubscriber(choice))
}

async function readRecord(
  { em, organization }: Pick<Call, 'em' | 'organization'>,
  condition: RawBuilder<boolean>,
  refused: () => never,
): Promise<Subscriber> {
  const found = await row<Subscriber>(
    em,
    sql`${selectRecords(RECORD_FIELDS, sql`subscriber`)}
      where subscriber.organization_id = ${organization.id} and ${condition}`,
  )
  return found ? presentRecord(found) : refused()
}

/** Returns a record, or selected members of one, in its API form. */
export function presentRecord<Selected extends Partial<Subscriber>>(found: Selected): Selected {
  const { id, createdAt, updatedAt } = found
  return {
    ...found,
    ...(id !== undefined && { id: encodeId('sub', id) }),
    ...(createdAt !== undefined && { createdAt: timestamp(createdAt) }),
    ...(updatedAt !== undefined && { updatedAt: timestamp(updatedAt) }),
  }
}

/** Returns the distinct uuids of TypeIDs. Throws `NOT_FOUND` with the missing ids when any subscriber is missing. */
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
