import { sql } from 'kysely'

import type { Filter } from '../../../../schema/audience.ts'
import { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, type EntityManager, execute, rows } from '../../../database.ts'
import { changesWithTime } from '../../audience/dates.ts'
import { matchingRuns } from '../../audience/match.ts'
import { loadReferences, placesOf } from '../../audience/references.ts'
import { loadVersions } from '../definition/versions.ts'
import { BY_FILTERS } from '../goals/goals.ts'
import { readHeld } from './hold-people.ts'
import { wakeRuns } from './runs.ts'
import { CONDITION_TYPE } from './waits.ts'

/** A step in which runs wait for filters to match. Ids are UUIDs, except `stepId`. */
type Condition = { automationId: string; versionId: string; stepId: string }
type Waiting = Condition & { runIds: string[] }

const IN_CONDITION = sql`run_wait wait join automation_run run
  on run.organization_id = wait.organization_id and run.id = wait.run_id`
const CONDITION_COLUMNS = sql`run.automation_id as "automationId", run.version_id as "versionId",
  run.current_step_id as "stepId"`

/** Wakes the runs of these subscribers that wait for filters which match now, with one filter query per step. */
export async function endConditionWaits(call: Call, subscriberIds: readonly string[]): Promise<void> {
  if (subscriberIds.length === 0) return
  const read = () => findWaiting(call, subscriberIds)
  const waiting = await readHeld(call, read, ({ runIds }) => runIds)
  if (waiting.length === 0) return
  const filters = await filtersOf(call, waiting)
  for (const [index, { runIds, automationId }] of waiting.entries()) {
    const awaited = filters[index]
    if (!awaited) continue
    const holding = await holdingRuns(call, automationId, runIds, awaited)
    await wakeRuns(call, holding, 'CONDITION')
  }
}

async function findWaiting(call: Call, subscriberIds: readonly string[]): Promise<Waiting[]> {
  return await rows<Waiting>(
    call.em,
    sql`select ${CONDITION_COLUMNS}, array_agg(run.id::text) as "runIds" from ${IN_CONDITION}
      where wait.organization_id = ${call.organization.id} and wait.event_type = ${CONDITION_TYPE}
        and wait.subscriber_id = any(${array(subscriberIds, 'uuid')}) group by 1, 2, 3`,
  )
}

/**
 * Queues a check (`segment_change`) of every subscriber in a wait for filters that can start to match just because time
 * passes. Returns the number of such steps.
 */
export async function noteTimedConditions(call: Call): Promise<number> {
  const { em, organization } = call
  const waiting = await rows<Condition>(
    em,
    sql`select distinct ${CONDITION_COLUMNS} from ${IN_CONDITION}
      where wait.organization_id = ${organization.id} and wait.event_type = ${CONDITION_TYPE}`,
  )
  const filters = await filtersOf(call, waiting)
  let timed = 0
  for (const [index, { versionId, stepId }] of waiting.entries()) {
    if (!(await dependsOnTime(call, filters[index] ?? []))) continue
    timed += 1
    await execute(
      em,
      sql`insert into segment_change (organization_id, subscriber_id)
        select wait.organization_id, wait.subscriber_id from ${IN_CONDITION}
        where wait.organization_id = ${organization.id} and wait.event_type = ${CONDITION_TYPE}
          and run.version_id = ${versionId} and run.current_step_id = ${stepId} order by wait.subscriber_id`,
    )
  }
  return timed
}

/**
 * Queues a check of subscribers whose wait for a condition, or watch of a goal by filters, began in the last `seconds`.
 * Some changes are written without the lock of the subscriber, so the wait may have missed one that committed at the
 * same time.
 */
export async function noteFreshConditions(em: EntityManager, seconds: number): Promise<void> {
  await execute(
    em,
    sql`insert into segment_change (organization_id, subscriber_id)
      select organization_id, subscriber_id from run_wait
      where event_type = ${CONDITION_TYPE} and began_at > now() - make_interval(secs => ${seconds})
      union select organization_id, subscriber_id from goal_watch
      where event_type = ${BY_FILTERS} and began_at > now() - make_interval(secs => ${seconds})`,
  )
}

/** Returns the ids of organizations in which a run waits for a condition or has a goal by filters. */
export async function organizationsWithConditions(em: EntityManager): Promise<string[]> {
  const found = await rows<{ id: string }>(
    em,
    sql`select organization_id as id from run_wait where event_type = ${CONDITION_TYPE}
      union select organization_id from goal_watch where event_type = ${BY_FILTERS} order by 1`,
  )
  return found.map(({ id }) => id)
}

/** Returns the filters of each step; null for a step that waits for none, because no filters match everybody. */
async function filtersOf(
  call: Call,
  conditions: readonly Condition[],
): Promise<(readonly Filter[] | null)[]> {
  const ids = conditions.map(({ versionId }) => versionId)
  const versions = await loadVersions(call.em, call.organization.id, ids)
  return conditions.map(({ versionId, stepId }) => {
    const step = versions.get(versionId)?.graph.steps.get(stepId)
    return step?.type === 'WAIT_UNTIL' && step.config.mode === 'CONDITION' ? step.config.filters : null
  })
}

/** Returns those of these runs whose filters match. Filters that name something that was deleted match nobody. */
export async function holdingRuns(
  call: Call,
  automationId: string,
  runIds: readonly string[],
  filters: readonly Filter[],
): Promise<string[]> {
  try {
    const scope = { organizationId: call.organization.id }
    return [...(await matchingRuns(call.em, scope, { automationId, runIds }, filters))]
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return []
  }
}

/** Returns whether filters, including those of segments that they name, can start to match just because time passes. */
export async function dependsOnTime(call: Call, filters: readonly Filter[]): Promise<boolean> {
  const { segments } = await loadReferences(call.em, { organizationId: call.organization.id }, filters)
  const every = [filters, ...segments.values()].flat()
  return placesOf(every, '').some(({ leaf }) => changesWithTime(leaf))
}
