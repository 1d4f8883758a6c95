import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

import { crossOrganization } from '../src/catalogue/unit-of-work.ts'
import { readConfig } from '../src/config.ts'
import type { EntityManager } from '../src/database.ts'
import { startLanes } from '../src/delivery/lanes.ts'
import { forgetExpired, keepHouse } from '../src/domain/housekeeping.ts'
import { createServices } from '../src/services.ts'
import { startDeliverability } from './deliverability.ts'
import { startEchoWatch } from './echo-watch.ts'
import { startHealthServer } from './health.ts'
import { createMetrics } from './metrics.ts'
import { startSchedules } from './schedules.ts'
import { startSegmentWatch } from './segment-watch.ts'
import { startVisits } from './visits.ts'
import { startWebhookTurns } from './webhook-turns.ts'
import { startEngine } from './workers.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const HOUSE_RETRY_MS = 60_000

const config = readConfig(process.env)
const graceMs = config.env === 'production' ? 25_000 : 4_000
const services = await createServices(config, 'worker', { poolSize: 30 })
const halt = new AbortController()

// Mail comes first: it is sent whether or not Temporal is reachable.
const lanes = await startLanes(services, { workerName: `${hostname()}/${process.pid}`, graceMs })
const segments = startSegmentWatch(services)
const echoes = startEchoWatch(services)
const visits = startVisits(services)
const deliverability = startDeliverability(services)
const webhooks = startWebhookTurns(services, { graceMs })
const engine = await startEngine(services, { graceMs })
const schedules = startSchedules(services)
const server = startHealthServer(services, engine, createMetrics(services, lanes))
const housekeeping = [repeat(forgetExpired, HOUR_MS), repeat(keepHouse, DAY_MS)]

let isStopping = false
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stop())

/** Takes no new work, finishes current work within the grace period, and exits. */
async function stop(): Promise<void> {
  if (isStopping) return
  isStopping = true
  // Work that hangs beyond the grace period is cut off; its rows and leases bring it back.
  setTimeout(() => process.exit(1), graceMs + 800).unref()
  halt.abort()
  server.close()
  server.closeAllConnections()
  await Promise.all([
    engine.stop(),
    lanes.stop(),
    segments.stop(),
    echoes.stop(),
    visits.stop(),
    deliverability.stop(),
    webhooks.stop(),
    schedules.stop(),
    ...housekeeping,
  ])
  await services.close()
  process.exit(0)
}

async function repeat(work: (em: EntityManager) => Promise<void>, everyMs: number): Promise<void> {
  while (!halt.signal.aborted) {
    const done = await work(crossOrganization(services)).then(
      () => true,
      (error: unknown) => {
        services.log.warn({ err: error }, 'the house could not be kept; trying again')
        return false
      },
    )
    await sleep(done ? everyMs : HOUSE_RETRY_MS, undefined, { signal: halt.signal }).catch(() => undefined)
  }
}
