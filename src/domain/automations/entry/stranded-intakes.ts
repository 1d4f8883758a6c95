import { sql } from 'kysely'

import { intakeWorkflowId } from '../../../../temporal/contract.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { type EntityManager, execute, rows } from '../../../database.ts'
import { encodeId } from '../../../ids.ts'
import type { WorkflowState } from '../runs/overdue.ts'
import { type NewIntake, startIntake } from './intake.ts'

/** An intake that is RUNNING. Ids are UUIDs. */
export type OpenIntake = Pick<NewIntake, 'automation' | 'expected'> & { id: string; organizationId: string }

/** Finds RUNNING intakes of all organizations, in random order so that a broken one does not block the others. */
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

/** Returns the id of an intake's workflow. */
export function intakeWorkflowOf({ id, automation }: OpenIntake): string {
  return intakeWorkflowId(encodeId('wf', automation.id), id)
}

/**
 * Repairs an intake whose workflow is not running. If the workflow is missing, or had completed what the database has
 * lost since, it is started again and continues after the last page. If it ended otherwise, the intake becomes FAILED:
 * whoever terminated it wanted it to stop. An intake that is over stays as it is.
 */
export async function repairIntake(call: Call, intake: OpenIntake, { state }: WorkflowState): Promise<void> {
  if (state === 'MISSING' || state === 'COMPLETED') {
    startIntake(call, intake, { restart: true })
    return
  }
  const error = `Its workflow in Temporal is ${state}, so the others do not enter. People who have entered stay in; add the others again.`
  await execute(
    call.em,
    sql`update automation_intake set status = 'FAILED', error = ${error}, finished_at = now()
      where organization_id = ${call.organization.id} and id = ${intake.id} and status = 'RUNNING'`,
  )
}
