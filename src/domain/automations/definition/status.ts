import { sql } from 'kysely'

import type { WorkflowStatus } from '../../../../schema/values.ts'
import type { SettableStatus, Workflow } from '../../../../schema/workflow.ts'
import type { Call, Impact } from '../../../catalogue/tool.ts'
import { execute, row } from '../../../database.ts'
import { lockSegments } from '../../segments/lock.ts'
import { count } from '../../text.ts'
import { countActiveRuns } from '../runs/runs.ts'
import { nextStatus, type RunsMoved, setStatus } from './lifecycle.ts'
import { type Automation, findAutomation, readAutomation, titleOf } from './records.ts'

/** The result of deleting: a draft that was never published is deleted, any other workflow is archived. */
export type Deletion = { workflowId: string; deleted: boolean; archived: boolean; canceledRuns: number }

/** Sets the status of a published workflow. Setting its current status changes nothing. */
export async function updateStatus(
  call: Call,
  workflowId: string,
  wish: SettableStatus,
): Promise<{ workflow: Workflow } & RunsMoved> {
  await lockSegments(call)
  const automation = await findAutomation(call, workflowId)
  const moved = await setStatus(call, automation, nextStatus(automation, wish))
  return { workflow: await readAutomation(call, automation.id), ...moved }
}

/** Describes what setting a status will do. Throws `WRONG_STATE` if it cannot be set. */
export async function summarizeStatus(call: Call, workflowId: string, wish: SettableStatus): Promise<Impact> {
  const automation = await findAutomation(call, workflowId, { lock: false })
  const next = nextStatus(automation, wish)
  const effects = await effectsOf(call, automation, next)
  return { target: titleOf(automation), effects, warnings: [] }
}

async function effectsOf(call: Call, automation: Automation, next: WorkflowStatus): Promise<string[]> {
  if (next === automation.status) return [`The workflow is ${next} already; nothing changes.`]
  return next === 'ARCHIVED'
    ? await archiveEffects(call, automation)
    : await activationEffects(call, automation)
}

/** Deletes a draft that was never published, with its emails; archives any other workflow. */
export async function deleteAutomation(call: Call, workflowId: string): Promise<Deletion> {
  await lockSegments(call)
  const automation = await findAutomation(call, workflowId)
  if (automation.publishedVersionId !== null) {
    const { canceledRuns } = await setStatus(call, automation, 'ARCHIVED')
    return { workflowId, deleted: false, archived: true, canceledRuns }
  }
  await execute(
    call.em,
    sql`delete from automation where organization_id = ${call.organization.id} and id = ${automation.id}`,
  )
  return { workflowId, deleted: true, archived: false, canceledRuns: 0 }
}

/** Describes what deleting will do. */
export async function summarizeDeletion(call: Call, workflowId: string): Promise<Impact> {
  const automation = await findAutomation(call, workflowId, { lock: false })
  const target = titleOf(automation)
  if (automation.publishedVersionId === null) {
    const emails = automation.draft.steps.filter(({ type }) => type === 'EMAIL').length
    const effects = [`The draft is deleted for good, with its ${count(emails, 'email')}.`]
    return { target, effects, warnings: [] }
  }
  const effects =
    automation.status === 'ARCHIVED'
      ? ['It was published, so it stays in the archive, where it is already; nothing changes.']
      : ['It was published, so it is archived and not deleted.', ...(await archiveEffects(call, automation))]
  return { target, effects, warnings: [] }
}

/** Counts the runs of an automation that are held because it is paused. */
export async function countHeldRuns({ em, organization }: Call, automationId: string): Promise<number> {
  const found = await row<{ held: number }>(
    em,
    sql`select count(*)::int as held from automation_run
      where organization_id = ${organization.id} and automation_id = ${automationId} and held`,
  )
  return found?.held ?? 0
}

async function archiveEffects(call: Call, automation: Automation): Promise<string[]> {
  const active = await countActiveRuns(call.em, call.organization.id, automation.id)
  return [`${count(active, 'active run')} will be canceled.`, 'Nobody enters it any more.']
}

async function activationEffects(call: Call, automation: Automation): Promise<string[]> {
  const held = await countHeldRuns(call, automation.id)
  return [
    'Subscribers enter it by its triggers and get its emails.',
    `${count(held, 'held run')} will continue, spread out.`,
  ]
}
