import { sql } from 'kysely'

import type { Domain } from '../../../schema/domain.ts'
import { databaseCode } from '../../catalogue/database-error.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import { newId } from '../../ids.ts'
import { asciiDomain } from '../addresses.ts'
import { refuse } from '../text.ts'
import { DOMAIN_COLUMNS, type DomainRow, presentDomain, storeRecords } from './domains.ts'
import { type DkimPair, insertSigningKey } from './keys.ts'
import { watchDomain } from './watch.ts'

/** Registers a sending domain with a key of its own and says which DNS records it needs. */
export async function createDomain(call: Call, input: { domain: string }, pair: DkimPair): Promise<Domain> {
  const { em, organization, services } = call
  const domain = asciiDomain(input.domain)
  if (domain === null)
    refuse('domain', 'is not a host name; send one such as "example.com", without "https://" or a path.')
  const id = newId()
  const made = await row<DomainRow>(
    em,
    sql`insert into domain (id, organization_id, domain, region, verification_requested_at)
      values (${id}, ${organization.id}, ${domain}, ${services.config.dns.region}, now()) returning ${DOMAIN_COLUMNS}`,
  ).catch((error: unknown) => {
    if (databaseCode(error) !== '23505') throw error
    throw new Failure(
      'ALREADY_EXISTS',
      `The domain ${domain} is there already; get_domain_dns_records shows its records.`,
    )
  })
  if (!made) throw new Error('a new domain cannot be read back')
  await insertSigningKey(
    em,
    services.config.encryptionKey,
    { organizationId: organization.id, domainId: id },
    pair,
  )
  watchDomain(call, made)
  return presentDomain({ ...made, records: await storeRecords(call, made) })
}
