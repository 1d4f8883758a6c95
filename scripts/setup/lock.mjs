import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

import { stopPrograms } from './progress.mjs'

/** Lets one set-up at a time work on a checkout: two `npm ci` side by side would undo each other. */
export async function withLock(file, work) {
  let told = false
  while (!take(file)) {
    if (!told)
      console.log(`Another set-up of this checkout is at work (process ${owner(file)}); waiting for it.`)
    told = true
    await sleep(500)
  }
  const release = () => rmSync(file, { force: true })
  let stopping
  const stop = async () => {
    // npm goes on after a Ctrl-C for as long as a minute, and would meet the npm of the next set-up.
    await stopPrograms()
    release()
    console.log('\nThe set-up was stopped. Run the command again: it goes on from there.')
    process.exit(130)
  }
  // One Ctrl-C can arrive twice: from the terminal and from npm.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => (stopping ??= stop()))
  try {
    await work()
  } finally {
    release()
  }
}

function take(file) {
  try {
    const handle = openSync(file, 'wx', 0o600)
    writeSync(handle, String(process.pid))
    closeSync(handle)
    return true
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
    // One that was killed leaves its file behind.
    if (!isAlive(owner(file))) rmSync(file, { force: true })
    return false
  }
}

function owner(file) {
  try {
    return Number(readFileSync(file, 'utf8'))
  } catch {
    return 0
  }
}

function isAlive(pid) {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}
