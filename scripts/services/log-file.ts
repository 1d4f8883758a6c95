import { appendFileSync, closeSync, fstatSync, openSync, readSync, renameSync, statSync } from 'node:fs'

const LIMIT = 10 * 1024 * 1024

/** Returns the last lines of a log, for error messages. */
export function tail(file: string, lines: number): string {
  try {
    const handle = openSync(file, 'r')
    const size = fstatSync(handle).size
    const buffer = Buffer.alloc(Math.min(size, 16_384))
    readSync(handle, buffer, 0, buffer.length, size - buffer.length)
    closeSync(handle)
    return buffer.toString('utf8').trimEnd().split('\n').slice(-lines).join('\n')
  } catch {
    return ''
  }
}

/** Renames a log larger than 10 MB to `<file>.1`, replacing the previous one. */
export function rotate(file: string): void {
  try {
    if (statSync(file).size > LIMIT) renameSync(file, `${file}.1`)
  } catch {
    // There is no log yet.
  }
}

/** Returns a function that appends lines to a log and rotates it when it grows too large. */
export function logWriter(file: string): (line: string) => void {
  let written = LIMIT
  return (line) => {
    if (written >= LIMIT / 10) {
      rotate(file)
      written = 0
    }
    appendFileSync(file, `${line}\n`, { mode: 0o600 })
    written += line.length + 1
  }
}
