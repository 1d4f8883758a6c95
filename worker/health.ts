import { createServer, type Server } from 'node:http'

import { crossOrganization } from '../src/catalogue/unit-of-work.ts'
import { isReachable } from '../src/database.ts'
import type { Services } from '../src/services.ts'
import type { Metrics } from './metrics.ts'
import type { Engine } from './workers.ts'

/** Starts the worker's server for `/healthz`, `/readyz` (which dependency is missing) and `/metrics`. */
export function startHealthServer(services: Services, engine: Engine, metrics: Metrics): Server {
  async function answer(path: string): Promise<{ status: number; type: string; body: string }> {
    if (path === '/healthz') return json(200, { status: 'ok' })
    if (path === '/readyz') return await readiness(services, engine)
    if (path === '/metrics') return { status: 200, type: metrics.contentType, body: await metrics.text() }
    return json(404, { status: 'not found' })
  }

  const server = createServer((request, response) => {
    answer(request.url ?? '/')
      .catch(() => json(503, { status: 'not ready' }))
      .then(({ status, type, body }) => response.writeHead(status, { 'content-type': type }).end(body))
      .catch(() => response.destroy())
  })
  const { config, log } = services
  server.listen(config.ports.worker, config.host, () =>
    log.info({ port: config.ports.worker }, 'worker is up'),
  )
  return server
}

async function readiness(services: Services, engine: Engine) {
  // A Temporal worker keeps running while its server is down, so the server is asked too.
  const [database, temporal] = await Promise.all([
    isReachable(crossOrganization(services)),
    engine.isRunning() && services.temporal.isReachable(),
  ])
  const missing = engine.missingAttributes()
  const isReady = database && temporal
  return json(isReady ? 200 : 503, {
    status: isReady ? 'ready' : 'not ready',
    dependencies: {
      database: database ? 'ok' : 'unreachable',
      temporal: temporal ? 'ok' : 'unreachable; mail is sent, automations wait',
      ...(missing?.length && {
        searchAttributes: `not registered: ${missing.join(', ')}; runs start without search attributes`,
      }),
    },
  })
}

function json(status: number, body: unknown) {
  return { status, type: 'application/json', body: JSON.stringify(body) }
}
