import { sql } from 'kysely'

import type { Call } from '../../../catalogue/tool.ts'
import { array, column, execute } from '../../../database.ts'
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
  await execute(
    call.em,
    sql`insert into decision (id, organization_id, subscriber_id, automation_id, run_id, step_id, action, reason, data)
      select id, ${call.organization.id}, subscriber_id, automation_id, run_id, step_id, action, reason, data
      from unnest(
        ${array(decisions.map(newId), 'uuid')},
        ${column(decisions, (each) => each.subscriberId, 'uuid')},
        ${column(decisions, (each) => each.automationId, 'uuid')},
        ${column(decisions, (each) => each.runId ?? null, 'uuid')},
        ${column(decisions, (each) => each.stepId ?? null, 'text')},
        ${column(decisions, (each) => each.action, 'text')},
        ${column(decisions, (each) => each.reason, 'text')},
        ${column(decisions, (each) => each.data ?? {}, 'jsonb')}
      ) as made (id, subscriber_id, automation_id, run_id, step_id, action, reason, data)`,
  )
}
