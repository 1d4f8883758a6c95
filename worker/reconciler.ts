import { setTimeout as sleep } from 'node:timers/promises'

import { WorkflowNotFoundError } from '@temporalio/client'

import { crossOrganization } from '../src/catalogue/unit-of-work.ts'
import {
  findOpenIntakes,
  intakeWorkflowOf,
  repairIntake,
} from '../src/domain/automations/entry/stranded-intakes.ts'
import { findStalePlaces } from '../src/domain/automations/groups/group-queue.ts'
import { cancelLeftRuns, findArchivedQueues } from '../src/domain/automations/runs/archive.ts'
import { noteFreshConditions } from '../src/domain/automations/runs/conditions.ts'
import { workflowIdOf } from '../src/domain/automations/runs/nudge.ts'
import {
  catchMissedEvents,
  findOverdueRuns,
  organizationsWithFreshWaits,
  repairRun,
  type WorkflowState,
} from '../src/domain/automations/runs/overdue.ts'
import { freePlaces } from '../src/domain/automations/runs/runs.ts'
import { startSend } from '../src/domain/campaigns/schedule.ts'
import { findStrandedSends } from '../src/domain/campaigns/stranded.ts'
import { findUnwatchedDomains, watchDomain } from '../src/domain/domains/watch.ts'
import { findStrandedImports, importWorkflowOf, repairImport } from '../src/domain/imports/stranded.ts'
import type { Services } from '../src/services.ts'
import { SEARCH } from '../temporal/contract.ts'
import { askTemporal, tryRepair } from './repair.ts'
import { fireLate, repairSchedules } from './trigger-repair.ts'

/** How late (seconds) a run must be before its workflow is looked for. */
const LATE_SECONDS = 120
const EVERY_MS = 60_000
const BATCH = 200
/** Schedules are compared in one of so many rounds. */
const SCHEDULES_EVERY = 15
/** Waits younger than this (seconds) are compared with the events once more. */
const FRESH_SECONDS = 180

/** Starts looking every minute for runs, intakes, imports and sends that no workflow drives; see `repairRun`. */
export function startReconciler(services: Services): { stop(): Promise<void> } {
  const halt = new AbortController()
  async function work(): Promise<void> {
    for (let round = 0; ; round++) {
      await sleep(EVERY_MS, undefined, { signal: halt.signal }).catch(() => undefined)
      if (halt.signal.aborted) return
      try {
        await reconcile(services)
        await fireLate(services, LATE_SECONDS)
        if (round % SCHEDULES_EVERY === 0) await repairSchedules(services)
      } catch (error) {
        services.log.warn({ err: error }, 'the runs could not be checked')
      }
    }
  }
  const working = work()
  return {
    async stop() {
      halt.abort()
      await working
    },
  }
}

/** Does one round. Returns how many runs were repaired. */
export async function reconcile(services: Services, lateSeconds = LATE_SECONDS): Promise<number> {
  const em = crossOrganization(services)
  for (const organizationId of await organizationsWithFreshWaits(em, FRESH_SECONDS)) {
    await tryRepair(services, organizationId, (call) => catchMissedEvents(call, FRESH_SECONDS))
  }
  await noteFreshConditions(em, FRESH_SECONDS)
  await restartSends(services, lateSeconds)
  await watchDomains(services)
  for (const { organizationId, places } of await findStalePlaces(em)) {
    await tryRepair(services, organizationId, (call) => freePlaces(call, places))
  }
  for (const { organizationId, automationId } of await findArchivedQueues(em)) {
    await tryRepair(services, organizationId, (call) => cancelLeftRuns(call, automationId))
  }
  await repairIntakes(services, lateSeconds)
  await repairImports(services, lateSeconds)
  let repaired = 0
  for (const run of await findOverdueRuns(em, lateSeconds, BATCH)) {
    const found = await stateOf(services, workflowIdOf(run))
    if (found === null) continue
    services.log.warn(
      { workflowId: workflowIdOf(run), state: found.state },
      'no workflow drives an overdue run',
    )
    if (await tryRepair(services, run.organizationId, (call) => repairRun(call, run, found))) repaired += 1
  }
  return repaired
}

async function repairIntakes(services: Services, lateSeconds: number): Promise<void> {
  for (const intake of await findOpenIntakes(crossOrganization(services), lateSeconds, BATCH)) {
    const workflowId = intakeWorkflowOf(intake)
    const found = await stateOf(services, workflowId)
    if (found === null) continue
    services.log.warn({ workflowId, state: found.state }, 'nobody works on an intake')
    await tryRepair(services, intake.organizationId, (call) => repairIntake(call, intake, found))
  }
}

async function repairImports(services: Services, lateSeconds: number): Promise<void> {
  for (const list of await findStrandedImports(crossOrganization(services), lateSeconds, BATCH)) {
    const workflowId = importWorkflowOf(list)
    const found = await stateOf(services, workflowId)
    if (found === null) continue
    services.log.warn({ workflowId, state: found.state }, 'nobody works on an import')
    await tryRepair(services, list.organizationId, (call) => repairImport(call, list, found))
  }
}

/** Starts stranded sends again. Where a workflow still runs, it only looks sooner. */
async function restartSends(services: Services, lateSeconds: number): Promise<void> {
  for (const send of await findStrandedSends(crossOrganization(services), lateSeconds, BATCH)) {
    const { organizationId, number } = send
    services.log.warn({ campaign: send.id, number }, 'nobody works on a campaign; starting its send again')
    await tryRepair(services, organizationId, (call) => startSend(call, send, number, { restart: true }))
  }
}

/** Starts the verification of domains again whose daily check is long overdue. */
async function watchDomains(services: Services): Promise<void> {
  for (const domain of await findUnwatchedDomains(crossOrganization(services), BATCH)) {
    const { organizationId } = domain
    services.log.warn({ domain: domain.domain }, 'nobody watches a domain; starting its verification again')
    await tryRepair(services, organizationId, (call) => watchDomain(call, domain))
  }
}

/** Returns how a workflow ended or that it sleeps too long; null while it works, or when Temporal cannot say. */
async function stateOf(services: Services, workflowId: string): Promise<WorkflowState | null> {
  return await askTemporal(services, { workflowId }, async (client) => {
    try {
      const described = await client.workflow.getHandle(workflowId).describe()
      const { status, runId: temporalRunId, typedSearchAttributes } = described
      const nextAt = typedSearchAttributes.get(SEARCH.nextAt)
      switch (status.name) {
        case 'CANCELLED':
          return { state: 'CANCELED', temporalRunId }
        case 'COMPLETED':
        case 'TERMINATED':
        case 'FAILED':
        case 'TIMED_OUT':
          return { state: status.name, temporalRunId }
        default:
          return nextAt && nextAt.getTime() > Date.now() ? { state: 'ASLEEP', temporalRunId } : null
      }
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return { state: 'MISSING', temporalRunId: null }
      throw error
    }
  })
}
