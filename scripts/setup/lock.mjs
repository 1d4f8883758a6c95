import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

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
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(signal, () => {
      release()
      process.exit(130)
    })
  }
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
