import { sql } from 'kysely'

import type { Domain } from '../../../schema/domain.ts'
import { databaseCode } from '../../catalogue/database-error.ts'
import { Failure, refuse } from '../../catalogue/failure.ts'
import type { Call, Outside } from '../../catalogue/tool.ts'
import { crossOrganization } from '../../catalogue/unit-of-work.ts'
import { row } from '../../database.ts'
import { newId } from '../../ids.ts'
import { asciiDomain } from '../addresses.ts'
import { DOMAIN_COLUMNS, type DomainRow, presentDomain, storeRecords } from './domains.ts'
import { type DkimPair, insertSigningKey, makeDkimPair } from './keys.ts'
import { watchDomain } from './watch.ts'

/** Makes the key of a new domain, which takes a while, before the transaction. Refuses a registered domain first. */
export async function prepareDomain(
  { organization, services }: Outside,
  input: { domain: string },
): Promise<DkimPair> {
  const domain = readHostName(input.domain)
  const known = await row(
    crossOrganization(services),
    sql`select id from domain where organization_id = ${organization.id} and domain = ${domain}`,
  )
  if (known) alreadyThere(domain)
  return await makeDkimPair()
}

/** Registers a sending domain with its own key, and returns it with the DNS records it needs. */
export async function createDomain(call: Call, input: { domain: string }, pair: DkimPair): Promise<Domain> {
  const { em, organization, services } = call
  const domain = readHostName(input.domain)
  const id = newId()
  const made = await row<DomainRow>(
    em,
    sql`insert into domain (id, organization_id, domain, region, verification_requested_at)
      values (${id}, ${organization.id}, ${domain}, ${services.config.dns.region}, now()) returning ${DOMAIN_COLUMNS}`,
  ).catch((error: unknown) => {
    if (databaseCode(error) !== '23505') throw error
    alreadyThere(domain)
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

function alreadyThere(domain: string): never {
  throw new Failure(
    'ALREADY_EXISTS',
    `The domain ${domain} is registered already; get_domain_dns_records shows its records.`,
  )
}

function readHostName(text: string): string {
  const domain = asciiDomain(text)
  if (domain !== null) return domain
  refuse('domain', 'is not a host name; send one such as "example.com", without "https://" or a path.')
}
