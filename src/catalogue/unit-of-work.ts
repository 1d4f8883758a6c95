import { sql } from 'kysely'

import { column, type EntityManager, execute, row } from '../database.ts'
import { missing } from '../ids.ts'
import type { Channel } from '../ports/doorbell.ts'
import type { Services } from '../services.ts'
import { isConcurrencyFault } from './database-error.ts'
import { Failure } from './failure.ts'
import type { Actor, Call, Intent, Organization } from './tool.ts'

/**
 * The organization and actor of a unit of work. With `organization` and `now`, which a caller may have just read, no
 * query is needed.
 */
export type Scope = { organizationId: string; actor: Actor; organization?: Organization; now?: Date }

/** `singleStatement`: all of the work is one statement, which is its own transaction and emits nothing. */
export type UnitOptions = { readOnly?: boolean; singleStatement?: boolean }

const SERIALIZATION_ATTEMPTS = 4

/**
 * Runs one call or one activity. `work` gets a fork of the entity manager that is filtered by organization, in a
 * transaction unless it is read-only or a single statement. After the commit, the doorbell rings for emitted work.
 * Deadlocks and serialization failures (PostgreSQL 40001, 40P01) run `work` again from the start, so it must keep no
 * state outside.
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
    if (error instanceof Failure) await writeOwed(services, scope, owed)
    throw error
  })
  for (const channel of channels) services.doorbell.ring(channel)
  return result
}

/** Writes what a refused call still has to leave behind. If that fails, the caller still hears of the refusal. */
async function writeOwed(
  services: Services,
  scope: Scope,
  owed: readonly ((call: Call) => Promise<void>)[],
): Promise<void> {
  try {
    for (const write of owed) await runOnce(services, scope, write, {})
  } catch (error) {
    services.log.error({ err: error }, 'what explains a refusal could not be written')
  }
}

/**
 * Returns a fork of the entity manager without transaction and organization filter, so its statements must name the
 * organization themselves. For work across organizations, such as claiming email, and for writes that must survive a
 * rollback.
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
        ${column(intents, ({ workflowId }) => workflowId, 'text')},
        ${column(intents, ({ kind }) => kind, 'text')},
        ${column(intents, ({ payload }) => payload ?? {}, 'jsonb')},
        ${column(intents, ({ priority }) => priority ?? 0, 'int')}
      ) with ordinality as intent (workflow_id, kind, payload, priority, position)
      order by intent.position`,
  )
}
