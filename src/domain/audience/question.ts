import { type RawBuilder, sql } from 'kysely'

import type { SubscriberStatus } from '../../../schema/values.ts'
import type { Call } from '../../catalogue/tool.ts'
import type { Keyset } from '../keyset.ts'
import { readFilters } from './check.ts'
import { compileFilters } from './compile.ts'
import { allOf, always, type Predicate } from './predicate.ts'
import { zonedScope } from './references.ts'
import { searchConditions } from './search.ts'

/** The entry context outside runs. */
const NO_ENTRY = sql`'null'::jsonb`

/** Selects subscribers; absent members do not restrict the result. `tagId` is a uuid. */
export type Question = {
  filters?: unknown
  statuses?: readonly SubscriberStatus[]
  query?: string | undefined
  tagId?: string
}

/**
 * A question in SQL over `subscriber s`: all of `every` and at least one of `any` must hold. Each member of `any`
 * becomes a query of its own, which can use its best index and stops when the page is full. A single condition with OR
 * would read all subscribers.
 */
export type Audience = { organizationId: string; every: Predicate[]; any: Predicate[]; tagId?: string }

/** Compiles a question. Throws `INVALID_INPUT` with all faults of the filters. */
export async function readAudience(
  call: Call,
  { filters = [], statuses, query, tagId }: Question,
): Promise<Audience> {
  const { em, organization } = call
  const read = await readFilters(em, zonedScope(organization), filters, 'filters')
  const text = query?.trim() ?? ''
  const searched = text === '' ? [always.holds] : await searchConditions(call, text)
  return {
    organizationId: organization.id,
    every: [
      compileFilters(
        { organizationId: organization.id, references: read.references, entry: NO_ENTRY },
        read.filters,
      ),
    ],
    any: searched.flatMap((condition) => withStatus(condition, statuses)),
    ...(tagId !== undefined && { tagId }),
  }
}

/** Selects the rows of a page in its order, and one more when another page follows. */
export function pageOf(audience: Audience, walk: Keyset): RawBuilder<unknown> {
  // The index on tag links makes rare tags as fast as common ones.
  const id = audience.tagId === undefined ? sql`s.id` : sql`link.subscriber_id`
  const people = peopleOf(audience)
  const parts = audience.any.map(
    (condition) =>
      sql`select s.* from ${people} and ${allOf([...audience.every, condition])} ${walk.part(id)}`,
  )
  const [only] = parts
  if (parts.length === 1 && only) return only
  const together = sql.join(
    parts.map((each) => sql`(${each})`),
    sql` union all `,
  )
  return sql`select distinct on (id) * from (${together}) as found where true ${walk.part(sql`id`)}`
}

/** Selects id and status of every matching subscriber once, for counting. */
export function everybody(audience: Audience): RawBuilder<unknown> {
  const people = peopleOf(audience)
  const parts = audience.any.map(
    (condition) => sql`select s.id, s.status from ${people} and ${allOf([...audience.every, condition])}`,
  )
  return sql.join(parts, sql` union `)
}

function peopleOf({ organizationId, tagId }: Audience): RawBuilder<unknown> {
  if (tagId === undefined) return sql`subscriber s where s.organization_id = ${organizationId}`
  return sql`subscriber_tag link join subscriber s on s.organization_id = ${organizationId} and s.id = link.subscriber_id
    where link.organization_id = ${organizationId} and link.tag_id = ${tagId}`
}

/** Makes one condition per status, so that each query can read its index in order. */
function withStatus(condition: Predicate, statuses: readonly SubscriberStatus[] | undefined): Predicate[] {
  if (!statuses) return [condition]
  return statuses.map((status) => allOf([sql<boolean>`s.status = ${status}`, condition]))
}
