import { DatabaseSync } from 'node:sqlite'

/** Held until `release`, or until this process ends for any reason, because the operating system holds the lock. */
export type RunLock = {
  release(): void
}

/** Takes the lock on `file`, or returns undefined if another process holds it. */
export function takeLock(file: string): RunLock | undefined {
  const database = new DatabaseSync(file, { timeout: 0 })
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    // The low byte of the extended error code is the primary code; 5 is SQLITE_BUSY.
    if (error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === 5) return undefined
    throw error
  }
  return { release: () => database.close() }
}
