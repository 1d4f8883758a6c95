import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Returns the command line of a running process as one text; undefined if there is no such process, or only a zombie.
 */
function commandLine(pid: number): string | undefined {
  try {
    const text = existsSync('/proc/self/cmdline')
      ? readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
      : execFileSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8', stdio: 'pipe' })
    return text.trim() || undefined
  } catch {
    return undefined
  }
}

/** Returns whether the process runs and is the expected program. The check is needed because process ids are reused. */
export function isProcess(pid: number, identity: string): boolean {
  return commandLine(pid)?.includes(identity) ?? false
}

/** Returns the processes whose working directory is `directory`. Without /proc it asks `lsof`. */
export function processesIn(directory: string): number[] {
  if (!existsSync('/proc/self/cwd')) return processesByLsof(directory)
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && workingDirectory(name) === directory)
    .map(Number)
}

function workingDirectory(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return undefined
  }
}

function processesByLsof(directory: string): number[] {
  try {
    const found = execFileSync('lsof', ['-a', '-d', 'cwd', '-t', directory], {
      encoding: 'utf8',
      stdio: 'pipe',
    })
    return found.split('\n').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

/**
 * Stops the process that an earlier run left behind. The pid file contains the process id and, on its second line, a
 * text that its command line must contain. Another program that was given the same id is left alone.
 */
export async function stopLeftover(
  pidFile: string,
  signal: NodeJS.Signals,
  graceMs: number,
): Promise<boolean> {
  const [pid, identity] = readPidFile(pidFile)
  if (pid === undefined || !identity) return false
  return await stopProcess(pid, identity, signal, graceMs)
}

/**
 * Sends `signal` to the process if it is the expected one, and SIGKILL after `graceMs`. Returns false if it is not
 * running.
 */
export async function stopProcess(
  pid: number,
  identity: string,
  signal: NodeJS.Signals,
  graceMs: number,
): Promise<boolean> {
  if (!isProcess(pid, identity)) return false
  trySignal(pid, signal)
  if (await goneWithin(pid, identity, graceMs)) return true
  trySignal(pid, 'SIGKILL')
  if (await goneWithin(pid, identity, 5_000)) return true
  throw new Error(`process ${pid} (${identity}) of an earlier run does not end; stop it, then start again`)
}

async function goneWithin(pid: number, identity: string, milliseconds: number): Promise<boolean> {
  const deadline = Date.now() + milliseconds
  while (isProcess(pid, identity)) {
    if (Date.now() > deadline) return false
    await sleep(50)
  }
  return true
}

function trySignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return
    throw error
  }
}

function readPidFile(pidFile: string): [number | undefined, string] {
  try {
    const [pid = '', identity = ''] = readFileSync(pidFile, 'utf8').split('\n')
    return [Number(pid) || undefined, identity]
  } catch {
    return [undefined, '']
  }
}
