import { sql } from 'kysely'

import type { DomainRecord } from '../../../schema/domain.ts'
import type { DomainStatus } from '../../../schema/values.ts'
import type { DomainChecked, DomainPace } from '../../../temporal/contract.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Actor, Call } from '../../catalogue/tool.ts'
import { unitOfWork } from '../../catalogue/unit-of-work.ts'
import { execute, row } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import type { Services } from '../../services.ts'
import { type DomainRow, findDomain, readFacts, storeRecords } from './domains.ts'
import { type Finding, lookUpRecords } from './lookup.ts'
import { dkimName, neededRecords, type NeededRecord } from './records.ts'
import { forgetRetired, promoteNext, readKeys, type StoredKeyFacts } from './rotation.ts'

/** A domain and its organization, as uuids. */
export type DomainKey = { organizationId: string; domainId: string }

const ACTOR: Actor = { kind: 'system', id: 'domains', name: 'Domain verification' }
const GONE: DomainChecked = { status: 'GONE', pace: 'END', records: [] }
const DOMAIN_LOCK = 7_305_104
/** After this many failed daily checks in a row, a verified domain becomes DEGRADED. */
const MISSES = 3

/** The result of checking the required records; UNKNOWN when the name servers did not answer. */
type Outcome = 'GOOD' | 'BAD' | 'UNKNOWN'

/** The status after a check, apart from time: 72 hours without success lead to FAILED, missed checks to DEGRADED. */
const STATUS_AFTER: Record<DomainStatus, Record<Outcome, DomainStatus>> = {
  PENDING: { GOOD: 'VERIFIED', BAD: 'VERIFYING', UNKNOWN: 'VERIFYING' },
  VERIFYING: { GOOD: 'VERIFIED', BAD: 'VERIFYING', UNKNOWN: 'VERIFYING' },
  VERIFIED: { GOOD: 'VERIFIED', BAD: 'VERIFIED', UNKNOWN: 'VERIFIED' },
  DEGRADED: { GOOD: 'VERIFIED', BAD: 'DEGRADED', UNKNOWN: 'DEGRADED' },
  FAILED: { GOOD: 'VERIFIED', BAD: 'FAILED', UNKNOWN: 'FAILED' },
}

/** Looks up a domain's DNS records, stores the result and returns the new status. Holds no lock during the look-up. */
export async function checkDomain(
  services: Services,
  { organizationId, domainId }: DomainKey,
): Promise<DomainChecked> {
  const scope = { organizationId, actor: ACTOR }
  const id = encodeId('dom', domainId)
  const asked = await unitOfWork(
    services,
    scope,
    async (call) => {
      const domain = await findDomain(call, id).catch(nullIfMissing)
      return domain && !domain.development ? { domain, needed: await neededOf(call, domain) } : null
    },
    { readOnly: true },
  )
  if (!asked) return GONE
  const { domain, needed } = asked
  const findings = await lookUpRecords(services.dns, domain.domain, needed)
  return await unitOfWork(services, scope, (call) => storeCheck(call, id, needed, findings))
}

function nullIfMissing(error: unknown): null {
  if (error instanceof Failure && error.code === 'NOT_FOUND') return null
  throw error
}

async function neededOf(call: Call, domain: DomainRow): Promise<NeededRecord[]> {
  return neededRecords(await readFacts(call, domain), call.services.config.dns)
}

async function storeCheck(
  call: Call,
  id: string,
  needed: readonly NeededRecord[],
  findings: readonly (Finding | null)[],
): Promise<DomainChecked> {
  const domain = await findDomain(call, id, 'for no key update')
  const found = needed.flatMap((record, index) => {
    const finding = findings[index]
    return finding ? [described(record, finding, call.now)] : []
  })
  await rotate(call, domain, found)
  // The keys may have changed during the look-up.
  const keys = await readKeys(call, domain.id)
  const records = await claim(
    call,
    domain,
    await storeRecords(call, domain, [...found, ...domain.records]),
    keys,
  )
  const status = await storeStatus(call, domain, outcomeOf(domain, records, found, keys))
  return {
    status,
    pace: paceOf(status, keys),
    records: records.map((record) => `${record.status} ${record.purpose} ${record.name}`),
  }
}

function described(needed: NeededRecord, { status, found, repair }: Finding, now: Date): DomainRecord {
  return {
    ...needed,
    status,
    ...(found.length > 0 && { found }),
    ...(repair !== undefined && { repair }),
    checkedAt: now.toISOString(),
  }
}

