import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
} from '@temporalio/client'

import type { OutboxRow } from '../src/domain/outbox.ts'
import type { Services } from '../src/services.ts'
import { AUTOMATION_RUN, type AutomationRunInput, NUDGE, SEARCH, taskQueue } from '../temporal/contract.ts'
import { alignSchedule } from './trigger-schedules.ts'

/**
 * Tells Temporal what an outbox row asks for: the start of a workflow, a signal, or a schedule. The start of a workflow
 * that exists already and a signal to a workflow that has ended count as done. `searchable`: the server knows our
 * search attributes.
 */
export async function tellTemporal(
  client: Client,
  row: OutboxRow,
  services: Services,
  searchable: boolean,
): Promise<void> {
  if (row.kind === 'signal') return await signal(client, row)
  if (row.kind === 'schedule') return await alignSchedule(client, services, row, searchable)
  try {
    await startWorkflow(client, services, row.workflowId, row.payload, searchable)
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
  }
}

async function signal(client: Client, { workflowId, payload }: OutboxRow): Promise<void> {
  try {
    await client.workflow.getHandle(workflowId).signal(String(payload['signal']))
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error
  }
}

async function startWorkflow(
  client: Client,
  services: Services,
  workflowId: string,
  payload: Record<string, unknown>,
  searchable: boolean,
): Promise<void> {
  // src/domain wrote this payload when it emitted the intent; the table does not keep its type.
  const start = payload as RunStart | BackgroundStart
  const { queue, ...own } = isRunStart(start)
    ? runOptions(start, searchable)
    : backgroundOptions(start, searchable)
  const options = { workflowId, taskQueue: taskQueue(services.config.temporal.taskQueue, queue), ...own }
  if (start.restart === true) {
    // The workflow of before may sleep or be about to end: this signal makes it look again and go on itself.
    const again = { signal: NUDGE, workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE }
    await client.workflow.signalWithStart(start.workflow, { ...options, ...again })
    return
  }
  const workflowIdReusePolicy = WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY
  await client.workflow.start(start.workflow, { ...options, workflowIdReusePolicy })
}

function backgroundOptions({ input, summary, details }: BackgroundStart, searchable: boolean) {
  const { organizationId, campaignId, automationId } = input
  return {
    queue: 'background' as const,
    args: [input],
    staticSummary: summary,
    ...(details !== undefined && { staticDetails: details }),
    ...(searchable && {
      typedSearchAttributes: [
        { key: SEARCH.organization, value: organizationId },
        ...(campaignId === undefined ? [] : [{ key: SEARCH.campaign, value: campaignId }]),
        ...(automationId === undefined ? [] : [{ key: SEARCH.automation, value: automationId }]),
      ],
    }),
  }
}

function runOptions({ input, summary }: RunStart, searchable: boolean) {
  const { organizationId, automationId, subscriberId, runId } = input
  const argument: AutomationRunInput = { organizationId, automationId, subscriberId, runId, searchable }
  return {
    queue: 'runs' as const,
    args: [argument],
    staticSummary: summary,
    staticDetails: `${runId} of ${automationId} in ${organizationId}. The tool get_workflow_run shows its whole timeline.`,
    ...(searchable && {
      typedSearchAttributes: [
        { key: SEARCH.organization, value: organizationId },
        { key: SEARCH.automation, value: automationId },
        { key: SEARCH.subscriber, value: subscriberId },
        { key: SEARCH.state, value: 'QUEUED' },
      ],
    }),
  }
}

function isRunStart(start: RunStart | BackgroundStart): start is RunStart {
  return start.workflow === AUTOMATION_RUN
}

type RunStart = {
  workflow: typeof AUTOMATION_RUN
  input: Omit<AutomationRunInput, 'searchable'>
  summary: string
  restart?: boolean
}

/** Any other workflow, with the organization that it works for in its argument. */
type BackgroundStart = {
  workflow: string
  input: { organizationId: string; campaignId?: string; automationId?: string } & Record<string, unknown>
  summary: string
  details?: string
  restart?: boolean
}
