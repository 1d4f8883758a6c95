import type { MikroORM } from '@mikro-orm/postgresql'
import type { Logger } from 'pino'

import { createRateLimiter, type RateLimiter } from './catalogue/rate-limit.ts'
import type { Config } from './config.ts'
import { type DatabaseOptions, openDatabase } from './database.ts'
import { createLogger } from './log.ts'
import { createDns, type Dns } from './ports/dns.ts'
import { createDoorbell, type Doorbell } from './ports/doorbell.ts'
import { createPageReader, type PageReader } from './ports/page-reader.ts'
import { createDatabaseStorage, type Storage } from './ports/storage.ts'
import { createTemporalPort, type TemporalPort } from './ports/temporal.ts'
import { createWeb, type Web } from './ports/web.ts'

/** The services that every operation may use; each process has one set. */
export type Services = {
  config: Config
  log: Logger
  orm: MikroORM
  doorbell: Doorbell
  temporal: TemporalPort
  rateLimiter: RateLimiter
  web: Web
  dns: Dns
  pages: PageReader
  storage: Storage
  close(): Promise<void>
}

/** Opens the services of a process. Temporal is connected lazily, so that mail is accepted while it is down. */
export async function createServices(
  config: Config,
  name: string,
  options: Omit<DatabaseOptions, 'applicationName'> = {},
): Promise<Services> {
  const log = createLogger(name, config.logLevel)
  const orm = await openDatabase(config.databaseUrl, {
    applicationName: `postloom ${name}`,
    ...options,
  })
  const doorbell = createDoorbell(orm.em, log)
  const temporal = createTemporalPort(config.temporal, log)
  return {
    config,
    log,
    orm,
    doorbell,
    temporal,
    rateLimiter: createRateLimiter(),
    dns: createDns(config.dns.servers),
    web: createWeb({ allowPrivate: config.webAllowPrivate }),
    pages: createPageReader(),
    storage: createDatabaseStorage(orm.em),
    async close() {
      await doorbell.close()
      await temporal.close()
      await orm.close()
    },
  }
}
