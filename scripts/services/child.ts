import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'

import { stopLeftover } from './leftovers.ts'

const watchdog = join(import.meta.dirname, 'watchdog.sh')

/** How to run a service. `identity` is a text that occurs in its command line and in no other. */
export type ChildOptions = {
  command: string
  arguments: readonly string[]
  identity: string
  pidFile: string
  /** Where its output goes: a file that is appended to, or a function that gets each line. */
  output: string | ((line: string) => void)
  environment?: Record<string, string | undefined>
  directory?: string
  stopSignal?: 'SIGTERM' | 'SIGINT'
  graceMs?: number
  user?: { uid: number; gid: number } | undefined
}

/** A running service. `exited` never rejects; it resolves to the reason ("exit code 1", "SIGKILL"). */
export type Child = {
  pid: number
  exited: Promise<string>
  stop(): Promise<void>
  kill(): void
}

/**
 * Starts a service behind a watchdog in a session of its own. Ctrl-C does not reach it, and it ends with this process
 * even if this process is killed. A process left by an earlier run is stopped first.
 */
export async function startChild(options: ChildOptions): Promise<Child> {
  const { stopSignal = 'SIGTERM', graceMs = 5_000, pidFile } = options
  await stopLeftover(pidFile, stopSignal, graceMs)

  const log = typeof options.output === 'string' ? openSync(options.output, 'a', 0o600) : undefined
  // Another user may not be able to read the checkout, so the watchdog is passed as text.
  const script = options.user ? ['-c', readFileSync(watchdog, 'utf8'), 'watchdog'] : [watchdog]
  const process = spawn(
    '/bin/sh',
    [...script, stopSignal.slice(3), String(Math.ceil(graceMs / 100)), options.command, ...options.arguments],
    {
      detached: true,
      stdio: ['pipe', log ?? 'pipe', log ?? 'pipe', 'pipe'],
      env: options.environment ?? globalThis.process.env,
      cwd: options.directory ?? '/',
      ...options.user,
    },
  )
  if (log !== undefined) closeSync(log)
  if (typeof options.output === 'function') forwardLines([process.stdout, process.stderr], options.output)
  const control = process.stdin
  // The watchdog may already have closed its end; `exited` reports that.
  control?.on('error', () => undefined)

  const exited = new Promise<string>((resolve) => {
    process.once('error', (error) => resolve(error.message))
    process.once('exit', (code, signal) => resolve(describeExit(code, signal)))
  }).then((reason) => {
    control?.destroy()
    return reason
  })

  // `stdio` above makes descriptor 3 a pipe, which Node exposes as a readable stream.
  const pid = await readPid(process.stdio[3] as Readable, exited)
  if (pid === undefined) throw new Error(`${options.command} did not start: ${await exited}`)
  writeFileSync(pidFile, `${pid}\n${options.identity}\n`, { mode: 0o600 })

  const stop = async (): Promise<void> => {
    control?.end()
    await exited
    // A killed watchdog leaves its service running for a moment.
    await stopLeftover(pidFile, stopSignal, graceMs)
    rmSync(pidFile, { force: true })
  }
  return { pid, exited, stop, kill: () => signalQuietly(pid, 'SIGKILL') }
}

/** Sends a signal to a process that may be gone already. */
export function signalQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The process has already ended.
  }
}

async function readPid(pipe: Readable, exited: Promise<string>): Promise<number | undefined> {
  const line = new Promise<string>((resolve) => createInterface(pipe).once('line', resolve))
  const pid = Number(await Promise.race([line, exited]))
  return Number.isInteger(pid) ? pid : undefined
}

function forwardLines(streams: readonly (Readable | null)[], onLine: (line: string) => void): void {
  for (const stream of streams) if (stream) createInterface(stream).on('line', onLine)
}

/** Returns how a process ended. A shell reports a signal as exit code 128 plus the number of the signal. */
function describeExit(code: number | null, signal: NodeJS.Signals | null): string {
  if (signal) return signal
  const inner = Object.entries(constants.signals).find(([, number]) => number === (code ?? 0) - 128)
  return inner ? inner[0] : `exit code ${code}`
}
