import { type RawBuilder, sql } from 'kysely'

import { MAY_WAKE } from '../../event-rows.ts'
import type { Turn } from '../steps/step.ts'

/**
 * The condition that `event` is one of a run's person, came since the run was entered and may wake it. What was recorded
 * in the transaction that let the run in is what it began with.
 */
export function isSinceEntry({ call, run }: Pick<Turn, 'call' | 'run'>): RawBuilder<boolean> {
  const { id } = call.organization
  return sql<boolean>`event.organization_id = ${id} and event.subscriber_id = ${run.subscriberId}
    and event.id >= id_floor(to_timestamp(${run.enteredAt / 1000}::float8))
    and event.created_at > (select entered_at from automation_run where organization_id = ${id} and id = ${run.id})
    and ${MAY_WAKE}`
}
