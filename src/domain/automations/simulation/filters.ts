import { type RawBuilder, sql } from 'kysely'

import {
  CUSTOM_FIELD_PREFIX,
  ENTRY_PREFIX,
  type Filter,
  type Period,
  type PeriodUnit,
  type Where,
} from '../../../../schema/audience.ts'
import { array, type EntityManager, json, row } from '../../../database.ts'
import { compileFilters } from '../../audience/compile.ts'
import { changesWithTime, periodsOf, TIME_LOOK_MS } from '../../audience/dates.ts'
import { compileWhere } from '../../audience/match.ts'
import { placesOf, type References } from '../../audience/references.ts'
import { simulatedTables, type Subject } from './simulated-tables.ts'
import { NOBODY, type State } from './state.ts'

const DAY_MS = 86_400_000
/** The most moments that one search evaluates: some seconds for a person with thousands of events. */
const MOST_LOOKS = 10_000
const SHORT_UNITS: Readonly<Partial<Record<PeriodUnit, number>>> = { MINUTES: 60_000, HOURS: 3_600_000 }

type Branch = { id: string; filters: readonly Filter[] }

type Between = { after: number; before: number }

/** Evaluates the filters of a simulation. `firstHolding` caches its answers by the parts of the state that matter. */
export type Filtering = {
  /** Returns the id of the first branch whose filters match at the moment `at` (epoch ms), or null. */
  firstHolding(branches: readonly Branch[], state: State, at: number): Promise<string | null>
  /**
   * Returns the first moment (epoch ms, strictly between the two) at which the engine would notice that filters match
   * just because time has passed, or null.
   */
  firstMoment(filters: readonly Filter[], state: State, between: Between): Promise<number | null>
  /** Returns whether the data of an event meet conditions. */
  fulfils(data: Record<string, unknown>, where: readonly Where[]): Promise<boolean>
}

/**
 * Makes the filtering of a simulation. The engine's compiler compiles the filters and the database evaluates them.
 * Common table expressions with the simulated state shadow the tables of the same names, and the simulated time
 * replaces `now()`.
 */
export function createFiltering(em: EntityManager, subject: Subject): Filtering {
  const known = new Map<string, Promise<string | null>>()

  function compiled(filters: readonly Filter[], { entry, fieldTypes }: State, now: RawBuilder<unknown>) {
    const { organizationId, automationId } = subject
    const references = { ...subject.references, fields: new Map(fieldTypes) }
    const run = { automationId, runId: NOBODY }
    return compileFilters({ organizationId, references, entry: json(entry), run, single: true, now }, filters)
  }

  /**
   * Adds the common table expressions of the tables that the query names. Unused ones would cost more than the query.
   */
  function over(query: RawBuilder<unknown>, state: State): RawBuilder<unknown> {
    const { sql: text } = query.compile(em.getKysely())
    const named = simulatedTables(subject, state).filter(([name]) => new RegExp(`\\b${name}\\b`).test(text))
    return sql`with ${sql.join(named.map(([, table]) => table()))} ${query}`
  }

  async function ask(branches: readonly Branch[], state: State, at: number): Promise<string | null> {
    const cases = branches.map(
      ({ filters }, index) => sql`when ${compiled(filters, state, instant(at))} then ${index}::int`,
    )
    const found = await row<{ position: number | null }>(
      em,
      over(sql`select case ${sql.join(cases, sql` `)} end as position from subscriber s`, state),
    )
    const position = found?.position ?? null
    return position === null ? null : (branches[position]?.id ?? null)
  }

  /** Returns the first of these moments at which the filters match, or null. */
  async function firstOf(
    filters: readonly Filter[],
    state: State,
    moments: readonly number[],
  ): Promise<number | null> {
    const dates = moments.map((at) => new Date(at).toISOString())
    const found = await row<{ at: string | null }>(
      em,
      over(
        sql`select min(probe.at) as at from subscriber s
          cross join unnest(${array(dates, 'timestamptz')}) as probe (at) where ${compiled(filters, state, sql`probe.at`)}`,
        state,
      ),
    )
    return found?.at ? Date.parse(found.at) : null
  }

  return {
    async firstHolding(branches, state, at) {
      if (branches.length === 0) return null
      const key = JSON.stringify([branches, ...dependencies(branches, subject.references, state, at)])
      const answer = known.get(key) ?? ask(branches, state, at)
      known.set(key, answer)
      return await answer
    },
    async firstMoment(filters, state, { after, before }) {
      const periods = places(filters, subject.references).flatMap(({ leaf }) => periodsOf(leaf))
      const first = (Math.floor(after / TIME_LOOK_MS) + 1) * TIME_LOOK_MS
      const stride = strideOf(periods)
      const last = Math.min(
        (Math.ceil(before / TIME_LOOK_MS) - 1) * TIME_LOOK_MS,
        first + MOST_LOOKS * stride,
      )
      if (periods.length === 0 || last < first) return null
      const found = await firstOf(filters, state, [...looks(first, last, stride), last])
      if (found === null) return null
      const since = Math.max(first, found - stride + TIME_LOOK_MS)
      return await firstOf(filters, state, looks(since, found, TIME_LOOK_MS))
    },
    async fulfils(data, where) {
      if (where.length === 0) return true
      const holds = compileWhere(json(data), where, subject.references.timezone)
      const found = await row<{ holds: boolean | null }>(em, sql`select ${holds} as holds`)
      return found?.holds ?? false
    },
  }
}

/** Returns the parts of the state on which the answer of the filters can depend, as a cache key. */
function dependencies(
  branches: readonly Branch[],
  references: References,
  state: State,
  at: number,
): unknown[] {
  const leaves = places(
    branches.flatMap(({ filters }) => filters),
    references,
  ).map(({ leaf }) => leaf)
  const names = (test: (field: string) => boolean) => leaves.some(({ field }) => test(field))
  return [
    leaves.some(changesWithTime) && at,
    state.profile,
    names((field) => field.startsWith(ENTRY_PREFIX)) && state.entry,
    names((field) => field === 'status') && state.status,
    names((field) => field.startsWith(CUSTOM_FIELD_PREFIX)) && [state.fields, [...state.fieldTypes]],
    names((field) => field === 'tags') && [...state.tags],
    names((field) => field === 'campaign' || field === 'emailCount') && state.emails,
    names((field) => field === 'event' || field === 'revenue') && [state.begunBy, state.events],
  ]
}

function looks(first: number, last: number, stride: number): number[] {
  const count = Math.floor((last - first) / stride) + 1
  return Array.from({ length: count }, (_, index) => first + index * stride)
}

/**
 * Returns the time between two looks in ms: half of the shortest period, so that filters which match for at least half
 * of it, such as on the day before a date, are not missed.
 */
function strideOf(periods: readonly Period[]): number {
  const lengths = periods.map(({ amount, unit }) => amount * (SHORT_UNITS[unit] ?? DAY_MS))
  return Math.max(1, Math.floor(Math.min(DAY_MS, ...lengths) / 2 / TIME_LOOK_MS)) * TIME_LOOK_MS
}

function places(filters: readonly Filter[], { segments }: References) {
  return placesOf([...filters, ...[...segments.values()].flat()], '')
}

function instant(at: number): RawBuilder<unknown> {
  return sql`${new Date(at).toISOString()}::timestamptz`
}
