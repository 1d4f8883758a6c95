import { type RawBuilder, sql } from 'kysely'

import type { Call } from '../../../catalogue/tool.ts'
import { array, execute } from '../../../database.ts'

/**
 * Returns a query that locks the subscribers of these runs and selects their ids. Events take this lock too, so none of
 * the runs moves on before the transaction ends.
 */
export function heldPeople({ organization }: Call, runIds: readonly string[]): RawBuilder<unknown> {
  return sql`select id from subscriber where organization_id = ${organization.id} and id in (select subscriber_id
      from automation_run where organization_id = ${organization.id} and id = any(${array(runIds, 'uuid')}))
    order by id for share`
}

/** Locks the subscribers of these runs. */
export async function holdPeople(call: Call, runIds: readonly string[]): Promise<void> {
  await execute(call.em, heldPeople(call, runIds))
}

/**
 * Returns what `read` finds once the subscribers of its runs are locked. What it found before does not count: a run that
 * moved on meanwhile would be woken from a later wait.
 */
export async function readHeld<Found>(
  call: Call,
  read: () => Promise<Found[]>,
  runIdsOf: (found: Found) => readonly string[],
): Promise<Found[]> {
  const found = await read()
  if (found.length === 0) return found
  await holdPeople(call, found.flatMap(runIdsOf))
  return await read()
}
