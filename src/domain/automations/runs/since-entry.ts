import { type RawBuilder, sql } from 'kysely'

import { MAY_WAKE } from '../../event-rows.ts'
import type { Turn } from '../steps/step.ts'

/**
 * SQL condition: `event` belongs to the run's subscriber, was recorded since the run was entered, and may wake it. The
 * event that started the run, and others of the same transaction, are excluded. The time of an event is that of its id,
 * because its transaction may have begun before the entry.
 */
export function isSinceEntry({ call, run }: Pick<Turn, 'call' | 'run'>): RawBuilder<boolean> {
  const { id } = call.organization
  const own = sql`from automation_run where organization_id = ${id} and id = ${run.id}`
  return sql<boolean>`event.organization_id = ${id} and event.subscriber_id = ${run.subscriberId}
    and ${came(
      sql`to_timestamp(${run.enteredAt / 1000}::float8)`,
      sql`(select entered_in ${own})`,
      sql`(select trigger ->> 'eventId' ${own})`,
    )}`
}

/** The same condition for a query in which `event` is joined with `automation_run run`. */
export const IS_SINCE_ENTRY = came(sql`run.entered_at`, sql`run.entered_in`, sql`run.trigger ->> 'eventId'`)

/** SQL condition: `run` was not entered in this transaction, so events of this transaction count for it. */
export const IS_ENTERED_BEFORE = sql<boolean>`run.entered_in <> pg_current_xact_id()`

function came(
  enteredAt: RawBuilder<unknown>,
  enteredIn: RawBuilder<unknown>,
  triggerId: RawBuilder<unknown>,
): RawBuilder<boolean> {
  // Events of one transaction have the same time. Another transaction may have it too, but not the same xmin.
  return sql<boolean>`event.id >= id_floor(${enteredAt})
    and (event.created_at <> ${enteredAt}::timestamptz(3) or event.xmin <> ${enteredIn}::xid)
    and type_id('evt', event.id) is distinct from ${triggerId} and ${MAY_WAKE}`
}
