import { sql } from 'kysely'

import { execute } from '../../src/database.ts'
import { createDomain } from '../../src/domain/domains/create.ts'
import { makeDkimPair } from '../../src/domain/domains/keys.ts'
import { requestVerification, settleVerification } from '../../src/domain/domains/watch.ts'
import { newId } from '../../src/ids.ts'
import { domainWorkflowId, NUDGE } from '../../temporal/contract.ts'
import { type NameServer, txt } from '../../test/helpers/name-server.ts'
import type { Studio as Stage } from './studio.ts'

type Studio = Stage & { names: NameServer }

/** Domain verifications whose histories are recorded. Each function starts one and returns its workflow id. */
export const DOMAIN_SCENES: Record<string, (studio: Studio) => Promise<string>> = {
  domain: async (studio) => {
    const domain = await register(studio)
    await verify(studio, domain.id)
    for (const { name } of domain.providerRecords) {
      const held = domain.providerRecords.filter((record) => record.name === name)
      studio.names.set(
        name,
        ...held.map(({ type, value, priority = 0 }) =>
          type === 'MX' ? { type, exchange: value, priority } : txt(value),
        ),
      )
    }
    await verify(studio, domain.id)
    return domainWorkflowId(domain.id)
  },
  'domain-failed': async (studio) => {
    const domain = await register(studio)
    await verify(studio, domain.id)
    return await failDomain(studio, domain)
  },
}

type Registered = { id: string; domain: string }

/** Makes the verification time out and returns the workflow id. */
export async function failDomain(
  { services, tenant }: Omit<Studio, 'names'>,
  { id, domain }: Registered,
): Promise<string> {
  await execute(
    services.orm.em.fork(),
    sql`update domain set verification_requested_at = now() - interval '73 hours'
      where organization_id = ${tenant.id} and domain = ${domain}`,
  )
  const client = await services.temporal.client()
  const workflowId = domainWorkflowId(id)
  await client.workflow.getHandle(workflowId).signal(NUDGE)
  return workflowId
}

/** Creates a domain, which also starts its verification. */
export async function register({ tenant }: Pick<Studio, 'tenant'>) {
  const pair = await makeDkimPair()
  return await tenant.within((call) => createDomain(call, { domain: `d${newId().slice(-12)}.example` }, pair))
}

/** Checks the DNS records of the domain now. */
export async function verify({ services, tenant }: Omit<Studio, 'names'>, domain: string): Promise<void> {
  const { data, settling } = await tenant.within(async (call) => ({
    data: await requestVerification(call, domain),
    settling: { organization: call.organization, actor: call.actor, services },
  }))
  await settleVerification(settling, data)
}
