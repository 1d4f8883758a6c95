import { sql } from 'kysely'

import { NUDGE, runWorkflowId } from '../../../../temporal/contract.ts'
import { array, column, type EntityManager, execute, rows } from '../../../database.ts'
import { encodeId } from '../../../ids.ts'

/** The parts of a run from which its workflow id is made. Ids are UUIDs. */
export type RunKey = { automationId: string; subscriberId: string; number: number }

const SIGNAL_PRIORITY = 5

/** Returns the id of a run's workflow. */
export function workflowIdOf({ automationId, subscriberId, number }: RunKey): string {
  return runWorkflowId(encodeId('wf', automationId), encodeId('sub', subscriberId), number)
}

/**
 * Signals the workflows of these runs to look at the database when the transaction has committed, through outbox rows
 * and a notification of the relay. A superfluous nudge has no effect.
 */
export async function nudgeRuns(
  em: EntityManager,
  organizationId: string,
  runIds: readonly string[],
): Promise<void> {
  if (runIds.length === 0) return
  const keys = await rows<RunKey>(
    em,
    sql`select automation_id as "automationId", subscriber_id as "subscriberId", number from automation_run
      where organization_id = ${organizationId} and id = any(${array(runIds, 'uuid')}) order by id`,
  )
  await writeNudges(em, organizationId, keys)
}

/**
 * Does the same as `nudgeRuns` for runs whose keys are known. `spread` sends the first signal after `afterMs`, and each
 * further one `eachMs` later.
 */
export async function writeNudges(
  em: EntityManager,
  organizationId: string,
  keys: readonly RunKey[],
  spread: { afterMs: number; eachMs: number } = { afterMs: 0, eachMs: 0 },
): Promise<void> {
  if (keys.length === 0) return
  await execute(
    em,
    sql`insert into outbox (organization_id, workflow_id, kind, payload, priority, available_at)
      select ${organizationId}, workflow_id, 'signal', ${JSON.stringify({ signal: NUDGE })}::jsonb, ${SIGNAL_PRIORITY},
        now() + make_interval(secs => (${spread.afterMs}::float8 + (position - 1) * ${spread.eachMs}::float8) / 1000)
      from unnest(${column(keys, workflowIdOf, 'text')}) with ordinality as run (workflow_id, position)
      order by position`,
  )
  await execute(em, sql`select pg_notify('postloom_outbox', '')`)
}
