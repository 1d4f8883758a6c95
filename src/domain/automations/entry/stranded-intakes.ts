import { sql } from 'kysely'

import { intakeWorkflowId } from '../../../../temporal/contract.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { type EntityManager, execute, rows } from '../../../database.ts'
import { encodeId } from '../../../ids.ts'
import type { WorkflowState } from '../runs/overdue.ts'
import { type Crowd, startIntake } from './intake.ts'

/** An intake that is under way; ids are uuids. */
export type OpenIntake = Pick<Crowd, 'automation' | 'expected'> & { id: string; organizationId: string }

/** Intakes of all organizations that began a while ago and are not over, in no order, so that none blocks the others. */
export async function findOpenIntakes(
  em: EntityManager,
  olderSeconds: number,
  limit: number,
): Promise<OpenIntake[]> {
  return await rows<OpenIntake>(
    em,
    sql`select intake.id, intake.organization_id as "organizationId", intake.expected,
        json_build_object('id', automation.id, 'name', automation.name) as automation
      from automation_intake intake
      join automation on automation.organization_id = intake.organization_id and automation.id = intake.automation_id
      where intake.status = 'RUNNING' and intake.created_at < now() - make_interval(secs => ${olderSeconds})
      order by random() limit ${limit}`,
  )
}

/** The id of the workflow that works on an intake. */
export function intakeWorkflowOf({ id, automation }: OpenIntake): string {
  return intakeWorkflowId(encodeId('wf', automation.id), id)
}

/**
 * Puts an intake right that nobody works on: without a workflow it goes on after its last page; one whose workflow was
 * ended is FAILED and lets nobody in any more, so that whoever ended it is not defied. One that is over stays as it is.
 */
export async function repairIntake(call: Call, intake: OpenIntake, { state }: WorkflowState): Promise<void> {
  if (state === 'MISSING') {
    startIntake(call, intake)
    return
  }
  const error = `Its workflow in Temporal is ${state}, so the others do not enter. People who have entered stay in; add the others again.`
  await execute(
    call.em,
    sql`update automation_intake set status = 'FAILED', error = ${error}, finished_at = now()
      where organization_id = ${call.organization.id} and id = ${intake.id} and status = 'RUNNING'`,
  )
}
