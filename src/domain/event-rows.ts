import { type RawBuilder, sql } from 'kysely'

import type { Call } from '../catalogue/tool.ts'
import { column, json, row } from '../database.ts'

/** An event of a subscriber; `id` is a uuid that the caller chooses, otherwise the database makes one. */
export type NewEvent = {
  subscriberId: string
  type: string
  data?: Record<string, unknown>
  id?: string
}

/** An event as it was stored. */
export type RecordedEvent = Required<NewEvent>

/** Stored events: whether runs wait for one of them, and whether triggers react to such events. */
export type Recorded = { events: RecordedEvent[]; isAwaited: boolean; mayStart: boolean }

/**
 * Narrows a time range to the partitions and index range that can hold it: ids contain their creation time, with an
 * hour of tolerance for clock differences. Use it together with a condition on `created_at`, not instead of it.
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

/** The condition that an event may wake a waiting run: it was not recorded silently. */
export const MAY_WAKE = sql.raw("event.cause -> 'silent' is null")

/**
 * Only writes event rows; use `recordEvents` in events.ts to apply the domain rules as well. It takes a lock per
 * subscriber that excludes runs which begin a wait: either the run sees the event, or this call sees the wait. Call it
 * before locking tags and runs. Silent events need no lock, because they never wake a wait.
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

/** The row that `record_events` returns. */
export type WrittenRow = { ids: string[]; isAwaited: boolean; mayStart: boolean }

/** Returns `insertEvents` as a statement to append to a longer one, and `read`, which converts its row. */
export function writingEvents(
  call: Call,
  events: readonly NewEvent[],
  options: { silent?: boolean } = {},
): { statement: RawBuilder<unknown>; read: (written: WrittenRow | null) => Recorded } {
  const told = events.map((event) => ({ ...event, data: event.data ?? {} }))
  const statement = sql`select ids::text[] as ids, is_awaited as "isAwaited", may_start as "mayStart" from record_events(
      ${call.organization.id},
      ${column(told, ({ id }) => id ?? null, 'uuid')},
      ${column(told, ({ subscriberId }) => subscriberId, 'uuid')},
      ${column(told, ({ type }) => type, 'text')},
      ${column(told, ({ data }) => data, 'jsonb')}, ${json(causeOf(call, options))})`
  return {
    statement,
    read(written) {
      if (!written) throw new Error('events were written and not answered')
      const { ids, isAwaited, mayStart } = written
      return { isAwaited, mayStart, events: told.map((event, index) => ({ ...event, id: ids[index] ?? '' })) }
    },
  }
}

/** Returns the actor of an event for its row. `silent` marks events that wake no automation; `depth` is the run's. */
export function causeOf({ actor }: Call, { silent = false }: { silent?: boolean }): Record<string, unknown> {
  const { kind, id, name, depth } = actor
  return { kind, id, name, ...(silent && { silent }), ...(depth !== undefined && { depth }) }
}
