import type { CompiledEmail } from '../../content/compile.ts'
import { bytesOf } from '../byte-cache.ts'

/** The limit for a compiled email with variables and links: about fifteen times the size that Gmail shows. */
const MOST_BYTES = 2_000_000

/**
 * Returns why an email is too large to be sent, or null. Every recipient's copy is rendered, and a large email slows
 * down everybody's sending.
 */
export function sizeFault(compiled: CompiledEmail): string | null {
  const bytes = bytesOf(compiled)
  if (bytes <= MOST_BYTES) return null
  const size = (bytes / 1e6).toFixed(1)
  return `the email takes ${size} MB with its variables and links, and at most ${MOST_BYTES / 1e6} MB go to many; shorten it`
}
