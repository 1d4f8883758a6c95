import { execFile } from 'node:child_process'
import { join, relative } from 'node:path'

import { readSmtpConfig } from '../../smtp/config.ts'
import { readConfig } from '../../src/config.ts'
import { readRelays } from '../../src/delivery/relay.ts'
import { ensureCertificate } from './certificate.ts'
import { projectDirectory } from './layout.mjs'
import { stopLeftover } from './leftovers.ts'
import { rotate } from './log-file.ts'
import { startPostgres } from './postgres.ts'
import { startProgram } from './program.ts'
import { developmentCertificate, readSettings, type Settings } from './settings.ts'
import { clearOwner, readDevFile, stateDirectory, writeDevFile, type DevFile } from './state.ts'
import { supervise, type Part, type Supervised } from './supervisor.ts'
import { startTemporal } from './temporal.ts'

/** Receives messages for people, a call when everything is ready, and the exit code when everything has ended. */
export type ServiceListener = {
  say(line: string): void
  ready(): void
  ended(code: number): void
}

/** The order in which parts stop; those in one group stop together. A part stops before the parts that it needs. */
const STOP_ORDER = [['smtp'], ['api', 'worker'], ['mailbox', 'temporal'], ['postgres']]
/**
 * How long each part may take to stop, in ms, before it is killed. Groups of parts stop one after the other, so a stop
 * takes at most 14 seconds plus what killing takes; README.md and `WAIT_FOR_STOPPING_MS` in start.ts allow for that.
 */
const GRACE_MS = { program: 5_000, mailbox: 1_500, temporal: 1_500, postgres: 2_500 }
const SAME_TROUBLE_MS = 10_000

/** Starts all parts in order, keeps them running, and stops them in order. */
export class Service {
  readonly #listener: ServiceListener
  readonly #running = new Map<string, Supervised>()
  readonly #told = new Map<string, number>()
  #stop: Promise<void> | undefined

  constructor(listener: ServiceListener) {
    this.#listener = listener
  }

  /**
   * Resolves when everything is ready, or when a stop has begun. A failure stops all parts and ends with exit code 1.
   */
  async start(): Promise<void> {
    const startedAt = Date.now()
    try {
      const dev = await this.#startAll()
      this.#listener.say(announcement(dev, Date.now() - startedAt))
    } catch (error) {
      if (this.#stop) return
      this.#listener.say(error instanceof Error ? error.message : String(error))
      await this.stop(1)
    }
  }

  /** Stops all parts and reports the exit code. Only the first call has an effect. */
  async stop(code: number): Promise<void> {
    this.#stop ??= this.#stopAll(code)
    await this.#stop
  }

  async #startAll(): Promise<DevFile> {
    await stopLeftovers()
    const say = (line: string): void => this.#listener.say(line)
    const read = await readSettings(process.env, say)
    checkConfiguration(read)
    say('Starting Postloom …')
    const [databaseUrl] = await Promise.all([
      this.#startDatabase(read),
      this.#startTemporal(read),
      this.#startMailbox(read),
    ])
    const settings = { ...read, environment: { ...read.environment, DATABASE_URL: databaseUrl } }
    if (settings.isDevelopment) ensureCertificate(['localhost', '127.0.0.1'], developmentCertificate)
    const keys = await prepare(settings.environment)
    await Promise.all([
      this.#startProgram('api', 'api/main.ts', settings.ports.api, settings),
      this.#startProgram('worker', 'worker/main.ts', settings.ports.worker, settings),
    ])
    await this.#startProgram('smtp', 'smtp/main.ts', settings.ports.smtpHealth, settings)
    const { baseUrl, ...addresses } = settings.addresses
    const dev = { baseUrl, ...keys, ...addresses, database: { url: databaseUrl } }
    if (settings.isDevelopment) writeDevFile(dev)
    this.#listener.ready()
    return dev
  }

