import type { CompiledEmail } from '../content/compile.ts'
import { bytesOf } from './byte-cache.ts'

/** Of a compiled email with its variables and links: some fifteen times what Gmail shows. */
const MOST_BYTES = 2_000_000

/**
 * Why an email is too large to go to many, or null. It is filled for each of them, and the time that takes is taken from
 * everybody's email.
 */
export function sizeFault(compiled: CompiledEmail): string | null {
  const bytes = bytesOf(compiled)
  if (bytes <= MOST_BYTES) return null
  const size = (bytes / 1e6).toFixed(1)
  return `the email takes ${size} MB with its variables and links, and at most ${MOST_BYTES / 1e6} MB go to many; shorten it`
}
