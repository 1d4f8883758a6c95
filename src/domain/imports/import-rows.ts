import { sql } from 'kysely'

import type { FieldType, SubscriberStatus } from '../../../schema/values.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { FaultyItem } from '../../catalogue/input.ts'
import type { Call } from '../../catalogue/tool.ts'
import { column, execute, rows } from '../../database.ts'
import { type NewEvent, recordEvents } from '../events.ts'
import { BULK_PRIORITY } from '../outbox.ts'
import { changeOf } from '../subscribers/changes.ts'
import { importedStatus } from '../subscribers/consent.ts'
import { SUBSCRIBER_COLUMNS, type SubscriberRow } from '../subscribers/records.ts'
import { ensureTags, linkTags, type TagChange, tagEvents } from '../subscribers/tags.ts'
import { type ImportedPerson, type ImportError, type ImportRow, readRows } from './read-rows.ts'

/** Options that apply to all rows. */
export type ImportOptions = {
  resubscribe: boolean
  triggerWorkflows: boolean
  /** Types of new custom fields; by default the type of their first value. */
  types?: ReadonlyMap<string, FieldType>
}

/** Counts of new people, of other accepted rows, and of rejected rows; `errors` is in row order. */
export type ImportOutcome = { imported: number; updated: number; failed: number; errors: ImportError[] }

/** A person with the database row before the import; null for a new person. */
type Placed = { person: ImportedPerson; id: string; before: SubscriberRow | null }

const ATTEMPTS = 5

/**
 * Applies rows in one transaction with a constant number of statements: new people, changes, tags, custom fields and
 * their events. A rejected row does not affect others. No row overrides a bounce, a complaint or a ban.
 */
export async function importRows(
  call: Call,
  given: readonly (ImportRow | FaultyItem)[],
  { resubscribe, triggerWorkflows, types }: ImportOptions,
): Promise<ImportOutcome> {
  const { people, errors } = await readRows(call, given, types)
  const { placed, refused } = await placePeople(call, people)
  for (const { email, indexes } of refused) {
    const error =
      'status is missing: with double opt-in on, a new person needs "SUBSCRIBED" (you have their consent) or "UNSUBSCRIBED".'
    errors.push(...indexes.map((index) => ({ index, email, error })))
  }
  const events = [
    ...(await writeChanges(call, placed, resubscribe)),
    ...tagEvents('TAG_ADDED', await writeTags(call, placed)),
  ]
  await recordEvents(call, events, { triggerWorkflows, priority: BULK_PRIORITY })
  const imported = placed.filter(({ before }) => before === null).length
  const accepted = placed.reduce((sum, { person }) => sum + person.indexes.length, 0)
  errors.sort((one, other) => one.index - other.index)
  return { imported, updated: accepted - imported, failed: errors.length, errors }
}

/**
 * Locks existing subscribers and creates the others. When concurrent calls both find none, the second one's insert
 * waits for the first and does nothing, and it looks again. `refused` are new people without stated consent.
 */
async function placePeople(
  call: Call,
  people: readonly ImportedPerson[],
): Promise<{ placed: Placed[]; refused: ImportedPerson[] }> {
  const placed: Placed[] = []
  // All lists insert in this order, and all calls lock known people in the order of their ids, so that they wait for
  // each other instead of deadlocking.
  let missing = people.toSorted((one, other) =>
    one.email.toLowerCase() < other.email.toLowerCase() ? -1 : 1,
  )
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const found = await insertOrLock(call, missing)
    placed.push(...found.values())
    missing = missing.filter((_, index) => !found.has(index))
    if (missing.every((person) => firstStatus(call, person) === null)) return { placed, refused: missing }
  }
  throw new Failure(
    'UNAVAILABLE',
    'These people are being changed by many calls at once; repeat the request.',
    { retryAfter: 1 },
  )
}

function firstStatus({ organization }: Call, { status }: ImportedPerson): SubscriberStatus | null {
  return importedStatus('NONE', { status, resubscribe: false, doubleOptIn: organization.doubleOptIn })
}

type FoundRow = SubscriberRow & { position: number; isNew: boolean }

