import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'

import { sql } from 'kysely'

import { ensureCertificate } from '../../scripts/services/certificate.ts'
import { type Child, startChild } from '../../scripts/services/child.ts'
import { MEMORY_ENVIRONMENT, memoryFlags } from '../../scripts/services/memory.ts'
import { freePort } from '../../scripts/services/ports.ts'
import { startPostgres } from '../../scripts/services/postgres.ts'
import { startTemporal } from '../../scripts/services/temporal.ts'
import { readConfig } from '../../src/config.ts'
import { execute, migrate } from '../../src/database.ts'
import { seedDevelopment } from '../../src/development.ts'
import { createServices, type Services } from '../../src/services.ts'
import { type Sink, startSmtpSink } from '../../test/helpers/smtp-sink.ts'

type Part = 'api' | 'worker' | 'smtp'

/** The whole service as separate processes on the loopback interface, with a sink instead of a relay. */
export type System = {
  url: string
  token: string
  organizationId: string
  services: Services
  sink: Sink
  /** The port of SMTP submission and the files of its certificate. */
  smtp: { port: number; certFile: string; keyFile: string }
  temporalAddress: string
  /** Returns the resident memory of a process in MB, current and peak. */
  memory(part: Part): { now: number; peak: number }
  /** Returns the processor time of a process and its ended children, in milliseconds. */
  processorMs(part: Part | 'postgres'): number
  stop(): Promise<void>
}

type Options = { api?: boolean; worker?: boolean; smtp?: boolean; env?: Record<string, string> }

/** Starts PostgreSQL (durable), Temporal (in memory), a sink and the requested processes. */
export async function startSystem({
  api = true,
  worker = true,
  smtp = false,
  env = {},
}: Options = {}): Promise<System> {
  const directory = mkdtempSync(join(tmpdir(), 'postloom-bench-'))
  // Under root, PostgreSQL runs as another user, who must reach its own directory below.
  chmodSync(directory, 0o711)
  const postgres = await startPostgres({
    directory,
    dataParent: directory,
    logFile: join(directory, 'postgres.log'),
  })
  const temporal = await startTemporal({
    pidFile: join(directory, 'temporal.pid'),
    logFile: join(directory, 'temporal.log'),
    port: 0,
  })
  const sink = await startSmtpSink({}, { keepRaw: false, chunking: true })
  const ports = {
    api: await freePort(),
    worker: await freePort(),
    smtp: await freePort(),
    smtpHealth: await freePort(),
  }
  const certificate = { certFile: join(directory, 'smtp.crt'), keyFile: join(directory, 'smtp.key') }
  ensureCertificate(['localhost', '127.0.0.1'], certificate)
  const environment = {
    ...environmentOf(ports, certificate),
    DATABASE_URL: postgres.url,
    TEMPORAL_ADDRESS: temporal.address,
    // The sink stands for the operator's own relay, so its connection limit is set high.
    RELAY_URL: `${sink.url}?connections=320`,
    ...env,
  }
  const config = readConfig(environment)
  await migrate(config)
  const { apiToken } = await seedDevelopment(config, {})
  const services = await createServices(config, 'bench')
  await execute(
    services.orm.em.fork(),
    sql`update organization set custom_limits = '{"requestsPerMinute": 0}'::jsonb`,
  )
  const { rows } = await sql<{ id: string }>`select id from organization`.execute(services.orm.em.getKysely())

  const children = new Map<string, Child>()
  async function run(part: Part, port: number): Promise<void> {
    children.set(
      part,
      await startChild({
        command: process.execPath,
        arguments: [...memoryFlags(part), join(import.meta.dirname, '..', '..', part, 'main.ts')],
        identity: `${part}/main.ts`,
        pidFile: join(directory, `${part}.pid`),
        output: (line) => console.error(`${part}: ${line}`),
        environment,
        directory: join(import.meta.dirname, '..', '..'),
      }),
    )
    await untilReady(`http://127.0.0.1:${port}/readyz`)
  }
  if (api) await run('api', ports.api)
  if (worker) await run('worker', ports.worker)
  if (smtp) await run('smtp', ports.smtpHealth)

  return {
    url: `http://127.0.0.1:${ports.api}`,
    token: apiToken,
    organizationId: rows[0]?.id ?? '',
    services,
    sink,
    smtp: { port: ports.smtp, ...certificate },
    temporalAddress: temporal.address,
    memory(part) {
      const status = readFileSync(`/proc/${children.get(part)?.pid}/status`, 'utf8')
      const megabytes = (name: string) =>
        Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1_024)
      return { now: megabytes('VmRSS'), peak: megabytes('VmHWM') }
    },
    processorMs(part) {
      return part === 'postgres' ? familyMs(postgres.pid) : processMs(children.get(part)?.pid)
    },
    async stop() {
      for (const child of children.values()) await child.stop()
      await services.close()
      await sink.close()
      await temporal.stop()
      await postgres.stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

type Ports = Record<'api' | 'worker' | 'smtp' | 'smtpHealth', number>

/** Returns the environment of all processes: nothing limits their rates, and logs are few. */
function environmentOf(ports: Ports, certificate: { certFile: string; keyFile: string }) {
  return {
    ...process.env,
    ...MEMORY_ENVIRONMENT,
    POSTLOOM_ENV: 'development',
    API_PORT: String(ports.api),
    WORKER_PORT: String(ports.worker),
    SMTP_PORT: String(ports.smtp),
    SMTP_HEALTH_PORT: String(ports.smtpHealth),
    SMTP_TLS_CERT: certificate.certFile,
    SMTP_TLS_KEY: certificate.keyFile,
    LOG_LEVEL: 'warn',
    LANE_RATE_TRANSACTIONAL: '0',
    LANE_RATE_BULK: '0',
    UV_THREADPOOL_SIZE: String(Math.max(4, availableParallelism())),
  }
}

/**
 * Returns the processor time of a process in milliseconds: utime and stime, which count hundredths of a second. With
 * `ended`, adds that of its children that have ended.
 */
export function processMs(pid: number | undefined, ended = false): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  const ticks = fields.slice(11, ended ? 15 : 13)
  return ticks.reduce((sum, each) => sum + Number(each), 0) * 10
}

/** Returns the processor time of a server and all its processes, including ended ones. */
function familyMs(pid: number): number {
  const living = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  return living.filter(Boolean).reduce(
    (sum, child) => {
      try {
        return sum + processMs(Number(child))
      } catch {
        return sum
      }
    },
    processMs(pid, true),
  )
}

async function untilReady(url: string): Promise<void> {
  const deadline = Date.now() + 60_000
  while (Date.now() < deadline) {
    const answer = await fetch(url).catch(() => undefined)
    if (answer?.ok) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`${url} did not become ready within a minute`)
}
