import { sql } from 'kysely'

import type { Call } from '../catalogue/tool.ts'
import { array, execute } from '../database.ts'
import { newId } from '../ids.ts'

/** Something that happened to a subscriber; an `id` (uuid) makes the row the caller's own. */
export type NewEvent = {
  subscriberId: string
  type: string
  data?: Record<string, unknown>
  id?: string
}

/** An event as it was written. */
export type RecordedEvent = Required<NewEvent>

/**
 * Makes events and waits of the same people take turns: a run begins its waits under a lock that excludes this one, so
 * either the run sees the event or the event sees the wait. Comes before locks on tags and runs.
 */
export async function shareSubscribers(
  { em, organization }: Call,
  subscriberIds: readonly string[],
): Promise<void> {
  if (subscriberIds.length === 0) return
  await execute(
    em,
    sql`select from subscriber where organization_id = ${organization.id}
      and id = any(${array([...new Set(subscriberIds)], 'uuid')}) order by id for share`,
  )
}

/** The condition that an event may wake a wait: it was not recorded in silence. */
export const MAY_WAKE = sql.raw("event.cause -> 'silent' is null")

/**
 * Writes the rows and nothing else: domain rules go through recordEvents in events.ts. A silent event wakes no wait,
 * also not one that looks for it later.
 */
export async function insertEvents(
  call: Call,
  events: readonly NewEvent[],
  { silent = false }: { silent?: boolean } = {},
): Promise<RecordedEvent[]> {
  if (events.length === 0) return []
  const recorded = events.map(({ subscriberId, type, data, id }) => ({
    subscriberId,
    type,
    data: data ?? {},
    id: id ?? newId(),
  }))
  const { kind, id, name } = call.actor
  await execute(
    call.em,
    sql`insert into subscriber_event (id, organization_id, subscriber_id, type, data, cause)
      select event.id, ${call.organization.id}, event.subscriber_id, event.type, event.data,
        ${JSON.stringify({ kind, id, name, ...(silent && { silent }) })}::jsonb
      from unnest(
        ${array(
          recorded.map((event) => event.id),
          'uuid',
        )},
        ${array(
          recorded.map((event) => event.subscriberId),
          'uuid',
        )},
        ${array(
          recorded.map((event) => event.type),
          'text',
        )},
        ${array(
          recorded.map((event) => event.data),
          'jsonb',
        )}
      ) as event (id, subscriber_id, type, data)`,
  )
  return recorded
}
