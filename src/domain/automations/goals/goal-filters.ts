import { sql } from 'kysely'

import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, execute, rows } from '../../../database.ts'
import { loadVersions } from '../definition/versions.ts'
import { dependsOnTime, holdingRuns } from '../runs/conditions.ts'
import { holdPeople } from '../runs/hold-people.ts'
import { followConversions } from '../runs/runs.ts'
import { BY_FILTERS, conversionOf, goalOf, IS_OPEN, recordConversions } from './goals.ts'

type WatchedGoal = { automationId: string; versionId: string; goalId: string }
type Watching = WatchedGoal & { runIds: string[] }

const IN_GOAL = sql`goal_watch watch join automation_run run
  on run.organization_id = watch.organization_id and run.id = watch.run_id`
const GOAL_COLUMNS = sql`run.automation_id as "automationId", run.version_id as "versionId", watch.goal_id as "goalId"`

/**
 * Records and applies conversions of these subscribers' goals whose filters match now, with one filter query per goal.
 */
export async function reachWatchedGoals(call: Call, subscriberIds: readonly string[]): Promise<void> {
  if (subscriberIds.length === 0) return
  const watching = await rows<Watching>(
    call.em,
    sql`select ${GOAL_COLUMNS}, array_agg(run.id::text) as "runIds" from ${IN_GOAL}
      where watch.organization_id = ${call.organization.id} and watch.event_type = ${BY_FILTERS}
        and watch.subscriber_id = any(${array(subscriberIds, 'uuid')}) and ${IS_OPEN} group by 1, 2, 3`,
  )
  const goals = await goalsOf(call, watching)
  for (const [index, { runIds, automationId }] of watching.entries()) {
    const goal = goals[index]
    if (!goal?.filters) continue
    const holding = await holdingRuns(call, automationId, runIds, goal.filters)
    if (holding.length === 0) continue
    await holdPeople(call, holding)
    const reached = holding.map((runId) => conversionOf(runId, goal))
    await followConversions(call, await recordConversions(call, reached))
  }
}

async function goalsOf(call: Call, watched: readonly WatchedGoal[]): Promise<(SuccessGoal | undefined)[]> {
  const ids = watched.map(({ versionId }) => versionId)
  const versions = await loadVersions(call.em, call.organization.id, ids)
  return watched.map((watch) => goalOf(versions, watch))
}

/**
 * Queues a check of every subscriber with a goal whose filters can start to match just because time passes; see
 * `noteTimedConditions`. Returns the number of such goals.
 */
export async function noteTimedGoals(call: Call): Promise<number> {
  const { em, organization } = call
  const watched = await rows<WatchedGoal>(
    em,
    sql`select distinct ${GOAL_COLUMNS} from ${IN_GOAL}
      where watch.organization_id = ${organization.id} and watch.event_type = ${BY_FILTERS}`,
  )
  const goals = await goalsOf(call, watched)
  let timed = 0
  for (const [index, { versionId, goalId }] of watched.entries()) {
    if (!(await dependsOnTime(call, goals[index]?.filters ?? []))) continue
    timed += 1
    await execute(
      em,
      sql`insert into segment_change (organization_id, subscriber_id)
        select watch.organization_id, watch.subscriber_id from ${IN_GOAL}
        where watch.organization_id = ${organization.id} and watch.event_type = ${BY_FILTERS}
          and run.version_id = ${versionId} and watch.goal_id = ${goalId} order by watch.subscriber_id`,
    )
  }
  return timed
}
