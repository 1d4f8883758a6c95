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

/** Writes the rows and nothing else: domain rules go through recordEvents in events.ts. */
export async function insertEvents(call: Call, events: readonly NewEvent[]): Promise<RecordedEvent[]> {
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
        ${JSON.stringify({ kind, id, name })}::jsonb
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
