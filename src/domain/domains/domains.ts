import { sql } from 'kysely'

import type { Domain, DomainRecord } from '../../../schema/domain.ts'
import type { DomainStatus } from '../../../schema/values.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { execute, json, row, rows } from '../../database.ts'
import { encodeId, readId } from '../../ids.ts'
import { asciiDomain } from '../addresses.ts'
import { timestamp, timestampOrNull } from '../text.ts'
import { type DomainFacts, neededRecords, withStatuses } from './records.ts'

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

/** The columns of a DomainRow. */
export const DOMAIN_COLUMNS = sql`id, domain, status, development, region, records, fallback_priority as "fallbackPriority",
  verification_requested_at as "verificationRequestedAt", ownership_token as "ownershipToken",
  missed_checks as "missedChecks", created_at as "createdAt"`

/** The sending domains of the organization, oldest first. */
export async function listDomains({ em, organization }: Call): Promise<Domain[]> {
  const found = await rows<DomainRow>(
    em,
    sql`select ${DOMAIN_COLUMNS} from domain where organization_id = ${organization.id} order by id`,
  )
  return found.map(presentDomain)
}

/** The domain of the organization with this host name or id, or NOT_FOUND; `lock` keeps it for a change. */
export async function findDomain(
  { em, organization }: Pick<Call, 'em' | 'organization'>,
  domain: string,
  lock: '' | 'for key share' | 'for no key update' = '',
): Promise<DomainRow> {
  const id = readId('dom', domain)
  const found = await row<DomainRow>(
    em,
    sql`select ${DOMAIN_COLUMNS} from domain where organization_id = ${organization.id}
      and ${id === null ? sql`domain = ${asciiDomain(domain) ?? ''}` : sql`id = ${id}`} ${sql.raw(lock)}`,
  )
  if (found) return found
  throw new Failure(
    'NOT_FOUND',
    `There is no domain ${JSON.stringify(domain.slice(0, 260))} in this organization; list_domains shows the ones there are.`,
  )
}

/** Writes the records a domain needs now beside what is known of each, and answers them. */
export async function storeRecords(
  { em, organization, services }: Call,
  domain: DomainRow,
  known: readonly DomainRecord[] = domain.records,
): Promise<DomainRecord[]> {
  const facts = await readFacts({ em, organization }, domain)
  const records = withStatuses(neededRecords(facts, services.config.dns), known)
  await execute(
    em,
    sql`update domain set records = ${json(records)} where organization_id = ${organization.id} and id = ${domain.id}`,
  )
  return records
}

/** What the records of a domain are made from; its newest key comes first. */
export async function readFacts(
  { em, organization }: Pick<Call, 'em' | 'organization'>,
  { id, domain, ownershipToken }: DomainRow,
): Promise<DomainFacts> {
  const keys = await rows<DomainFacts['keys'][number]>(
    em,
    sql`select selector, public_key as "publicKey" from dkim_key
      where organization_id = ${organization.id} and domain_id = ${id} order by created_at desc, id desc`,
  )
  return { domain, ownershipToken, keys }
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
