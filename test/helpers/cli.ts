import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'

import { CommandFailure } from '../../cli/failure.ts'
import { createOutput } from '../../cli/output.ts'
import { createProgram } from '../../cli/program.ts'
import { scratchDirectory } from './services.ts'

const PROGRAM = join(import.meta.dirname, '..', '..', 'cli', 'bin', 'postloom.js')

/** The output and exit code of a command. `json` is the parsed standard output. */
export type Ran = {
  code: number | null
  stdout: string
  stderr: string
  // oxlint-disable-next-line typescript/no-explicit-any -- assertions reach into answers of every shape
  json: any
}

/** A user of `postloom` with a home directory of their own. */
export type Commander = {
  /** The environment of the command. */
  env: Record<string, string>
  home: string
  /** Runs a command to its end; `input` is its standard input. */
  run(parameters: readonly string[], options?: { input?: string; env?: Record<string, string> }): Promise<Ran>
  /** Starts a command without waiting for its end. */
  start(parameters: readonly string[]): ChildProcess
}

/** Returns a user for whom the machine's own settings are invisible: no stored login, no service of this checkout. */
export function commander(settings: Record<string, string> = {}): Commander {
  const home = scratchDirectory('cli')
  const bin = join(home, 'bin')
  mkdirSync(bin)
  symlinkSync(PROGRAM, join(bin, 'postloom'))
  const env = {
    PATH: `${bin}:${join(process.execPath, '..')}:${process.env['PATH'] ?? ''}`,
    HOME: home,
    POSTLOOM_STATE: join(home, 'state'),
    ...settings,
  }
  const start: Commander['start'] = (parameters) =>
    spawn(process.execPath, [PROGRAM, ...parameters], { env, cwd: home, stdio: 'pipe' })
  return {
    env,
    home,
    start,
    async run(parameters, { input = '', env: more } = {}) {
      const child = spawn(process.execPath, [PROGRAM, ...parameters], {
        env: { ...env, ...more },
        cwd: home,
        stdio: 'pipe',
      })
      return await ended(child, input)
    },
  }
}

let home: string | undefined

/**
 * Runs a command inside this process, which is faster than a child process. The machine's own settings are invisible to
 * it.
 */
export async function runHere(parameters: readonly string[], settings: Record<string, string>): Promise<Ran> {
  home ??= scratchDirectory('cli')
  let [code, stdout, stderr] = [0, '', '']
  const output = createOutput(parameters, {
    stdin: {},
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
  })
  try {
    await createProgram({ HOME: home, ...settings }, output).parseAsync(parameters, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error
    output.failed(error)
    code = error.exitCode
  }
  return asRan(code, stdout, stderr)
}

/** Returns the output of a process once it has ended. */
export async function ended(child: ChildProcess, input = ''): Promise<Ran> {
  let [stdout, stderr] = ['', '']
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  // A process that does not read its input may end before the input is written.
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(input)
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return asRan(code, stdout, stderr)
}

function asRan(code: number | null, stdout: string, stderr: string): Ran {
  const isJson = /^[[{]/.test(stdout) && !stdout.trim().includes('\n{')
  return { code, stdout, stderr, json: isJson ? JSON.parse(stdout) : undefined }
}
