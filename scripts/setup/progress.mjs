import { spawn } from 'node:child_process'

const QUIET_MS = 2_000
const EVERY_MS = process.stdout.isTTY ? 5_000 : 20_000

/**
 * Runs one step of the set-up. `report(text)` notes what it is at; that is printed from time to time, and
 * at once when it is a new stage ("!" in front).
 */
export async function startStep(name, run) {
  const started = Date.now()
  let activity = ''
  const say = (text) => console.log(`  ${name.padEnd(9)} ${text}`)
  const tick = () => say(`${activity || 'working'} … ${duration(Date.now() - started)}`)
  const first = setTimeout(tick, QUIET_MS)
  const ticker = setInterval(tick, EVERY_MS)
  try {
    await run((text) => {
      if (text.startsWith('!')) say(text.slice(1))
      else activity = text
    })
    say(`ready after ${duration(Date.now() - started)}`)
  } catch (error) {
    say(`failed after ${duration(Date.now() - started)}`)
    throw error
  } finally {
    clearTimeout(first)
    clearInterval(ticker)
  }
}

/** The programs that run now. Each has a process group of its own, with everything it starts. */
const running = new Set()
let isStopping = false

/** Kills the programs that run, resolves when they are gone, and leaves their callers without an answer. */
export async function stopPrograms() {
  isStopping = true
  const ends = [...running].map((child) => new Promise((resolve) => child.once('close', resolve)))
  running.forEach(killGroup)
  await Promise.all(ends)
}

function killGroup(child) {
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

/** Runs a program to its end, handing each line of its output on; the error carries the last lines. */
export function runProgram(command, parameters, { env = process.env, cwd, timeoutMs, onLine = () => {} }) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, parameters, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    const last = []
    const take = (chunk) => {
      for (const line of String(chunk).split('\n')) {
        if (!line.trim()) continue
        last.push(line)
        if (last.length > 12) last.shift()
        onLine(line)
      }
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    const timer = setTimeout(() => killGroup(child), timeoutMs)
    if (child.pid !== undefined) running.add(child)
    child.once('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      running.delete(child)
      if (isStopping) return
      if (code === 0) return resolve(last.join('\n'))
      const reason =
        signal === 'SIGKILL' ? `no end after ${duration(timeoutMs)}` : `exit code ${code ?? signal}`
      reject(new Error(`${reason}\n${last.map((line) => `    ${line}`).join('\n')}`))
    })
  })
}

function duration(milliseconds) {
  const seconds = Math.round(milliseconds / 1_000)
  return seconds < 90 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

export function describeError(error) {
  return error instanceof Error ? error.message : String(error)
}
