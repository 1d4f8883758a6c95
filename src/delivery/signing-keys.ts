import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { findSigningKey, type SigningKey } from '../domain/domains/keys.ts'
import type { Services } from '../services.ts'
import { domainOf } from './headers.ts'

/** Finds the DKIM keys that sign email. */
export type SigningKeys = {
  /** Returns the key of the From address's domain; null when it has none, and then the email is not signed. */
  of(mail: { organizationId: string; fromEmail: string }): Promise<SigningKey | null>
}

/**
 * How long (ms) a key is cached, and so how soon a rotated key signs everywhere. The old key stays in DNS for much
 * longer.
 */
const FRESH_MS = 30_000
const KEPT = 1_000

/** Creates a cache of signing keys by organization and domain. Keys older than `FRESH_MS` are read again. */
export function createSigningKeys(services: Services): SigningKeys {
  const kept = new Map<string, { until: number; key: Promise<SigningKey | null> }>()

  return {
    async of({ organizationId, fromEmail }) {
      const domain = domainOf(fromEmail)
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
