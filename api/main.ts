import { createServer, type ServerResponse } from 'node:http'

import { readConfig } from '../src/config.ts'
import { createTracking } from '../src/public/tracking.ts'
import { createServices } from '../src/services.ts'
import { createApp } from './app.ts'

/** Less than a connection may be silent, so that a slow question is answered, and never runs on unheard. */
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
  // A client that is busy on a kept connection would hold the process for ever.
  if (isStopping) response.shouldKeepAlive = false
  void handle(request, response)
})
server.keepAliveTimeout = 65_000
// A file of a gigabyte over a slow line; bodies of JSON have a minute (body.ts), and a silent connection as well.
server.requestTimeout = 4 * 3_600_000
server.headersTimeout = 60_000
server.timeout = 60_000
server.listen(config.ports.api, config.host, () =>
  services.log.info({ port: config.ports.api }, 'API is listening'),
)

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stop())

/** Answers what is under way, takes nothing new, and ends. */
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
