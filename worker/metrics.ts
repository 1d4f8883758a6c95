import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'

import { crossOrganization } from '../src/catalogue/unit-of-work.ts'
import type { EntityManager } from '../src/database.ts'
import { countUnclaimedRecipients, queueDepths } from '../src/delivery/depth.ts'
import type { Lanes } from '../src/delivery/lanes.ts'
import { countPendingVisits } from '../src/domain/emails/visits.ts'
import { outboxDepth } from '../src/domain/outbox.ts'
import { describeFault } from '../src/log.ts'
import type { Services } from '../src/services.ts'

/** The Prometheus metrics of a worker. */
export type Metrics = {
  contentType: string
  /** Reads them. What is counted in the database is left out while that does not answer. */
  text(): Promise<string>
}

/** The label of each kind of outcome. */
const OUTCOMES = [
  ['sent', 'accepted'],
  ['soft', 'deferred'],
  ['hard', 'bounced'],
  ['failed', 'failed'],
  ['back', 'untried'],
] as const

/** Creates the metrics of the worker whose emails `lanes` sends. */
export function createMetrics(services: Services, lanes: Lanes): Metrics {
  const own = new Registry()
  collectDefaultMetrics({ register: own })
  measureSending(own, lanes)
  const { shared, refresh } = measureDatabase()
  return {
    contentType: own.contentType,
    async text() {
      try {
        await refresh(() => crossOrganization(services))
        return (await own.metrics()) + (await shared.metrics())
      } catch (error) {
        services.log.warn({ fault: describeFault(error) }, 'metrics could not be read from the database')
        return await own.metrics()
      }
    },
  }
}

function measureSending(registry: Registry, lanes: Lanes): void {
  const attempts = new Counter({
    name: 'postloom_emails_total',
    help: 'Attempts of this process to send an email: accepted, deferred (tried again), bounced, failed, or untried because no relay could be used.',
    labelNames: ['lane', 'outcome'],
    registers: [registry],
    collect() {
      attempts.reset()
      for (const [lane, parts] of lanes.byName) {
        for (const { ended } of parts) {
          for (const [kind, outcome] of OUTCOMES) attempts.inc({ lane, outcome }, ended[kind])
        }
      }
    },
  })
  const relays = new Gauge({
    name: 'postloom_relay_usable',
    help: 'Whether this process sends email to the relay (1), or the relay rests after failures (0).',
    labelNames: ['relay'],
    registers: [registry],
    collect() {
      for (const { relay, isUsable } of lanes.relays()) relays.set({ relay }, Number(isUsable))
    },
  })
}

/** Creates the gauges that are the same for all workers; `refresh` reads them from the database. */
function measureDatabase(): { shared: Registry; refresh: (fork: () => EntityManager) => Promise<void> } {
  const shared = new Registry()
  const gauge = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Gauge({ name, help, labelNames, registers: [shared] })
  const outbox = gauge('postloom_outbox_rows', 'What Temporal has not been told yet.')
  const visits = gauge('postloom_pending_visits_rows', 'Opens and clicks that are not counted yet.')
  const queue = gauge(
    'postloom_queue_emails',
    'Emails that are queued, claimed by a sender, deferred, held by a pause, or set apart, up to 100,000 of each.',
    ['lane', 'state'],
  )
  const late = gauge(
    'postloom_queue_late_seconds',
    'How long the email of a lane that has waited longest for its turn has waited.',
    ['lane'],
  )
  const recipients = gauge(
    'postloom_campaign_recipients',
    'Recipients of campaigns, sending or paused, whose email no sender has claimed yet.',
  )

  async function refresh(fork: () => EntityManager): Promise<void> {
    const [started, pending, depths, unclaimed] = await Promise.all([
      outboxDepth(fork()),
      countPendingVisits(fork()),
      queueDepths(fork()),
      countUnclaimedRecipients(fork()),
    ])
    queue.reset()
    outbox.set(started)
    visits.set(pending)
    recipients.set(unclaimed)
    for (const lane of ['transactional', 'bulk']) late.set({ lane }, 0)
    for (const { lane, state, emails, dueSeconds } of depths) {
      queue.set({ lane, state }, emails)
      if (state === 'queued') late.set({ lane }, Math.max(0, dueSeconds))
    }
  }

  return { shared, refresh }
}
