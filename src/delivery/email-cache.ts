import { serialize } from 'node:v8'

import type { CompiledEmail } from '../content/compile.ts'

/** Finds a compiled email by its key, or makes it; null when there is nothing to make it of. */
export type EmailCache = (
  key: string,
  make: () => Promise<CompiledEmail | null>,
) => Promise<CompiledEmail | null>

/** What an entry costs beside its email. */
const ENTRY_BYTES = 1_000

/**
 * Keeps compiled emails up to `mostBytes` together, the longest unused forgotten first. Bytes are those of the data
 * written one after the other; the heap needs one to two times as many. Emails that are being made count nothing yet.
 */
export function createEmailCache(mostBytes: number): EmailCache {
  const kept = new Map<string, { email: Promise<CompiledEmail | null>; bytes: number }>()
  let total = 0

  function count(entry: { bytes: number }, email: CompiledEmail | null): void {
    entry.bytes = ENTRY_BYTES + serialize(email).byteLength
    total += entry.bytes
    for (const [oldest, { bytes }] of kept) {
      if (total <= mostBytes) return
      kept.delete(oldest)
      total -= bytes
    }
  }

  return async (key, make) => {
    const known = kept.get(key)
    if (known) {
      // Re-inserted last: a Map keeps the order, so the first key is the one longest unused.
      kept.delete(key)
      kept.set(key, known)
      return await known.email
    }
    const entry = { email: make(), bytes: 0 }
    kept.set(key, entry)
    try {
      const email = await entry.email
      // Others may have pushed it out meanwhile.
      if (kept.get(key) === entry) count(entry, email)
      return email
    } catch (error) {
      if (kept.get(key) === entry) kept.delete(key)
      throw error
    }
  }
}
