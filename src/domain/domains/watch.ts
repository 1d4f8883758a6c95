import { sql } from 'kysely'

import type { Domain } from '../../../schema/domain.ts'
import {
  CHECK_NOW,
  DOMAIN_VERIFICATION,
  type DomainChecked,
  type DomainCheckRequest,
  domainWorkflowId,
  NUDGE,
} from '../../../temporal/contract.ts'
import type { Call, Outside } from '../../catalogue/tool.ts'
import { crossOrganization } from '../../catalogue/unit-of-work.ts'
import { type EntityManager, execute, rows } from '../../database.ts'
import { decodeId, encodeId } from '../../ids.ts'
import { type DomainRow, findDomain, presentDomain } from './domains.ts'

/** A domain that is no longer checked; ids are uuids. */
export type UnwatchedDomain = Pick<DomainRow, 'id' | 'domain'> & { organizationId: string }

/** The timeout of a check, which asks every server at most twice per name and so answers well before. */
const ANSWER_MS = 12_000

/** Starts the workflow that checks a domain; does nothing when it is already running. */
export function watchDomain(call: Call, domain: Pick<DomainRow, 'id' | 'domain'>): void {
  const start = startOf(call.organization.id, domain)
  call.emit({ kind: 'start', workflowId: start.workflowId, payload: start })
}

/** Has the domain's workflow check it now, and often for a while. */
export function lookAgain(call: Call, domain: Pick<DomainRow, 'id' | 'domain'>): void {
  watchDomain(call, domain)
  const { workflowId } = startOf(call.organization.id, domain)
  call.emit({ kind: 'signal', workflowId, payload: { signal: NUDGE } })
}

/** Requests verification: the 72 hours start again, and a FAILED domain gets another chance. */
export async function requestVerification(call: Call, domain: string): Promise<Domain> {
  const found = await findDomain(call, domain, 'for no key update')
  if (found.development) return presentDomain(found)
  await execute(
    call.em,
    sql`update domain set verification_requested_at = now(),
        status = case when status in ('PENDING', 'FAILED') then 'VERIFYING' else status end
      where organization_id = ${call.organization.id} and id = ${found.id}`,
  )
  watchDomain(call, found)
  return presentDomain(await findDomain(call, found.domain))
}

/** Checks the records now and returns the updated domain. Throws `UNAVAILABLE` when the check takes too long. */
export async function settleVerification(call: Outside, { id }: Domain): Promise<Domain> {
  const { organization, services } = call
  const read = () => findDomain({ em: crossOrganization(services), organization }, id)
  const domain = await read()
  if (domain.development) return presentDomain(domain)
  const start = startOf(organization.id, { id: decodeId('dom', id), domain: domain.domain })
  await services.temporal.ask<DomainChecked>({ ...start, update: CHECK_NOW, withinMs: ANSWER_MS })
  return presentDomain(await read())
}

/** Finds domains of all organizations that were last checked over 26 hours ago and have no pending outbox entry. */
export async function findUnwatchedDomains(em: EntityManager, limit: number): Promise<UnwatchedDomain[]> {
  return await rows<UnwatchedDomain>(
    em,
    sql`select d.organization_id as "organizationId", d.id, d.domain from domain d
      where d.status <> 'FAILED' and not d.development
        and coalesce(d.checked_at, d.verification_requested_at) < now() - interval '26 hours'
        and not exists (select from outbox o where o.workflow_id = 'domain/' || type_id('dom', d.id))
      order by d.id limit ${limit}`,
  )
}

function startOf(organizationId: string, domain: Pick<DomainRow, 'id' | 'domain'>) {
  const domainId = encodeId('dom', domain.id)
  const input: DomainCheckRequest = { organizationId: encodeId('org', organizationId), domainId }
  return {
    workflow: DOMAIN_VERIFICATION,
    workflowId: domainWorkflowId(domainId),
    input,
    summary: `Domain ${domain.domain} · ${domainId}`,
    details: `${domainId} of ${input.organizationId}. The tool get_domain_dns_records shows its records.`,
  }
}