  async #startDatabase({ databaseUrl, ports }: Settings): Promise<string> {
    if (databaseUrl) return databaseUrl
    const logFile = log('postgres')
    let url = ''
    await this.#supervise({
      name: 'postgres',
      start: async () => {
        const server = await startPostgres({
          directory: join(stateDirectory, 'postgres'),
          logFile,
          port: ports.postgres,
          graceMs: GRACE_MS.postgres,
        })
        url = server.url
        return server
      },
    })
    return url
  }

  async #startTemporal({ hasOwnTemporal, ports }: Settings): Promise<void> {
    if (!hasOwnTemporal) return
    const logFile = log('temporal')
    await this.#supervise({
      name: 'temporal',
      start: () =>
        startTemporal({
          pidFile: join(stateDirectory, 'temporal.pid'),
          logFile,
          port: ports.temporal,
          uiPort: ports.temporalUi,
          databaseFile: join(stateDirectory, 'temporal.sqlite'),
          graceMs: GRACE_MS.temporal,
        }),
    })
  }

  async #startMailbox(settings: Settings): Promise<void> {
    if (!settings.isDevelopment) return
    const port = settings.ports.mailbox
    await this.#startProgram('mailbox', 'mailbox/main.ts', port, settings, GRACE_MS.mailbox)
  }

  async #startProgram(
    name: string,
    script: string,
    port: number,
    { environment, host }: Settings,
    graceMs = GRACE_MS.program,
  ): Promise<void> {
    log(name)
    await this.#supervise({
      name,
      start: () =>
        startProgram({
          name,
          script,
          environment,
          stateDirectory,
          readyUrl: `http://${host}:${port}/readyz`,
          graceMs,
          onTrouble: (line) => this.#tellTrouble(name, line),
        }),
    })
  }

  async #supervise(part: Part): Promise<void> {
    if (this.#stop) throw new Error('stopped while starting')
    const supervised = await supervise(part, {
      say: (line) => this.#listener.say(line),
      givenUp: (reason) => {
        this.#listener.say(`${reason}: stopping everything. Its log is ${log(part.name)}`)
        void this.stop(1)
      },
    })
    this.#running.set(part.name, supervised)
    if (this.#stop) await supervised.stop()
  }

  async #stopAll(code: number): Promise<void> {
    clearOwner()
    this.#listener.say('Stopping …')
    for (const names of STOP_ORDER) {
      await Promise.allSettled(names.map(async (name) => await this.#running.get(name)?.stop()))
    }
    this.#listener.say('Stopped. All data is kept.')
    this.#listener.ended(code)
  }

  /** Shows the same message at most every ten seconds; the log contains all of them. */
  #tellTrouble(name: string, line: string): void {
    const key = `${name} ${line}`
    const now = Date.now()
    if (now - (this.#told.get(key) ?? 0) < SAME_TROUBLE_MS || this.#stop) return
    if (this.#told.size > 1_000) this.#told.clear()
    this.#told.set(key, now)
    this.#listener.say(`${name}: ${line}`)
  }
}

/** Stops parts that an earlier service left running when it was killed together with its watchdogs. */
async function stopLeftovers(): Promise<void> {
  const pidFile = (name: string): string => join(stateDirectory, `${name}.pid`)
  await Promise.all(['smtp', 'api', 'worker'].map((name) => stopLeftover(pidFile(name), 'SIGTERM', 5_000)))
  await Promise.all(['mailbox', 'temporal'].map((name) => stopLeftover(pidFile(name), 'SIGTERM', 3_000)))
  await stopLeftover(join(stateDirectory, 'postgres', 'postgres.pid'), 'SIGINT', 5_000)
}

/** Throws an error that names a missing or malformed variable, before anything is started that would meet it. */
function checkConfiguration({ environment, databaseUrl = 'postgres://started later' }: Settings): void {
  readRelays(readConfig({ ...environment, DATABASE_URL: databaseUrl }).relayUrl)
  readSmtpConfig(environment)
}

/**
 * Migrates the database and, in development, seeds it. A separate process does so, which frees its memory when it ends.
 */
async function prepare(
  environment: Settings['environment'],
): Promise<Pick<DevFile, 'apiToken' | 'adminKey'>> {
  const { apiToken = '', adminKey = '' } = readDevFile() ?? {}
  const output = await new Promise<string>((resolve, reject) => {
    const script = join(projectDirectory, 'scripts', 'prepare.ts')
    const env = { ...environment, POSTLOOM_API_TOKEN: apiToken, POSTLOOM_ADMIN_KEY: adminKey }
    execFile(process.execPath, [script], { env, cwd: projectDirectory }, (error, stdout, stderr) => {
      if (error) reject(new Error(`The preparation failed:\n${(stderr || error.message).trim()}`))
      else resolve(stdout)
    })
  })
  // `prepare.ts` prints this object as its last line.
  return JSON.parse(output.trim().split('\n').at(-1) ?? '') as { apiToken: string; adminKey: string }
}

function log(name: string): string {
  const file = join(stateDirectory, 'logs', `${name}.log`)
  rotate(file)
  return file
}

function announcement(dev: DevFile, milliseconds: number): string {
  const { baseUrl, apiToken, adminKey, temporal, mailbox, smtp } = dev
  const keys = apiToken
    ? `
  API token     ${apiToken}
  Admin key     ${adminKey}

Try it:
  curl -s ${baseUrl}/api/v2/tools/list_subscribers \\
    -H 'Authorization: Bearer ${apiToken}' -H 'Content-Type: application/json' -d '{}'
`
    : ''
  const own = mailbox.url ? `\n  Mailbox       ${mailbox.url}   (SMTP on port ${mailbox.smtpPort})` : ''
  const state = relative('', stateDirectory)
  return `
Postloom is ready after ${(milliseconds / 1_000).toFixed(1)} s.

  API           ${baseUrl}   (reference: ${baseUrl}/docs)${own}
  SMTP          ${smtp.host}:${smtp.port}   (STARTTLS; any user name, the API token as the password)
  Temporal      ${temporal.uiUrl || temporal.address}
${keys}
Logs: ${state}/logs   Addresses and keys: ${state}/dev.json   Stop: Ctrl-C`
}
