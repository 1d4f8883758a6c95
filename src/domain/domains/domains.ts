import { sql } from 'kysely'

import type { Domain, DomainRecord } from '../../../schema/domain.ts'
import type { DomainStatus } from '../../../schema/values.ts'
import { databaseCode } from '../../catalogue/database-error.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { execute, json, row, rows } from '../../database.ts'
import { encodeId, newId, readId } from '../../ids.ts'
import { asciiDomain } from '../addresses.ts'
import { refuse, timestamp, timestampOrNull } from '../text.ts'
import { type DkimPair, insertSigningKey } from './keys.ts'
import { neededRecords, withStatuses } from './records.ts'

/** A domain as it is stored; ids are uuids. */
export type DomainRow = {
  id: string
  domain: string
  status: DomainStatus
  development: boolean
  region: string
  records: DomainRecord[]
  fallbackPriority: number | null
  verificationRequestedAt: string | null
  ownershipToken: string
  missedChecks: number
  createdAt: string
}

const COLUMNS = sql`id, domain, status, development, region, records, fallback_priority as "fallbackPriority",
  verification_requested_at as "verificationRequestedAt", ownership_token as "ownershipToken",
  missed_checks as "missedChecks", created_at as "createdAt"`

/** The sending domains of the organization, oldest first. */
export async function listDomains({ em, organization }: Call): Promise<Domain[]> {
  const found = await rows<DomainRow>(
    em,
    sql`select ${COLUMNS} from domain where organization_id = ${organization.id} order by id`,
  )
  return found.map(presentDomain)
}

/** The domain of the organization with this host name or id, or NOT_FOUND; `lock` keeps it for a change. */
export async function findDomain(
  { em, organization }: Call,
  domain: string,
  lock: '' | 'for key share' | 'for no key update' = '',
): Promise<DomainRow> {
  const id = readId('dom', domain)
  const found = await row<DomainRow>(
    em,
    sql`select ${COLUMNS} from domain where organization_id = ${organization.id}
      and ${id === null ? sql`domain = ${asciiDomain(domain) ?? ''}` : sql`id = ${id}`} ${sql.raw(lock)}`,
  )
  if (found) return found
  throw new Failure(
    'NOT_FOUND',
    `There is no domain ${JSON.stringify(domain.slice(0, 260))} in this organization; list_domains shows the ones there are.`,
  )
}

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
      values (${id}, ${organization.id}, ${domain}, ${services.config.dns.region}, now()) returning ${COLUMNS}`,
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
  return presentDomain({ ...made, records: await storeRecords(call, made) })
}

/** Writes the records a domain needs now beside what is known of each, and answers them. */
export async function storeRecords(
  { em, organization, services }: Call,
  domain: DomainRow,
  known: readonly DomainRecord[] = domain.records,
): Promise<DomainRecord[]> {
  const keys = await rows<{ selector: string; publicKey: string }>(
    em,
    sql`select selector, public_key as "publicKey" from dkim_key
      where organization_id = ${organization.id} and domain_id = ${domain.id} order by created_at desc, id desc`,
  )
  const records = withStatuses(neededRecords({ ...domain, keys }, services.config.dns), known)
  await execute(
    em,
    sql`update domain set records = ${json(records)} where organization_id = ${organization.id} and id = ${domain.id}`,
  )
  return records
}

/** A domain on the wire. */
export function presentDomain(domain: DomainRow): Domain {
  const { region, status, records, fallbackPriority } = domain
  return {
    id: encodeId('dom', domain.id),
    domain: domain.domain,
    status,
    region,
    providerRecords: records,
    fallbackPriority,
    verificationRequestedAt: timestampOrNull(domain.verificationRequestedAt),
    createdAt: timestamp(domain.createdAt),
  }
}