/** Activates a new key once it is in DNS, and deletes retired keys whose mail has arrived. */
async function rotate(call: Call, domain: DomainRow, found: readonly DomainRecord[]): Promise<void> {
  const published = found.filter(({ purpose, status }) => purpose === 'DKIM' && status === 'VERIFIED')
  await promoteNext(call, domain, new Set(published.map(({ name }) => name)))
  await forgetRetired(call, domain.id)
}

/** Lets only one organization verify a domain; the others get a PENDING ownership record with the reason. */
async function claim(
  call: Call,
  domain: DomainRow,
  records: DomainRecord[],
  keys: readonly StoredKeyFacts[],
): Promise<DomainRecord[]> {
  if (!isRight(domain, records, keys)) return records
  await execute(call.em, sql`select pg_advisory_xact_lock(${DOMAIN_LOCK}, hashtext(${domain.domain}))`)
  const other = await row(
    call.em,
    sql`select id from domain where domain = ${domain.domain} and status = 'VERIFIED' and not development
      and organization_id <> ${call.organization.id}`,
  )
  if (!other) return records
  const repair = `Another organization has verified ${domain.domain}; it has to remove its records from DNS first; then this one can be verified.`
  const held = records.map((record): DomainRecord => {
    return record.purpose === 'OWNERSHIP' ? { ...record, status: 'PENDING', repair } : record
  })
  return await storeRecords(call, domain, held)
}

/** Judges by the records that this check got an answer for; without answers for all of them it is never GOOD. */
function outcomeOf(
  domain: DomainRow,
  records: readonly DomainRecord[],
  found: readonly DomainRecord[],
  keys: readonly StoredKeyFacts[],
): Outcome {
  const required = requiredOf(domain, records, keys)
  const answered = required.filter((record) =>
    found.some(({ name, purpose }) => name === record.name && purpose === record.purpose),
  )
  if (answered.some(({ status }) => status !== 'VERIFIED')) return 'BAD'
  return answered.length === required.length ? 'GOOD' : 'UNKNOWN'
}

function isRight(
  domain: DomainRow,
  records: readonly DomainRecord[],
  keys: readonly StoredKeyFacts[],
): boolean {
  return requiredOf(domain, records, keys).every(({ status }) => status === 'VERIFIED')
}

/** Returns the records that verification requires: all but DMARC, and of the DKIM keys only the signing one. */
function requiredOf(
  { domain }: DomainRow,
  records: readonly DomainRecord[],
  keys: readonly StoredKeyFacts[],
): DomainRecord[] {
  const signing = keys
    .filter(({ state }) => state === 'ACTIVE')
    .map(({ selector }) => dkimName(selector, domain))
  return records.filter(
    ({ purpose, name }) => purpose !== 'DMARC' && (purpose !== 'DKIM' || signing.includes(name)),
  )
}

async function storeStatus(call: Call, domain: DomainRow, outcome: Outcome): Promise<DomainStatus> {
  const after = STATUS_AFTER[domain.status][outcome]
  const stored = await row<{ status: DomainStatus }>(
    call.em,
    sql`with counted as (
        -- At most one a day, however often somebody looks.
        select ${outcome} = 'BAD' and status = 'VERIFIED'
          and coalesce(missed_at < now() - interval '20 hours', true) as miss
        from domain where organization_id = ${call.organization.id} and id = ${domain.id})
      update domain set checked_at = now(),
        missed_checks = case when ${outcome} = 'GOOD' then 0 when miss then missed_checks + 1 else missed_checks end,
        missed_at = case when ${outcome} = 'GOOD' then null when miss then now() else missed_at end,
        status = case
          when ${after} = 'VERIFYING' and verification_requested_at < now() - interval '72 hours' then 'FAILED'
          when ${after} = 'VERIFIED' and miss and missed_checks + 1 >= ${MISSES} then 'DEGRADED'
          else ${after} end
      from counted where organization_id = ${call.organization.id} and id = ${domain.id} returning status`,
  )
  if (!stored) throw new Error('a domain that is locked cannot be written')
  if (stored.status !== domain.status) {
    const { id, status: before } = domain
    call.services.log.info(
      { domain: encodeId('dom', id), before, status: stored.status },
      'a domain changed its status',
    )
  }
  return stored.status
}

function paceOf(status: DomainStatus, keys: readonly StoredKeyFacts[]): DomainPace {
  if (status === 'FAILED') return 'END'
  if (status === 'VERIFYING' || status === 'PENDING') return 'POLL'
  return keys.some(({ state, isFresh }) => state === 'NEXT' && isFresh) ? 'POLL' : 'DAILY'
}
