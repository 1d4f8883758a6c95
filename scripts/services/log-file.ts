import { appendFileSync, closeSync, fstatSync, openSync, readSync, renameSync, statSync } from 'node:fs'

const LIMIT = 10 * 1024 * 1024

/** The last lines of a log, for the message that says why something did not start. */
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

/** Moves a log that has grown over 10 MB aside; one older one is kept. */
export function rotate(file: string): void {
  try {
    if (statSync(file).size > LIMIT) renameSync(file, `${file}.1`)
  } catch {
    // There is none yet.
  }
}

/** Appends lines, keeping the file under its limit. */
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
