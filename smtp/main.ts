import { createLogger } from '../src/log.ts'
import { createApiClient } from './api-client.ts'
import { readSmtpConfig } from './config.ts'
import { startHealthServer } from './health.ts'
import { createInbound } from './inbound.ts'
import type { Door } from './server.ts'
import { createSubmission } from './submission.ts'

/** The SMTP process. It talks to clients and to the API, and uses no database. */
const config = readSmtpConfig(process.env)
const log = createLogger('smtp', config.logLevel)
const api = createApiClient(config.api)
const health = startHealthServer(api)
const { name, certificate, proxies, secret } = config
const parts = { name, certificate, proxies, api, log, onReply: health.countReply }
const submission = createSubmission(parts)
const inbound = createInbound({ ...parts, secret })
health.server.listen(config.ports.health, config.host)
submission.listen(config.ports.submission, config.host, () =>
  log.info({ port: config.ports.submission }, 'SMTP submission is listening'),
)

inbound.listen(config.ports.inbound, config.host, () =>
  log.info({ port: config.ports.inbound }, 'inbound SMTP is listening'),
)

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    health.server.close()
    health.server.closeAllConnections()
    // Conversations under way are finished, or end with 421 after some seconds.
    void Promise.all([submission, inbound].map(closed)).then(() => {
      api.close()
      process.exit(0)
    })
  })
}

async function closed(door: Door): Promise<void> {
  await new Promise<void>((resolve) => door.close(resolve))
}
