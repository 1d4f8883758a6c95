import { type RawBuilder, sql } from 'kysely'

import type { Call } from '../catalogue/tool.ts'
import { array, json, row } from '../database.ts'

/** Something that happened to a subscriber; an `id` (uuid) makes the row the caller's own. */
export type NewEvent = {
  subscriberId: string
  type: string
  data?: Record<string, unknown>
  id?: string
}

/** An event as it was written. */
export type RecordedEvent = Required<NewEvent>

/** Events as they were written: whether runs wait for one of them, and whether automations begin with such events. */
export type Recorded = { events: RecordedEvent[]; isAwaited: boolean; mayStart: boolean }

/**
 * Narrows a condition on an event's time to the partitions and the part of an index that can hold it: the id was made
 * at that time, give or take an hour for clocks that differ. Beside `created_at`, never in its place.
 */
export function idsAround(
  from: RawBuilder<unknown>,
  to: RawBuilder<unknown> | null,
  alias = sql`subscriber_event`,
): RawBuilder<boolean> {
  const least = sql`${alias}.id >= id_floor(greatest(${from} - interval '1 hour', 'epoch'))`
  if (to === null) return sql<boolean>`${least}`
  return sql<boolean>`${least} and ${alias}.id < id_floor(greatest(${to} + interval '1 hour', 'epoch'))`
}

/** The condition that an event may wake a wait: it was not recorded in silence. */
export const MAY_WAKE = sql.raw("event.cause -> 'silent' is null")

/**
 * Writes the rows and nothing else: domain rules go through recordEvents in events.ts. Events and waits of
 * the same people take turns: a run begins its waits under a lock that excludes the one taken here, so either the run
 * sees the event or this sees the wait. Comes before locks on tags and runs. A silent event needs no lock: it wakes no
 * wait, also not one that looks for it later.
 */
export async function insertEvents(
  call: Call,
  events: readonly NewEvent[],
  options: { silent?: boolean } = {},
): Promise<Recorded> {
  if (events.length === 0) return { events: [], isAwaited: false, mayStart: false }
  const { statement, read } = writingEvents(call, events, options)
  return read(await row(call.em, statement))
}

/** What the database answers to written events. */
export type WrittenRow = { ids: string[]; isAwaited: boolean; mayStart: boolean }

/** What insertEvents does as a statement, for the end of a longer one that spares a round trip; `read` takes its row. */
export function writingEvents(
  call: Call,
  events: readonly NewEvent[],
  options: { silent?: boolean } = {},
): { statement: RawBuilder<unknown>; read: (written: WrittenRow | null) => Recorded } {
  const told = events.map((event) => ({ ...event, data: event.data ?? {} }))
  const statement = sql`select ids::text[] as ids, is_awaited as "isAwaited", may_start as "mayStart" from record_events(
      ${call.organization.id},
      ${array(
        told.map(({ id }) => id ?? null),
        'uuid',
      )},
      ${array(
        told.map(({ subscriberId }) => subscriberId),
        'uuid',
      )},
      ${array(
        told.map(({ type }) => type),
        'text',
      )},
      ${array(
        told.map(({ data }) => data),
        'jsonb',
      )}, ${json(causeOf(call, options))})`
  return {
    statement,
    read(written) {
      if (!written) throw new Error('events were written and not answered')
      const { ids, isAwaited, mayStart } = written
      return { isAwaited, mayStart, events: told.map((event, index) => ({ ...event, id: ids[index] ?? '' })) }
    },
  }
}

/** Who or what made an event, as its row says; `silent` marks what nobody may hear, `depth` is that of a run. */
export function causeOf({ actor }: Call, { silent = false }: { silent?: boolean }): Record<string, unknown> {
  const { kind, id, name, depth } = actor
  return { kind, id, name, ...(silent && { silent }), ...(depth !== undefined && { depth }) }
}
