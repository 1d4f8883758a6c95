import Router from '@koa/router'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

import { crossOrganization } from '../src/catalogue/unit-of-work.ts'
import { isReachable } from '../src/database.ts'
import type { Tracking } from '../src/public/tracking.ts'
import type { Services } from '../src/services.ts'

/** Creates the Prometheus metrics of this process. Routes are patterns, so that no token becomes a label. */
export function createMetrics(tracking: Tracking) {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const requests = new Histogram({
    name: 'postloom_http_request_seconds',
    help: 'Time to answer HTTP requests, by route and status.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  })
  measureVisits(registry, tracking)
  return { registry, requests }
}

function measureVisits(registry: Registry, tracking: Tracking): void {
  const visits = new Counter({
    name: 'postloom_visits_total',
    help: 'Opens and clicks: written, or dropped because the database was away for long or rejected them.',
    labelNames: ['outcome'],
    registers: [registry],
    collect() {
      const { written, dropped } = tracking.counts()
      visits.reset()
      visits.inc({ outcome: 'written' }, written)
      visits.inc({ outcome: 'dropped' }, dropped)
    },
  })
  const waiting = new Gauge({
    name: 'postloom_visits_waiting',
    help: 'Opens and clicks in memory, which a crash would lose.',
    registers: [registry],
    collect() {
      waiting.set(tracking.counts().waiting)
    },
  })
}

/** `/healthz` (the process answers), `/readyz` (which dependency is missing) and `/metrics`. */
export function healthRoutes(services: Services, registry: Registry): Router {
  const router = new Router()

  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' }
  })

  router.get('/readyz', async (ctx) => {
    const [database, temporal] = await Promise.all([
      isReachable(crossOrganization(services)),
      services.temporal.isReachable(),
    ])
    // Without Temporal the API still accepts mail and writes, so this is reported but does not take the process out of
    // service.
    ctx.status = database ? 200 : 503
    ctx.body = {
      status: database ? 'ready' : 'not ready',
      dependencies: { database: database ? 'ok' : 'unreachable', temporal: temporal ? 'ok' : 'unreachable' },
    }
  })

  router.get('/metrics', async (ctx) => {
    ctx.type = registry.contentType
    ctx.body = await registry.metrics()
  })

  return router
}
