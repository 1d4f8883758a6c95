import { sql } from 'kysely'

import type { Filter, Where } from '../../../schema/audience.ts'
import { Failure } from '../../catalogue/failure.ts'
import { array, type EntityManager, json, rows } from '../../database.ts'
import { type Compilation, compileFilters } from './compile.ts'
import { calendarOf } from './dates.ts'
import { allOf, type Predicate } from './predicate.ts'
import { type AudienceScope, loadReferences } from './references.ts'
import { whereTest } from './related.ts'

/** Context from a run: what it was started with, and the automation and run that `{stepId}` refers to (uuids). */
export type EntryContext = {
  entry?: unknown
  run?: { automationId: string; runId?: string }
}

/**
 * Loads the references of filters and compiles them to a condition over `subscriber s`; see compileFilters. `single` is
 * for a query over few subscribers instead of an audience: also for one page of an audience, because each page would
 * otherwise group the events of all subscribers.
 */
export async function audiencePredicate(
  em: EntityManager,
  scope: AudienceScope,
  filters: readonly Filter[],
  context: EntryContext = {},
  { single = false }: { single?: boolean } = {},
): Promise<Predicate> {
  return compileFilters(await compilation(em, scope, filters, context, single), filters)
}

/** Whether one subscriber matches the filters. */
export async function matches(
  em: EntityManager,
  scope: AudienceScope,
  subscriberId: string,
  filters: readonly Filter[],
  context: EntryContext = {},
): Promise<boolean> {
  return (await firstMatching(em, scope, subscriberId, [{ id: 'yes', filters }], context)) !== null
}

/** Returns the id of the first branch that a subscriber matches, in one query; null when none matches. */
export async function firstMatching(
  em: EntityManager,
  scope: AudienceScope,
  subscriberId: string,
  branches: readonly { id: string; filters: readonly Filter[] }[],
  context: EntryContext = {},
): Promise<string | null> {
  const every = branches.flatMap(({ filters }) => filters)
  const asked = await compilation(em, scope, every, context, true)
  const cases = branches.map(
    ({ filters }, index) => sql`when ${compileFilters(asked, filters)} then ${index}::int`,
  )
  if (cases.length === 0) return null
  const found = await rows<{ position: number | null }>(
    em,
    sql`select case ${sql.join(cases, sql` `)} end as position from subscriber s
      where s.organization_id = ${scope.organizationId} and s.id = ${subscriberId}`,
  )
  const position = found[0]?.position ?? null
  return position === null ? null : (branches[position]?.id ?? null)
}

/**
 * Returns for each filter whether it matches one subscriber, in one query. A filter with a missing reference yields its
 * failure.
 */
export async function eachHolds(
  em: EntityManager,
  scope: AudienceScope,
  subscriberId: string,
  filters: readonly Filter[],
  context: EntryContext = {},
): Promise<(boolean | Failure)[]> {
  const asked = await compilation(em, scope, filters, context, true)
  const tests = filters.map((filter) => compiledOrRefused(asked, filter))
  const found = await rows<{ held: boolean[] }>(
    em,
    sql`select to_jsonb(array[${sql.join(
      tests.map((test) => (test instanceof Failure ? sql`false` : sql`coalesce(${test}, false)`)),
    )}]::boolean[]) as held
      from subscriber s where s.organization_id = ${scope.organizationId} and s.id = ${subscriberId}`,
  )
  return tests.map((test, index) => (test instanceof Failure ? test : (found[0]?.held[index] ?? false)))
}

function compiledOrRefused(asked: Compilation, filter: Filter): Predicate | Failure {
  try {
    return compileFilters(asked, [filter])
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

/** Returns the runs of one automation that match, each with its own context and emails, in one query. */
export async function matchingRuns(
  em: EntityManager,
  scope: AudienceScope,
  { automationId, runIds }: { automationId: string; runIds: readonly string[] },
  filters: readonly Filter[],
): Promise<Set<string>> {
  if (runIds.length === 0) return new Set()
  const run = { automationId, runId: sql<string>`own.id` }
  const asked = { ...(await compilation(em, scope, filters, {}, true)), entry: sql`own.context`, run }
  const found = await rows<{ id: string }>(
    em,
    sql`select own.id from automation_run own
      join subscriber s on s.organization_id = own.organization_id and s.id = own.subscriber_id
      where own.organization_id = ${scope.organizationId} and own.id = any(${array(runIds, 'uuid')})
        and ${compileFilters(asked, filters)}`,
  )
  return new Set(found.map(({ id }) => id))
}

/** Compiles conditions on an event's data; `json` is the jsonb expression of the data. */
export function compileWhere(
  json: Parameters<typeof whereTest>[0],
  where: readonly Where[],
  timezone: string,
): Predicate {
  const calendar = calendarOf(timezone)
  return allOf(where.map((condition) => whereTest(json, condition, calendar)))
}

async function compilation(
  em: EntityManager,
  scope: AudienceScope,
  filters: readonly Filter[],
  context: EntryContext,
  single: boolean,
): Promise<Compilation> {
  const references = await loadReferences(em, scope, filters)
  const entry = json(context.entry ?? null)
  return { ...context, entry, organizationId: scope.organizationId, references, single }
}
