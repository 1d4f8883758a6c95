import { setTimeout as sleep } from 'node:timers/promises'

import {
  type Client,
  isGrpcServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
} from '@temporalio/client'

import { crossOrganization } from '../src/catalogue/unit-of-work.ts'
import { claimOutbox, finishOutbox, type OutboxRow, postponeOutbox } from '../src/domain/outbox.ts'
import { describeFault } from '../src/log.ts'
import type { Services } from '../src/services.ts'
import { AUTOMATION_RUN, type AutomationRunInput, NUDGE, SEARCH, taskQueue } from '../temporal/contract.ts'
import { performWork } from './run-work.ts'
import { alignSchedule } from './trigger-schedules.ts'

/**
 * Sends committed outbox rows to Temporal. `ring()` makes it look at once; `stop()` gives current calls a moment to
 * end.
 */
export type OutboxRelay = { ring(): void; stop(): Promise<void> }

const POLL_MS = 1_000
/** The most unacknowledged starts and signals. The backlog stays in the database, where priorities work. */
const MOST = 100
/** After a crash, a leased row is claimed again this late; a dispatch gives up well before. */
const LEASE_SECONDS = 15
const CALL_MS = 10_000
/** Rows that Temporal has not answered this long after a stop are put back for the next relay. */
const LAST_CALLS_MS = 1_500
const LONGEST_PAUSE_MS = 5_000
const NOTICED_AFTER = 5
/** The gRPC code INVALID_ARGUMENT: the server is there, and refuses this row. */
const INVALID_ARGUMENT = 3

/**
 * Dispatches the outbox after each ring, and by polling in case a ring was lost. The start of a workflow that exists
 * already and a signal to a workflow that has ended count as done. Anything else is retried, with longer pauses while
 * Temporal is down. `knowsAttributes` returns whether the server knows our search attributes.
 */
export function startOutboxRelay(
  services: Services,
  options: { knowsAttributes: (client: Client) => Promise<boolean> },
): OutboxRelay {
  const inFlight = new Map<string, Promise<void>>()
  let done: string[] = []
  let failures = 0
  let pausedUntil = 0
  const halt = new AbortController()
  let wake: () => void = () => undefined
  let rung = false

  function ring(): void {
    rung = true
    wake()
  }

  async function work(): Promise<void> {
    while (!halt.signal.aborted) {
      rung = false
      const free = MOST - inFlight.size
      const claimed = free > 0 && Date.now() >= pausedUntil ? await claim(free) : []
      for (const row of claimed) follow(row)
      if (done.length > 0) await forget()
      if (claimed.length === free && free > 0) continue
      await rest()
    }
    // The client keeps repeating a call to a lost server long after it was cancelled, so this does not wait for its
    // end.
    await Promise.race([Promise.all(inFlight.values()), sleep(LAST_CALLS_MS, undefined, { ref: false })])
    await forget()
    await postpone([...inFlight.keys()], 0)
  }

  async function claim(limit: number): Promise<OutboxRow[]> {
    try {
      return await claimOutbox(crossOrganization(services), limit, LEASE_SECONDS)
    } catch (error) {
      services.log.warn({ err: error }, 'the outbox cannot be read; trying again')
      return []
    }
  }

  async function forget(): Promise<void> {
    const ids = done
    done = []
    if (ids.length === 0) return
    try {
      await finishOutbox(crossOrganization(services), ids)
    } catch (error) {
      // The lease ends and the row is dispatched again, which has no further effect.
      services.log.warn({ err: error }, 'dispatched outbox rows could not be deleted')
    }
  }

  function follow(row: OutboxRow): void {
    const followed = dispatch(row).finally(() => {
      inFlight.delete(row.id)
      ring()
    })
    inFlight.set(row.id, followed)
  }

  async function rest(): Promise<void> {
    if (rung || halt.signal.aborted) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, POLL_MS)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    wake = () => undefined
  }

  async function dispatch(row: OutboxRow): Promise<void> {
    if (row.kind === 'work') return await doWork(row)
    try {
      const client = await services.temporal.client()
      await client.withDeadline(Date.now() + CALL_MS, async () => {
        const isSearched = row.kind === 'start' || row.kind === 'schedule'
        const searchable = isSearched && (await options.knowsAttributes(client))
        await tell(client, row, services, searchable)
      })
      failures = 0
      done.push(row.id)
    } catch (error) {
      await later(row, error)
    }
  }

  /**
   * Performs work that needs no Temporal, such as requests of runs to other workflows. Its transaction also deletes the
   * row.
   */
  async function doWork(row: OutboxRow): Promise<void> {
    try {
      await performWork(services, row)
    } catch (error) {
      services.log.warn({ fault: describeFault(error), workflowId: row.workflowId }, 'not done yet')
      await postpone([row.id], pauseAfter(row))
    }
  }

  async function later(row: OutboxRow, error: unknown): Promise<void> {
    failures = isRefused(error) ? 0 : failures + 1
    const delay = pauseAfter(row)
    if (failures >= NOTICED_AFTER) pausedUntil = Date.now() + delay
    services.log.warn(
      { err: error, workflowId: row.workflowId, attempts: row.attempts },
      'not dispatched yet',
    )
    await postpone([row.id], delay)
  }

  /** Makes rows due again after `delayMs`. If this fails, they are claimed again when their lease ends. */
  async function postpone(ids: readonly string[], delayMs: number): Promise<void> {
    if (ids.length === 0) return
    await postponeOutbox(crossOrganization(services), ids, delayMs).catch(() => undefined)
  }

  const working = work()
  return {
    ring,
    async stop() {
      halt.abort()
      wake()
      await working
    },
  }
}

