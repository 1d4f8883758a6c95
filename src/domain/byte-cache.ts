import { serialize } from 'node:v8'

/** An in-memory cache by key. */
export type ByteCache<Value> = {
  /** Returns the value of a key and marks it as most recently used. */
  get(key: string): Value | undefined
  /** Stores a value as the most recently used one and replaces an existing value of the key. */
  set(key: string, value: Value, bytes: number): void
  delete(key: string): void
}

/** The estimated memory of an entry besides its value. */
const ENTRY_BYTES = 1_000

/** Creates a cache of up to `mostBytes` in total that evicts the least recently used entries. */
export function createByteCache<Value>(mostBytes: number): ByteCache<Value> {
  // A Map keeps insertion order, so its first key is the least recently used one.
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

/** Returns the serialized size of data in bytes; the heap needs one to two times as much. */
export function bytesOf(data: unknown): number {
  return serialize(data).byteLength
}
