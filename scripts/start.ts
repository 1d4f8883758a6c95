import { setTimeout as sleep } from 'node:timers/promises'

import { takeLock, type RunLock } from './services/run-lock.ts'
import { Service } from './services/service.ts'
import { lockFile, openState, readDevFile, readOwner, writeOwner } from './services/state.ts'

/** `npm start`: runs the whole service in one process tree. */
const HELP = `npm start

Runs Postloom: PostgreSQL, Temporal with its Web UI, the API, the worker, SMTP and a mailbox
that keeps what is sent. All of it listens on this machine only, and keeps its data in .postloom/.

Set in the environment, all optional:
  DATABASE_URL             use this PostgreSQL in place of the embedded one
  TEMPORAL_ADDRESS         use this Temporal server (host:port), TEMPORAL_NAMESPACE, TEMPORAL_UI_URL
  API_PORT 3000            MAILBOX_PORT 8025        MAILBOX_SMTP_PORT 1025    SMTP_PORT 2587
  TEMPORAL_PORT 7233       TEMPORAL_UI_PORT 8233    WORKER_PORT 3001          POSTGRES_PORT 54320
  SMTP_INBOUND_PORT 2525   SMTP_HEALTH_PORT 3002
                           a port that is taken moves on to the next free one, unless it is set
  POSTLOOM_HOST            the address that the API, the worker, SMTP and the mailbox listen on (127.0.0.1)
  POSTLOOM_BASE_URL        the address that links in mail start with
  RELAY_URL                the mail relay (the built-in mailbox)
  LOG_LEVEL                debug, info, warn, error
  POSTLOOM_STATE           where data, logs and addresses are kept (.postloom)

Addresses and keys are written to .postloom/dev.json, logs to .postloom/logs/. Ctrl-C stops everything.`

const WAIT_FOR_STOPPING_MS = 20_000
const PARENT_CHECK_MS = 250

if (process.argv.includes('--help') || process.argv.includes('-h')) {
  console.log(HELP)
} else {
  // The reader of our output may be gone, which must not crash the service.
  process.stdout.on('error', () => undefined)
  process.stderr.on('error', () => undefined)
  openState()
  const lock = await lockCheckout()
  if (lock) await runService(lock)
  else process.exitCode = 1
}

async function runService(lock: RunLock): Promise<void> {
  const parent = npmParent()
  writeOwner(false, parent)
  const service = new Service({
    say: (line) => console.log(line),
    ready: () => writeOwner(true, parent),
    ended: (code) => finish(code),
  })
  const finish = (code: number): void => {
    lock.release()
    process.exit(code)
  }
  listenForStop(service)
  if (parent) watchParent(parent, service)
  await service.start()
}

/**
 * Makes sure that a checkout runs one service. If another runs, prints where and returns undefined; if it is stopping,
 * waits for it.
 */
async function lockCheckout(): Promise<RunLock | undefined> {
  const deadline = Date.now() + WAIT_FOR_STOPPING_MS
  let isTold = false
  for (;;) {
    const lock = takeLock(lockFile)
    if (lock) return lock
    const owner = readOwner()
    if (owner) {
      const where = owner.isReady ? ` at ${readDevFile()?.baseUrl}` : ' and is still starting'
      console.error(`Postloom already runs here${where} (process ${owner.pid}). Stop that one first.`)
      return undefined
    }
    if (Date.now() > deadline) {
      console.error('An earlier service of this checkout does not end; see .postloom/logs.')
      return undefined
    }
    if (!isTold) console.log('An earlier service is stopping; waiting for it.')
    isTold = true
    await sleep(100)
  }
}

function listenForStop(service: Service): void {
  let firstAt = 0
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // One Ctrl-C can arrive twice: from the terminal and from npm.
      if (firstAt && Date.now() - firstAt > 1_000) process.exit(130)
      firstAt ||= Date.now()
      void service.stop(0)
    })
  }
  process.on('uncaughtException', (error) => {
    console.error(error)
    void service.stop(1)
  })
}

/**
 * Returns the process id of npm if it started us. When npm is killed it cannot pass a signal on, so `watchParent`
 * checks it.
 */
function npmParent(): number | undefined {
  return process.env['npm_lifecycle_event'] === 'start' ? process.ppid : undefined
}

function watchParent(parent: number, service: Service): void {
  setInterval(() => {
    if (process.ppid !== parent) void service.stop(0)
  }, PARENT_CHECK_MS).unref()
}
