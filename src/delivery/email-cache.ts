import type { CompiledEmail } from '../content/compile.ts'
import { bytesOf, createByteCache } from '../domain/byte-cache.ts'

/** Finds a compiled email by its key, or makes it; null when there is nothing to make it of. */
export type EmailCache = (
  key: string,
  make: () => Promise<CompiledEmail | null>,
) => Promise<CompiledEmail | null>

/** Keeps compiled emails up to `mostBytes` together. Who asks for one that is being made waits for it. */
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
