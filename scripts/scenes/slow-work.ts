import { type RawBuilder, sql } from 'kysely'

import { type EntityManager, execute, row } from '../../src/database.ts'
import type { Services } from '../../src/services.ts'
import { eventually } from '../../test/helpers/eventually.ts'

/** Does `work` in a transaction that first takes `lock`, an SQL statement. */
export async function holding<Result>(
  services: Services,
  lock: RawBuilder<unknown>,
  work: (em: EntityManager) => Promise<Result>,
): Promise<Result> {
  return await services.orm.em.fork().transactional(async (em) => {
    await execute(em, lock)
    return await work(em)
  })
}

/**
 * Starts work that blocks on `lock`, and releases the lock once the work has waited longer than an activity continues,
 * which is ten seconds. The activity then tells its workflow that there is more to do.
 */
export async function outlast<Result>(
  services: Services,
  lock: RawBuilder<unknown>,
  begin: () => Promise<Result>,
): Promise<Result> {
  return await holding(services, lock, async (em) => {
    const begun = await begin()
    const isOver = sql`select 1 from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))
      and waitstart < clock_timestamp() - interval '11 seconds'`
    await eventually('the time of an activity to be over', () => row(em, isOver), { everyMs: 250 })
    return begun
  })
}

/** Waits until the workflow is executing this activity. */
export async function untilDoing(services: Services, workflowId: string, activity: string): Promise<void> {
  const client = await services.temporal.client()
  const handle = client.workflow.getHandle(workflowId)
  await eventually(`${workflowId} to be in ${activity}`, async () => {
    const { raw } = await handle.describe()
    return raw.pendingActivities?.some(({ activityType }) => activityType?.name === activity)
  })
}

/** Cancels a workflow as an operator does. */
export async function cancelWorkflow(services: Services, workflowId: string): Promise<void> {
  const client = await services.temporal.client()
  await client.workflow.getHandle(workflowId).cancel()
}
