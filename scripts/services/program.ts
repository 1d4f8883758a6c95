import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { startChild, type Child } from './child.ts'
import { projectDirectory } from './layout.mjs'
import { logWriter } from './log-file.ts'
import { MEMORY_ENVIRONMENT, memoryFlags } from './memory.ts'

/** One of Postloom's own processes. `readyUrl` answers 200 once the process is ready. */
export type ProgramOptions = {
  name: string
  script: string
  environment: Record<string, string | undefined>
  stateDirectory: string
  readyUrl: string
  graceMs: number
  /** Called with each warning and error of the log as one readable line. */
  onTrouble: (line: string) => void
}

const READY_WITHIN_MS = 60_000

/** Starts a process with the current Node and waits until it is ready. */
export async function startProgram(options: ProgramOptions): Promise<Child> {
  const { name, stateDirectory, onTrouble } = options
  const script = join(projectDirectory, options.script)
  const write = logWriter(join(stateDirectory, 'logs', `${name}.log`))
  const child = await startChild({
    command: process.execPath,
    arguments: [...memoryFlags(name), script],
    identity: script,
    pidFile: join(stateDirectory, `${name}.pid`),
    directory: projectDirectory,
    environment: { ...options.environment, ...MEMORY_ENVIRONMENT },
    graceMs: options.graceMs,
    output: (line) => {
      write(line)
      const trouble = readTrouble(line)
      if (trouble) onTrouble(trouble)
    },
  })
  await waitUntilReady(options, child)
  return child
}

/** Returns the text to show for a log line: warnings, errors, and lines that are not JSON. Undefined for others. */
function readTrouble(line: string): string | undefined {
  if (!line.startsWith('{')) return line.trim() || undefined
  try {
    const entry: unknown = JSON.parse(line)
    return describe(entry)
  } catch {
    return line
  }
}

function describe(entry: unknown): string | undefined {
  if (typeof entry !== 'object' || entry === null || !('level' in entry)) return undefined
  const level = Number(entry.level)
  if (level < 40) return undefined
  const text = 'msg' in entry ? String(entry.msg) : ''
  const error = 'err' in entry ? messageOf(entry.err) : ''
  const kind = level >= 50 ? 'error' : 'warning'
  return `${kind}: ${[text, error].filter((part, index, all) => part && all.indexOf(part) === index).join(': ')}`
}

function messageOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : ''
}

async function waitUntilReady({ name, readyUrl }: ProgramOptions, child: Child): Promise<void> {
  let ended: string | undefined
  void child.exited.then((reason) => {
    ended = reason
  })
  const deadline = Date.now() + READY_WITHIN_MS
  let answer = 'no answer'
  while (Date.now() < deadline) {
    if (ended !== undefined) throw new Error(`${name} ended while it was starting (${ended})`)
    try {
      const response = await fetch(readyUrl, { signal: AbortSignal.timeout(2_000) })
      if (response.ok) return
      answer = `${response.status} ${await response.text()}`
    } catch {
      // It does not listen yet.
    }
    await sleep(100)
  }
  await child.stop()
  throw new Error(`${name} is not ready after ${READY_WITHIN_MS / 1_000} s: ${readyUrl} says ${answer}`)
}
