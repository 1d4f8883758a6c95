import { sql } from 'kysely'

import type { Call } from '../../../catalogue/tool.ts'
import { type EntityManager, rows } from '../../../database.ts'
import type { RecordedEvent } from '../../event-rows.ts'
import { BULK_PRIORITY } from '../../outbox.ts'
import { fireTriggers } from './triggers.ts'

const BATCH = 500

/** The organizations where something happened to a run that a trigger of another automation waits for. */
export async function organizationsWithEchoes(em: EntityManager): Promise<string[]> {
  const found = await rows<{ id: string }>(
    em,
    sql`select distinct organization_id as id from automation_echo limit 100`,
  )
  return found.map(({ id }) => id)
}

/**
 * Lets people enter because of what happened to their runs (WORKFLOW_EVENT), in a transaction of its own, so that no run
 * holds its own lock while it wants another's. What a crash undoes is done again as a whole. Answers how many it took.
 */
export async function fireEchoes(call: Call): Promise<number> {
  const events = await rows<RecordedEvent>(
    call.em,
    sql`with taken as (
        delete from automation_echo where organization_id = ${call.organization.id} and event_id = any(array(
          select event_id from automation_echo where organization_id = ${call.organization.id}
          order by event_id limit ${BATCH} for update skip locked))
        returning event_id, subscriber_id, type, data)
      select event_id as id, subscriber_id as "subscriberId", type, data from taken order by event_id`,
  )
  if (events.length === 0) return 0
  await fireTriggers(call, events, { priority: events.length < BATCH ? 0 : BULK_PRIORITY })
  return events.length
}
