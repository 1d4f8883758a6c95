import { sql } from 'kysely'

import type { Call } from '../../../catalogue/tool.ts'
import { type EntityManager, rows } from '../../../database.ts'
import type { RecordedEvent } from '../../event-rows.ts'
import { BULK_PRIORITY } from '../../outbox.ts'
import { fireTriggers } from './triggers.ts'

const BATCH = 500

/** Returns up to 100 organizations with run events (`automation_echo`) for which an automation may have a trigger. */
export async function organizationsWithEchoes(em: EntityManager): Promise<string[]> {
  const found = await rows<{ id: string }>(
    em,
    sql`select distinct organization_id as id from automation_echo limit 100`,
  )
  return found.map(({ id }) => id)
}

/**
 * Fires WORKFLOW_EVENT triggers for a batch of run events. This is a separate transaction, so that no run waits for
 * another run's lock while it holds its own. After a crash, the whole batch is repeated. Returns the number of events.
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
