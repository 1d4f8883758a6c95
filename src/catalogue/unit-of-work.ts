import { sql } from 'kysely'

import { array, type EntityManager, execute, row } from '../database.ts'
import { missing } from '../ids.ts'
import type { Channel } from '../ports/doorbell.ts'
import type { Services } from '../services.ts'
import { isConcurrencyFault } from './database-error.ts'
import { Failure } from './failure.ts'
import type { Actor, Call, Intent, Organization } from './tool.ts'

/** Whose unit of work it is. `organization` spares a query where the caller has just read it. */
export type Scope = { organizationId: string; actor: Actor; organization?: Organization; now?: Date }

/** `singleStatement`: all of the work is one statement, which is a transaction by itself and emits nothing. */
export type UnitOptions = { readOnly?: boolean; singleStatement?: boolean }

const SERIALIZATION_ATTEMPTS = 4

/**
 * One call or one activity: a fork of the entity manager inside the organization, a transaction unless it only reads,
 * and after the commit the rings for what was emitted. Deadlocks and serialization failures run it again from the
 * start (PostgreSQL 40001, 40P01), so `work` keeps no state outside.
 */
export async function unitOfWork<Result>(
  services: Services,
  scope: Scope,
  work: (call: Call) => Promise<Result>,
  options: UnitOptions = {},
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await runOnce(services, scope, work, options)
    } catch (error) {
      if (attempt >= SERIALIZATION_ATTEMPTS || !isConcurrencyFault(error)) throw error
    }
  }
}

async function runOnce<Result>(
  services: Services,
  scope: Scope,
  work: (call: Call) => Promise<Result>,
  { readOnly, singleStatement }: UnitOptions,
): Promise<Result> {
  const channels = new Set<Channel>()
  const intents: Intent[] = []
  const owed: ((call: Call) => Promise<void>)[] = []
  const fork = services.orm.em.fork()
  fork.setFilterParams('organization', { organizationId: scope.organizationId })

  async function within(em: EntityManager): Promise<Result> {
    const { organization, now } = await readScope(em, scope)
    const result = await work({
      em,
      organization,
      now,
      actor: scope.actor,
      services,
      emit: (intent) => intents.push(intent),
      ifRefused: (write) => owed.push(write),
      wakeLane: (lane) => channels.add(lane),
    })
    if (intents.length > 0) {
      await writeOutbox(em, scope.organizationId, intents)
      channels.add('outbox')
    }
    return result
  }

  if (readOnly) return await within(fork)
  const result = await (singleStatement ? within(fork) : fork.transactional(within)).catch(async (error) => {
    if (error instanceof Failure) for (const write of owed) await runOnce(services, scope, write, {})
    throw error
  })
  for (const channel of channels) services.doorbell.ring(channel)
  return result
}

/**
 * A fork outside every unit of work and without the organization filter, so that its statements name the organization
 * themselves: for work across organizations, such as claiming email, and for what must outlive a call's transaction.
 */
export function crossOrganization(services: Services): EntityManager {
  return services.orm.em.fork()
}

async function readScope(
  em: EntityManager,
  scope: Scope,
): Promise<{ organization: Organization; now: Date }> {
  if (scope.organization && scope.now) return { organization: scope.organization, now: scope.now }
  const found = await row<Organization & { now: Date }>(
    em,
    sql`select id, name, slug, timezone, plan, double_opt_in as "doubleOptIn", now() as now
      from organization where id = ${scope.organizationId}`,
  )
  if (!found) missing('org', scope.organizationId)
  const { now, ...organization } = found
  return { organization, now: new Date(now) }
}

async function writeOutbox(
  em: EntityManager,
  organizationId: string,
  intents: readonly Intent[],
): Promise<void> {
  await execute(
    em,
    sql`insert into outbox (organization_id, workflow_id, kind, payload, priority)
      select ${organizationId}, intent.workflow_id, intent.kind, intent.payload, intent.priority
      from unnest(
        ${array(
          intents.map(({ workflowId }) => workflowId),
          'text',
        )},
        ${array(
          intents.map(({ kind }) => kind),
          'text',
        )},
        ${array(
          intents.map(({ payload }) => payload ?? {}),
          'jsonb',
        )},
        ${array(
          intents.map(({ priority }) => priority ?? 0),
          'int',
        )}
      ) with ordinality as intent (workflow_id, kind, payload, priority, position)
      order by intent.position`,
  )
}