/** Returns the found and created people by their index. */
async function insertOrLock(call: Call, people: readonly ImportedPerson[]): Promise<Map<number, Placed>> {
  const { em, organization } = call
  const text = (pick: (person: ImportedPerson) => string | null | undefined) =>
    column(people, (person) => pick(person) || null, 'text')
  const found = await rows<FoundRow>(
    em,
    sql`with given as materialized (
        select * from unnest(
          ${column(people, ({ id }) => id, 'uuid')},
          ${text(({ email }) => email)},
          ${text(({ columns }) => columns.name)},
          ${text(({ columns }) => columns.phone)},
          ${text(({ columns }) => columns.country)},
          ${text((person) => firstStatus(call, person))},
          ${column(people, ({ fields }) => fields.set, 'jsonb')}
        ) with ordinality as given (id, email, name, phone, country, status, fields, position)
      ), known as materialized (
        select given.position::int as position, ${SUBSCRIBER_COLUMNS} from given
        join subscriber on subscriber.organization_id = ${organization.id}
          and subscriber.email_key = lower(given.email)
        order by subscriber.id for update of subscriber
      ), made as (
        insert into subscriber (id, organization_id, email, name, phone, country, status, fields)
        select id, ${organization.id}, email, name, phone, country, status, fields from given
        where status is not null and position not in (select position from known) order by position
        on conflict (organization_id, email_key) do nothing returning ${SUBSCRIBER_COLUMNS}
      ), counted as (
        insert into subscriber_stat (organization_id, subscriber_id) select ${organization.id}, id from made
      )
      select *, false as "isNew" from known
      union all select given.position::int, made.*, true from made join given on given.id = made.id`,
  )
  const placed = new Map<number, Placed>()
  for (const { position, isNew, ...before } of found) {
    const index = position - 1
    const person = people[index]
    if (person) placed.set(index, { person, id: before.id, before: isNew ? null : before })
  }
  return placed
}

/** Updates changed people in one statement, and returns the events of all people. */
async function writeChanges(
  call: Call,
  placed: readonly Placed[],
  resubscribe: boolean,
): Promise<NewEvent[]> {
  const { em, organization } = call
  const { doubleOptIn } = organization
  const changed: SubscriberRow[] = []
  const events: NewEvent[] = []
  for (const { person, id, before } of placed) {
    if (!before) {
      const first = firstStatus(call, person)
      events.push(...statusEvents(id, null, first ?? 'UNSUBSCRIBED', doubleOptIn))
      continue
    }
    const wish = { status: person.status, resubscribe, doubleOptIn }
    const status = importedStatus(before.status, wish) ?? before.status
    const change = changeOf(before, person, status)
    if (!change) continue
    changed.push(change.after)
    events.push(...statusEvents(id, before.status, status, doubleOptIn), ...change.events)
  }
  if (changed.length === 0) return events
  const text = (pick: (row: SubscriberRow) => string | null) => column(changed, pick, 'text')
  await execute(
    em,
    sql`update subscriber set name = given.name, phone = given.phone, country = given.country,
        status = given.status, fields = given.fields
      from unnest(
        ${column(changed, ({ id }) => id, 'uuid')},
        ${text((row) => row.name)},
        ${text((row) => row.phone)},
        ${text((row) => row.country)},
        ${text((row) => row.status)},
        ${column(changed, ({ fields }) => fields, 'jsonb')}
      ) as given (id, name, phone, country, status, fields)
      where subscriber.organization_id = ${organization.id} and subscriber.id = given.id`,
  )
  return events
}

function statusEvents(
  subscriberId: string,
  from: SubscriberStatus | null,
  to: SubscriberStatus,
  doubleOptIn: boolean,
): NewEvent[] {
  if (from === to) return []
  const moved = from === null ? {} : { from }
  if (to === 'SUBSCRIBED') {
    // With double opt-in, nobody confirmed this subscription: the consent comes from whoever made the list.
    const data = { ...moved, ...(doubleOptIn && { consent: 'imported' }) }
    return [{ subscriberId, type: 'SUBSCRIBED', data }]
  }
  return [{ subscriberId, type: 'UNSUBSCRIBED', data: { source: 'import', ...moved } }]
}

async function writeTags(call: Call, placed: readonly Placed[]): Promise<TagChange[]> {
  const names = new Map(placed.flatMap(({ person }) => [...person.tags]))
  await ensureTags(call, [...names.values()])
  const pairs = placed.flatMap(({ person, id }) =>
    [...person.tags.values()].map((name) => ({ subscriberId: id, name })),
  )
  return await linkTags(call, pairs)
}
