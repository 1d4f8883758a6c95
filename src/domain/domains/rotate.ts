import type { Domain } from '../../../schema/domain.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { findDomain, presentDomain, storeRecords } from './domains.ts'
import { type DkimPair, insertSigningKey } from './keys.ts'
import { dkimName } from './records.ts'
import { readKeys } from './rotation.ts'
import { lookAgain } from './watch.ts'

/**
 * Adds the next key of a domain. The present key signs until the next one is found in DNS, and then stays in DNS for
 * mail that is still being delivered. Throws `WRONG_STATE` when a next key exists.
 */
export async function rotateKey(call: Call, input: { domain: string }, pair: DkimPair): Promise<Domain> {
  const { em, organization, services } = call
  const domain = await findDomain(call, input.domain, 'for no key update')
  if (domain.development) {
    throw new Failure(
      'WRONG_STATE',
      `${domain.domain} is the development domain: its key is in no DNS, so there is nothing to rotate; register a domain of your own with create_domain.`,
    )
  }
  const next = (await readKeys(call, domain.id)).find(({ state }) => state === 'NEXT')
  if (next) {
    throw new Failure(
      'WRONG_STATE',
      `${domain.domain} has a new key already; add the record ${dkimName(next.selector, domain.domain)}, and the key signs as soon as the record is found.`,
    )
  }
  const owner = { organizationId: organization.id, domainId: domain.id }
  await insertSigningKey(em, services.config.encryptionKey, owner, pair, 'NEXT')
  const records = await storeRecords(call, domain)
  lookAgain(call, domain)
  return presentDomain({ ...domain, records })
}
