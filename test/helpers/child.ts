import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'

import type { TestServices } from './database.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** Starts a script of the project (a path from its root) as a separate process on the database of these services. */
export function startProcess(
  { config, databaseUrl }: Pick<TestServices, 'config' | 'databaseUrl'>,
  script: string,
  { env = {}, parameters = [] }: { env?: Record<string, string>; parameters?: readonly string[] } = {},
): ChildProcess {
  return spawn(process.execPath, [join(ROOT, script), ...parameters], {
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      TEMPORAL_ADDRESS: config.temporal.address,
      TEMPORAL_NAMESPACE: config.temporal.namespace,
      TEMPORAL_TASK_QUEUE: config.temporal.taskQueue,
      RELAY_URL: config.relayUrl,
      LANE_RATE_TRANSACTIONAL: String(config.laneRates.transactional),
      LANE_RATE_BULK: String(config.laneRates.bulk),
      WORKER_PORT: '0',
      LOG_LEVEL: 'error',
      ...env,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** Returns whether the process still runs. */
export function isUp(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

/** Sends a signal to a process and resolves when it has ended. */
export async function endProcess(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (!isUp(child)) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  await gone
}
