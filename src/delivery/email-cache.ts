import type { CompiledEmail } from '../content/compile.ts'
import { bytesOf, createByteCache } from '../domain/byte-cache.ts'

/**
 * Returns the compiled email of a key and makes it when it is not cached; null when there is nothing to make it from.
 */
export type EmailCache = (
  key: string,
  make: () => Promise<CompiledEmail | null>,
) => Promise<CompiledEmail | null>

/**
 * Creates a cache of compiled emails of at most `mostBytes` in total. Concurrent callers with the same key share one
 * `make`.
 */
export function createEmailCache(mostBytes: number): EmailCache {
  const kept = createByteCache<CompiledEmail | null>(mostBytes)
  const making = new Map<string, Promise<CompiledEmail | null>>()

  async function makeOnce(key: string, make: () => Promise<CompiledEmail | null>) {
    try {
      const email = await make()
      kept.set(key, email, bytesOf(email))
      return email
    } finally {
      making.delete(key)
    }
  }

  return async (key, make) => {
    const known = kept.get(key)
    if (known !== undefined) return known
    const underWay = making.get(key) ?? makeOnce(key, make)
    making.set(key, underWay)
    return await underWay
  }
}
