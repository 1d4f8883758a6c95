import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'

import { projectDirectory } from '../services/layout.mjs'
import { type DevFile, readDevFile, readOwner, stateDirectory } from '../services/state.ts'
import { DemoError, until } from './report.ts'

/** A running service. `stop` ends it only if the demonstration started it. */
export type RunningService = { addresses: DevFile; wasRunning: boolean; stop(): Promise<void> }

const START_MS = 120_000
const STOP_MS = 20_000
const SHOWN_LINES = 20

/** Returns the service of this checkout that is already running, or starts one. */
export async function bringUp(): Promise<RunningService> {
  if (readOwner()) {
    return { addresses: await addressesWhenReady(() => undefined), wasRunning: true, stop: async () => {} }
  }
  console.log('Starting the service …')
  const child = spawn(process.execPath, [join(projectDirectory, 'scripts/start.ts')], {
    cwd: projectDirectory,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => lines.push(...text.split('\n').filter(Boolean)))
  }
  const stop = (): Promise<void> => stopChild(child)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      console.log('Stopping the service …')
      void stop().then(() => process.exit(130))
    })
  }
  try {
    const addresses = await addressesWhenReady(() => {
      if (child.exitCode === null && child.signalCode === null) return
      const said = lines.slice(-SHOWN_LINES).join('\n')
      throw new DemoError(`The service did not start; it said:\n${said}`)
    })
    return { addresses, wasRunning: false, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function addressesWhenReady(check: () => void): Promise<DevFile> {
  return await until(
    `The start of the service (${stateDirectory})`,
    async () => {
      check()
      return readOwner()?.isReady ? readDevFile() : undefined
    },
    START_MS,
  )
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  await ended
  clearTimeout(timer)
}
