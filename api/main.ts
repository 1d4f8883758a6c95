import { createServer, type ServerResponse } from 'node:http'

import { readConfig } from '../src/config.ts'
import { createTracking } from '../src/public/tracking.ts'
import { createServices } from '../src/services.ts'
import { createApp } from './app.ts'

/**
 * Less than the socket timeout below, so that a query that takes too long is cancelled while its caller can still be
 * answered.
 */
const STATEMENT_TIMEOUT_MS = 50_000

const config = readConfig(process.env)
const services = await createServices(config, 'api', {
  poolSize: 12,
  statementTimeoutMs: STATEMENT_TIMEOUT_MS,
})
const tracking = createTracking(services)
const handle = createApp(services, tracking).callback()
const underWay = new Set<ServerResponse>()
let isStopping = false
const server = createServer((request, response) => {
  underWay.add(response)
  response.once('close', () => underWay.delete(response))
  // Otherwise a client that reuses its connection would keep the process from stopping.
  if (isStopping) response.shouldKeepAlive = false
  void handle(request, response)
})
server.keepAliveTimeout = 65_000
// Enough for a file of a gigabyte on a slow connection; JSON bodies (body.ts) and idle connections have a minute.
server.requestTimeout = 4 * 3_600_000
server.headersTimeout = 60_000
server.timeout = 60_000
server.listen(config.ports.api, config.host, () =>
  services.log.info({ port: config.ports.api }, 'API is listening'),
)

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stop())

/** Completes the requests under way, accepts no others, and closes the services. */
async function stop(): Promise<void> {
  if (isStopping) return
  isStopping = true
  for (const response of underWay) response.shouldKeepAlive = false
  await new Promise<void>((resolve) => {
    server.close(() => resolve())
    server.closeIdleConnections()
  })
  await tracking.stop()
  await services.close()
}
