import { sql } from 'kysely'

import type { Filter, Where } from '../../../schema/audience.ts'
import { Failure } from '../../catalogue/failure.ts'
import { column, type EntityManager, rows } from '../../database.ts'
import { type Compilation, compileFilters } from './compile.ts'
import { compileWhere } from './match.ts'
import { type AudienceScope, loadReferences, type References } from './references.ts'

/** An event of a subscriber: filters read its data as `entry.<path>`, conditions read it directly. */
export type Happening = { subscriberId: string; data: unknown }

/** A test of some happenings: conditions on the data, filters on the subscriber, and the indexes of the happenings. */
export type Question = {
  automationId: string
  where: readonly Where[]
  filters: readonly Filter[]
  places: readonly number[]
}

/** The indexes whose happening meets the conditions (`meant`), and those whose subscriber also matches (`passing`). */
export type Verdict = {
  meant: number[]
  passing: Set<number>
  /** Why the others do not pass: FILTERS, or the code of a failure to compile the filters. */
  reason: string
}

/** Questions per statement. Bound values per statement are limited, and a question can have hundreds. */
const QUESTIONS_A_STATEMENT = 50

/**
 * Answers many questions in few statements: one look-up of all references, then `QUESTIONS_A_STATEMENT` per query.
 * Conditions on the data refer to nothing, so the caller gives the time zone of their dates.
 * Filters with missing references let nobody pass, without affecting other questions.
 */
export async function judge(
  em: EntityManager,
  scope: Required<AudienceScope>,
  happenings: readonly Happening[],
  questions: readonly Question[],
): Promise<Verdict[]> {
  const asking = questions.filter(({ where, filters }) => where.length > 0 || filters.length > 0)
  const verdicts = new Map<Question, Verdict>()
  if (asking.length > 0) {
    const references = await loadReferences(
      em,
      scope,
      asking.flatMap(({ filters }) => filters),
    )
    for (let from = 0; from < asking.length; from += QUESTIONS_A_STATEMENT) {
      const page = asking.slice(from, from + QUESTIONS_A_STATEMENT)
      const answers = await ask(em, scope, happenings, page, references)
      page.forEach((question, index) => verdicts.set(question, answers[index] ?? nobody()))
    }
  }
  return questions.map((question) => verdicts.get(question) ?? everybody(question))
}

function nobody(): Verdict {
  return { meant: [], passing: new Set(), reason: 'FILTERS' }
}

function everybody({ places }: Question): Verdict {
  return { meant: [...places], passing: new Set(places), reason: 'FILTERS' }
}

async function ask(
  em: EntityManager,
  scope: AudienceScope,
  happenings: readonly Happening[],
  questions: readonly Question[],
  references: References,
): Promise<Verdict[]> {
  const compiled = questions.map((question) => compileQuestion(scope, question, references))
  const pairs = questions.flatMap(({ places }, number) => places.map((place) => ({ place, number })))
  const cases = (pick: (each: (typeof compiled)[number]) => unknown) =>
    sql`case asked.number ${sql.join(
      compiled.map((each, number) => sql`when ${number}::int then ${pick(each)}`),
      sql` `,
    )} end`
  const found = await rows<{ place: number; number: number; holds: boolean }>(
    em,
    sql`select asked.place, asked.number, coalesce(${cases(({ filters }) => filters)}, false) as holds
      from unnest(${column(happenings, ({ subscriberId }) => subscriberId, 'uuid')},
        ${column(happenings, ({ data }) => data ?? null, 'jsonb')}) with ordinality as event (subscriber_id, data, place)
      join unnest(${column(pairs, ({ place }) => place + 1, 'int')}, ${column(pairs, ({ number }) => number, 'int')})
        as asked (place, number) on asked.place = event.place
      join subscriber s on s.organization_id = ${scope.organizationId} and s.id = event.subscriber_id
      where ${cases(({ where }) => where)}`,
  )
  const verdicts = compiled.map(({ reason }): Verdict => ({ meant: [], passing: new Set(), reason }))
  for (const { place, number, holds } of found) {
    const verdict = verdicts[number]
    verdict?.meant.push(place - 1)
    if (holds) verdict?.passing.add(place - 1)
  }
  return verdicts
}

function compileQuestion(
  scope: AudienceScope,
  { automationId, where, filters }: Question,
  references: References,
) {
  const compilation: Compilation = {
    organizationId: scope.organizationId,
    references,
    entry: sql`event.data`,
    run: { automationId },
    single: true,
  }
  const conditions = compileWhere(sql`event.data`, where, references.timezone)
  try {
    return { where: conditions, filters: compileFilters(compilation, filters), reason: 'FILTERS' }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { where: conditions, filters: sql<boolean>`false`, reason: error.code }
  }
}
