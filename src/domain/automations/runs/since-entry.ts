import { type RawBuilder, sql } from 'kysely'

import { MAY_WAKE } from '../../event-rows.ts'
import type { Turn } from '../steps/step.ts'

/**
 * The condition that `event` is one of a run's person, came since the run was entered and may wake it. What let the run
 * in, and what else that transaction recorded, is what the run began with. An event came when its id was made: its
 * transaction may have begun before the entry, and commits whenever it does.
 */
export function isSinceEntry({ call, run }: Pick<Turn, 'call' | 'run'>): RawBuilder<boolean> {
  const { id } = call.organization
  const own = sql`from automation_run where organization_id = ${id} and id = ${run.id}`
  return sql<boolean>`event.organization_id = ${id} and event.subscriber_id = ${run.subscriberId}
    and ${came(sql`to_timestamp(${run.enteredAt / 1000}::float8)`, sql`(select trigger ->> 'eventId' ${own})`)}`
}

/** The same where `event` is joined to its `run`. */
export const IS_SINCE_ENTRY = came(sql`run.entered_at`, sql`run.trigger ->> 'eventId'`)

/** The condition that what this transaction records is not what its `run` began with. */
export const IS_ENTERED_BEFORE = sql<boolean>`run.entered_at <> now()::timestamptz(3)`

function came(enteredAt: RawBuilder<unknown>, triggerId: RawBuilder<unknown>): RawBuilder<boolean> {
  return sql<boolean>`event.id >= id_floor(${enteredAt}) and event.created_at <> ${enteredAt}::timestamptz(3)
    and type_id('evt', event.id) is distinct from ${triggerId} and ${MAY_WAKE}`
}
