import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { findSigningKey, type SigningKey } from '../domain/domains/keys.ts'
import type { Services } from '../services.ts'
import { wireAddress } from './headers.ts'

/** Finds the keys that mail is signed with. */
export type SigningKeys = {
  /** The key of the From address's domain; null where it has none, and then nothing is signed. */
  of(mail: { organizationId: string; fromEmail: string }): Promise<SigningKey | null>
}

/** A rotated key signs everywhere after this long; the one before it stays in DNS for much longer. */
const FRESH_MS = 30_000
const KEPT = 1_000

/** Keys are kept in memory, by organization and domain, and read again when they are no longer fresh. */
export function createSigningKeys(services: Services): SigningKeys {
  const kept = new Map<string, { until: number; key: Promise<SigningKey | null> }>()

  return {
    async of({ organizationId, fromEmail }) {
      const address = wireAddress(fromEmail)
      const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase()
      const name = `${organizationId}/${domain}`
      const known = kept.get(name)
      if (known && known.until > performance.now()) return await known.key
      const { encryptionKey } = services.config
      const key = findSigningKey(crossOrganization(services), encryptionKey, organizationId, domain)
      kept.delete(name)
      kept.set(name, { until: performance.now() + FRESH_MS, key })
      const oldest = kept.size > KEPT ? kept.keys().next().value : undefined
      if (oldest !== undefined) kept.delete(oldest)
      try {
        return await key
      } catch (error) {
        kept.delete(name)
        throw error
      }
    },
  }
}
