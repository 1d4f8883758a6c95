import { sql } from 'kysely'

import { AUDIENCE_LIMITS, type Filter } from '../../../schema/audience.ts'
import { refuse } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { rows } from '../../database.ts'
import { decodeId, encodeId } from '../../ids.ts'
import { segmentsIn } from '../audience/references.ts'

/** The segments that each segment refers to, by uuid; segments without references are absent. */
export type Nesting = ReadonlyMap<string, readonly string[]>

/** Returns the references between all segments of the organization. */
export async function readNesting({ em, organization }: Call): Promise<Nesting> {
  const found = await rows<{ id: string; inner: string[] }>(
    em,
    sql`select id, jsonb_path_query_array(filters, '$.** ? (@.field == "segment").value[*]') as inner
      from segment where organization_id = ${organization.id} and filters @? '$.** ? (@.field == "segment")'`,
  )
  return new Map(found.map(({ id, inner }) => [id, [...new Set(inner)].map((each) => decodeId('seg', each))]))
}

/** Returns the segments that depend on this one, directly or through others. */
export function outerSegments(nesting: Nesting, id: string): Set<string> {
  const outer = new Set<string>()
  const open = [id]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const [candidate, inner] of nesting) {
      if (!inner.includes(next) || outer.has(candidate)) continue
      outer.add(candidate)
      open.push(candidate)
    }
  }
  return outer
}

/**
 * Refuses filters that would make the segments around this one nest too deep. checkFilters already refused cycles and
 * filters that are too deep themselves.
 */
export function refuseDeepNesting(nesting: Nesting, id: string, filters: readonly Filter[]): void {
  const changed = new Map([...nesting, [id, [...segmentsIn(filters)]]])
  const known = new Map<string, number>()
  for (const outer of outerSegments(changed, id)) {
    if (levels(changed, outer, known) <= AUDIENCE_LIMITS.depth) continue
    const chain = `the segment ${encodeId('seg', outer)}, which leads here,`
    refuse(
      'filters',
      `would make ${chain} nest more than ${AUDIENCE_LIMITS.depth} levels deep; flatten them.`,
    )
  }
}

/** Counts the nesting levels of a segment; `known` avoids counting shared segments once per path. */
function levels(nesting: Nesting, id: string, known: Map<string, number>): number {
  const before = known.get(id)
  if (before !== undefined) return before
  const inner = (nesting.get(id) ?? []).map((each) => levels(nesting, each, known))
  const count = 1 + Math.max(0, ...inner)
  known.set(id, count)
  return count
}
