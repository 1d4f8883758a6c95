import { setTimeout as sleep } from 'node:timers/promises'

import { startChild, type Child } from './child.ts'
import { findTemporal } from './layout.mjs'
import { tail } from './log-file.ts'
import { freePort } from './ports.ts'

/** The search attributes by which runs are found in the Web UI and with `temporal workflow list --query`. */
export const SEARCH_ATTRIBUTES = {
  OrgId: 'Keyword',
  AutomationId: 'Keyword',
  SubscriberId: 'Keyword',
  CampaignId: 'Keyword',
  Step: 'Keyword',
  RunState: 'Keyword',
  NextAt: 'Datetime',
} as const

const NAMESPACE = 'default'
/** How long finished runs stay visible in the Web UI. The dev server's default is one day. */
export const RETENTION_SECONDS = 30 * 24 * 3600
const HOST = '127.0.0.1'

/**
 * Without `databaseFile` everything is kept in memory; without `uiPort` there is no Web UI. Port 0 means any free port.
 */
export type TemporalOptions = {
  pidFile: string
  logFile: string
  port?: number
  uiPort?: number
  databaseFile?: string
  /** Values of the server's dynamic configuration. */
  dynamic?: Record<string, number>
  /** How long a stop may take, in ms, before the server is killed. A kill loses nothing either. */
  graceMs?: number
}

/** A running dev server. */
export type Temporal = Child & {
  address: string
  port: number
  uiUrl: string | undefined
}

/** Starts a Temporal dev server with our search attributes and waits until it answers. */
export async function startTemporal(options: TemporalOptions): Promise<Temporal> {
  const attempts = options.port ? 1 : 3
  for (let attempt = 1; ; attempt += 1) {
    const port = options.port || (await freePort())
    try {
      return await startServer(options, port)
    } catch (error) {
      // Another program may have taken the free port in the meantime.
      if (attempt >= attempts) throw error
    }
  }
}

async function startServer(options: TemporalOptions, port: number): Promise<Temporal> {
  const command = findTemporal()
  if (!command)
    throw new Error('There is no Temporal server here: run "npm run setup", or set TEMPORAL_ADDRESS')
  const httpPort = await freePort(HOST)
  const child = await startChild({
    command,
    arguments: serverArguments(options, port, httpPort),
    identity: options.databaseFile ?? `start-dev --ip ${HOST} --port ${port}`,
    pidFile: options.pidFile,
    output: options.logFile,
    graceMs: options.graceMs ?? 3_000,
  })
  try {
    await waitUntilReady(`http://${HOST}:${httpPort}/api/v1/namespaces/${NAMESPACE}`, child)
  } catch (error) {
    await child.stop()
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`Temporal did not start: ${reason}\n${tail(options.logFile, 8)}`, { cause: error })
  }
  const uiUrl = options.uiPort ? `http://${HOST}:${options.uiPort}` : undefined
  return { ...child, address: `${HOST}:${port}`, port, uiUrl }
}

function serverArguments(
  { databaseFile, uiPort, dynamic = {} }: TemporalOptions,
  port: number,
  httpPort: number,
): string[] {
  const attributes = Object.entries(SEARCH_ATTRIBUTES)
  return [
    'server',
    'start-dev',
    '--ip',
    HOST,
    '--port',
    String(port),
    '--http-port',
    String(httpPort),
  ].concat(
    uiPort ? ['--ui-port', String(uiPort)] : ['--headless'],
    databaseFile ? ['--db-filename', databaseFile] : [],
    ['--namespace', NAMESPACE, '--log-level', 'error', '--log-format', 'json'],
    attributes.flatMap(([name, type]) => ['--search-attribute', `${name}=${type}`]),
    Object.entries(dynamic).flatMap(([name, value]) => ['--dynamic-config-value', `${name}=${value}`]),
  )
}

async function waitUntilReady(namespaceUrl: string, child: Child): Promise<void> {
  let ended: string | undefined
  void child.exited.then((reason) => {
    ended = reason
  })
  const deadline = Date.now() + 60_000
  for (;;) {
    try {
      if (await keepFinishedRuns(namespaceUrl)) return
    } catch (error) {
      if (Date.now() > deadline) throw error
    }
    if (ended !== undefined) throw new Error(ended)
    if (Date.now() > deadline) throw new Error('it does not answer after a minute')
    await sleep(50)
  }
}

/** Sets the retention. Returns false while the server is not ready for it. */
async function keepFinishedRuns(namespaceUrl: string): Promise<boolean> {
  const answer = await fetch(`${namespaceUrl}/update`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ config: { workflowExecutionRetentionTtl: `${RETENTION_SECONDS}s` } }),
    signal: AbortSignal.timeout(5_000),
  })
  return answer.ok
}
