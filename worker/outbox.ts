import { setTimeout as sleep } from 'node:timers/promises'

import { type Client, isGrpcServiceError } from '@temporalio/client'

import { crossOrganization } from '../src/catalogue/unit-of-work.ts'
import { createWaiter } from '../src/delivery/waiter.ts'
import { claimOutbox, finishOutbox, type OutboxRow, postponeOutbox } from '../src/domain/outbox.ts'
import { describeFault } from '../src/log.ts'
import type { Services } from '../src/services.ts'
import { tellTemporal } from './dispatch.ts'
import { performWork } from './run-work.ts'

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
 * Dispatches the outbox after each ring, and by polling in case a ring was lost. What fails is retried, with longer
 * pauses while Temporal is down. `knowsAttributes` returns whether the server knows our search attributes.
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
  const waiter = createWaiter()
  let rung = false

  function ring(): void {
    rung = true
    waiter.wake()
  }

  async function work(): Promise<void> {
    while (!halt.signal.aborted) {
      rung = false
      const free = MOST - inFlight.size
      const claimed = free > 0 && Date.now() >= pausedUntil ? await claim(services, free) : []
      for (const row of claimed) follow(row)
      if (done.length > 0) await forget()
      if (claimed.length === free && free > 0) continue
      await waiter.until(() => rung || halt.signal.aborted, POLL_MS)
    }
    // The client keeps repeating a call to a lost server long after it was cancelled, so this does not wait for its
    // end.
    await Promise.race([Promise.all(inFlight.values()), sleep(LAST_CALLS_MS, undefined, { ref: false })])
    await forget()
    await postpone(services, [...inFlight.keys()], 0)
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

  async function dispatch(row: OutboxRow): Promise<void> {
    if (row.kind === 'work') return await doWork(services, row)
    try {
      const client = await services.temporal.client()
      await client.withDeadline(Date.now() + CALL_MS, async () => {
        const isSearched = row.kind === 'start' || row.kind === 'schedule'
        const searchable = isSearched && (await options.knowsAttributes(client))
        await tellTemporal(client, row, services, searchable)
      })
      failures = 0
      done.push(row.id)
    } catch (error) {
      await later(row, error)
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
    await postpone(services, [row.id], delay)
  }

  const working = work()
  return {
    ring,
    async stop() {
      halt.abort()
      waiter.wake()
      await working
    },
  }
}

async function claim(services: Services, limit: number): Promise<OutboxRow[]> {
  try {
    return await claimOutbox(crossOrganization(services), limit, LEASE_SECONDS)
  } catch (error) {
    services.log.warn({ err: error }, 'the outbox cannot be read; trying again')
    return []
  }
}

/**
 * Performs work that needs no Temporal, such as requests of runs to other workflows. Its transaction also deletes
 * the row.
 */
async function doWork(services: Services, row: OutboxRow): Promise<void> {
  try {
    await performWork(services, row)
  } catch (error) {
    services.log.warn({ fault: describeFault(error), workflowId: row.workflowId }, 'not done yet')
    await postpone(services, [row.id], pauseAfter(row))
  }
}

/** Makes rows due again after `delayMs`. If this fails, they are claimed again when their lease ends. */
async function postpone(services: Services, ids: readonly string[], delayMs: number): Promise<void> {
  if (ids.length === 0) return
  await postponeOutbox(crossOrganization(services), ids, delayMs).catch(() => undefined)
}

/** Returns whether the server refused the row, which says nothing about other rows. */
function isRefused(error: unknown): boolean {
  if (isGrpcServiceError(error)) return error.code === INVALID_ARGUMENT
  return error instanceof Error && error.cause !== undefined && isRefused(error.cause)
}

function pauseAfter({ attempts }: OutboxRow): number {
  return Math.min(LONGEST_PAUSE_MS, 100 * 2 ** Math.min(attempts, 10))
}