/** Returns whether the server refused the row, which says nothing about other rows. */
function isRefused(error: unknown): boolean {
  if (isGrpcServiceError(error)) return error.code === INVALID_ARGUMENT
  return error instanceof Error && error.cause !== undefined && isRefused(error.cause)
}

function pauseAfter({ attempts }: OutboxRow): number {
  return Math.min(LONGEST_PAUSE_MS, 100 * 2 ** Math.min(attempts, 10))
}

async function tell(client: Client, row: OutboxRow, services: Services, searchable: boolean): Promise<void> {
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
  if (isRunStart(start)) return await startRun(client, services, workflowId, start, searchable)
  const { organizationId, campaignId, automationId } = start.input
  await client.workflow.start(start.workflow, {
    workflowId,
    taskQueue: taskQueue(services.config.temporal.taskQueue, 'background'),
    args: [start.input],
    workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
    staticSummary: start.summary,
    ...(start.details !== undefined && { staticDetails: start.details }),
    ...(searchable && {
      typedSearchAttributes: [
        { key: SEARCH.organization, value: organizationId },
        ...(campaignId === undefined ? [] : [{ key: SEARCH.campaign, value: campaignId }]),
        ...(automationId === undefined ? [] : [{ key: SEARCH.automation, value: automationId }]),
      ],
    }),
  })
}

async function startRun(
  client: Client,
  { config }: Services,
  workflowId: string,
  { workflow, input, summary, restart }: RunStart,
  searchable: boolean,
): Promise<void> {
  const { organizationId, automationId, subscriberId, runId } = input
  const argument: AutomationRunInput = { organizationId, automationId, subscriberId, runId, searchable }
  const options = {
    workflowId,
    taskQueue: taskQueue(config.temporal.taskQueue, 'runs'),
    args: [argument] as [AutomationRunInput],
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
  if (restart === true) {
    // The run that went before may be about to end: this signal makes it look again and go on itself.
    const again = { signal: NUDGE, workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE }
    await client.workflow.signalWithStart(workflow, { ...options, ...again })
    return
  }
  const workflowIdReusePolicy = WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY
  await client.workflow.start(workflow, { ...options, workflowIdReusePolicy })
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
}
