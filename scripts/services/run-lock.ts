import { DatabaseSync } from 'node:sqlite'

/** Held until `release`, or until this process ends in whatever way: the lock is the operating system's. */
export type RunLock = {
  release(): void
}

/** Takes the lock that only one process at a time may hold; undefined when another one has it. */
export function takeLock(file: string): RunLock | undefined {
  const database = new DatabaseSync(file, { timeout: 0 })
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    // SQLITE_BUSY is the low byte; the rest says why.
    if (error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === 5) return undefined
    throw error
  }
  return { release: () => database.close() }
}
