import { serialize } from 'node:v8'

/** A cache in memory, by key. */
export type ByteCache<Value> = {
  /** The value under a key, which counts as used now. */
  get(key: string): Value | undefined
  /** Keeps a value as the last used, in the place of the one that was there. */
  set(key: string, value: Value, bytes: number): void
  delete(key: string): void
}

/** The memory of an entry besides its value. */
const ENTRY_BYTES = 1_000

/** Keeps values up to `mostBytes` together, the longest unused forgotten first. */
export function createByteCache<Value>(mostBytes: number): ByteCache<Value> {
  // A Map keeps the order, so the first key is the one longest unused.
  const kept = new Map<string, { value: Value; bytes: number }>()
  let total = 0

  function remove(key: string): void {
    total -= kept.get(key)?.bytes ?? 0
    kept.delete(key)
  }

  return {
    get(key) {
      const known = kept.get(key)
      if (!known) return undefined
      kept.delete(key)
      kept.set(key, known)
      return known.value
    },
    set(key, value, bytes) {
      remove(key)
      kept.set(key, { value, bytes: bytes + ENTRY_BYTES })
      total += bytes + ENTRY_BYTES
      for (const oldest of kept.keys()) {
        if (total <= mostBytes) return
        remove(oldest)
      }
    },
    delete: remove,
  }
}

/** The bytes of data written one after the other; the heap needs one to two times as many. */
export function bytesOf(data: unknown): number {
  return serialize(data).byteLength
}
