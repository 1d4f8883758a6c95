import { sql } from 'kysely'

import type { Domain, DomainRecord } from '../../../schema/domain.ts'
import type { DomainStatus } from '../../../schema/values.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call, Organization } from '../../catalogue/tool.ts'
import { execute, json, row, rows } from '../../database.ts'
import { encodeId, readId } from '../../ids.ts'
import { asciiDomain } from '../addresses.ts'
import { presentStop, type StopRow } from '../deliverability/stop-words.ts'
import { readWalk, type Walk } from '../keyset.ts'
import { timestamp, timestampOrNull } from '../text.ts'
import { type DomainFacts, neededRecords, withStatuses } from './records.ts'

/** A domain as it is stored; `id` is a uuid. */
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
  /** The streams it may not send until somebody resumes them. */
  stops: StopRow[]
}

/** The columns of `DomainRow`. */
export const DOMAIN_COLUMNS = sql`id, domain, status, development, region, records, fallback_priority as "fallbackPriority",
  verification_requested_at as "verificationRequestedAt", ownership_token as "ownershipToken",
  missed_checks as "missedChecks", created_at as "createdAt",
  (select coalesce(jsonb_agg(jsonb_build_object('stream', stop.stream, 'reason', stop.reason, 'days', stop.days,
      'emails', stop.emails, 'counted', stop.counted, 'stoppedAt', stop.stopped_at) order by stop.stream), '[]')
    from sending_stop stop where stop.organization_id = domain.organization_id and stop.domain_id = domain.id) as stops`

/** Lists the sending domains of the organization, oldest first. */
export async function listDomains(call: Call): Promise<Domain[]> {
  return (await readDomains(call)).map(presentDomain)
}

/** Returns the same domains as stored. */
export async function readDomains({
  em,
  organization,
}: Pick<Call, 'em'> & { organization: Pick<Organization, 'id'> }): Promise<DomainRow[]> {
  return await rows<DomainRow>(
    em,
    sql`select ${DOMAIN_COLUMNS} from domain where organization_id = ${organization.id} order by id`,
  )
}

/** Lists domains by keyset, newest first. */
export async function browseDomains(
  { em, organization }: Call,
  asked: Walk,
): Promise<{ domains: Domain[]; hasMore: boolean }> {
  const walk = readWalk('dom', asked)
  const found = await rows<DomainRow>(
    em,
    sql`select ${DOMAIN_COLUMNS} from domain where organization_id = ${organization.id} ${walk.part(sql`id`)}`,
  )
  const { page, hasMore } = walk.page(found)
  return { domains: page.map(presentDomain), hasMore }
}

/** Returns a domain by host name or id. Throws `NOT_FOUND` when there is none. `lock` locks the row. */
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
    `There is no domain ${JSON.stringify(domain.slice(0, 260))} in this organization; list_domains shows the existing ones.`,
  )
}

/** Stores the records that a domain needs now, with the known status of each, and returns them. */
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

/** Returns the facts that a domain's records are made from; the newest key comes first. */
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

/** Sets the fallback order of a domain, which is used in place of domains that are not VERIFIED (null: never). */
export async function changeDomain(
  call: Call,
  { domain, fallbackPriority }: { domain: string; fallbackPriority?: number | null | undefined },
): Promise<Domain> {
  const found = await findDomain(call, domain, 'for no key update')
  if (fallbackPriority === undefined) return presentDomain(found)
  await execute(
    call.em,
    sql`update domain set fallback_priority = ${fallbackPriority}
      where organization_id = ${call.organization.id} and id = ${found.id}`,
  )
  return presentDomain({ ...found, fallbackPriority })
}

/** Returns a domain in its API form. */
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
    stops: domain.stops.map((stop) => presentStop(domain.domain, stop)),
  }
}
