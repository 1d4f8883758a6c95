import { sql } from 'kysely'

import type { Call } from '../../../catalogue/tool.ts'
import { array, execute } from '../../../database.ts'
import { newId } from '../../../ids.ts'

/**
 * An automation's decision not to act, as recorded in the ledger (`decision`) that explains it later. Ids are UUIDs.
 */
export type Decision = {
  subscriberId: string
  automationId: string
  runId?: string
  stepId?: string
  /**
   * STEP_DEFERRED: the step runs later, at `data.until` or when the workflow is resumed. RUN_ENDED: the run ended
   * early, by a rule, a goal, a person or another workflow.
   */
  action: 'ENTRY_REFUSED' | 'STEP_SKIPPED' | 'STEP_DEFERRED' | 'STEP_FAILED' | 'RUN_ENDED'
  reason: string
  data?: Record<string, unknown>
}

/** Writes ledger rows, in the transaction of the decisions. */
export async function recordDecisions(call: Call, decisions: readonly Decision[]): Promise<void> {
  if (decisions.length === 0) return
  const column = (pick: (decision: Decision) => unknown) =>
    decisions.map((decision) => pick(decision) ?? null)
  await execute(
    call.em,
    sql`insert into decision (id, organization_id, subscriber_id, automation_id, run_id, step_id, action, reason, data)
      select id, ${call.organization.id}, subscriber_id, automation_id, run_id, step_id, action, reason, data
      from unnest(
        ${array(decisions.map(newId), 'uuid')}, ${array(
          column((each) => each.subscriberId),
          'uuid',
        )},
        ${array(
          column((each) => each.automationId),
          'uuid',
        )}, ${array(
          column((each) => each.runId),
          'uuid',
        )},
        ${array(
          column((each) => each.stepId),
          'text',
        )}, ${array(
          column((each) => each.action),
          'text',
        )},
        ${array(
          column((each) => each.reason),
          'text',
        )}, ${array(
          column((each) => each.data ?? {}),
          'jsonb',
        )}
      ) as made (id, subscriber_id, automation_id, run_id, step_id, action, reason, data)`,
  )
}
