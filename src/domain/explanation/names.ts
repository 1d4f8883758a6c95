import { sql } from 'kysely'

import type { Leaf } from '../../../schema/audience.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, rows } from '../../database.ts'
import { encodeId, readId } from '../../ids.ts'

const TABLES = { seg: 'segment', cmp: 'campaign', wf: 'automation' } as const
type Named = keyof typeof TABLES

/** Returns the names of segments, campaigns and workflows by id; ignores other text. */
export async function namesOf(call: Call, ids: readonly string[]): Promise<Map<string, string>> {
  // Object.keys loses the type of the keys.
  const queries = (Object.keys(TABLES) as Named[]).flatMap((prefix) => {
    const known = ids.flatMap((id) => readId(prefix, id) ?? [])
    if (known.length === 0) return []
    return [
      sql`select ${prefix} as prefix, id, name from ${sql.table(TABLES[prefix])}
        where organization_id = ${call.organization.id} and id = any(${array(known, 'uuid')})`,
    ]
  })
  if (queries.length === 0) return new Map()
  const found = await rows<{ prefix: Named; id: string; name: string }>(
    call.em,
    sql.join(queries, sql` union all `),
  )
  return new Map(found.map(({ prefix, id, name }) => [encodeId(prefix, id), name]))
}

/** Returns the text values of a leaf, which may contain ids. */
export function idsIn({ value }: Leaf): string[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  return values.filter((each) => typeof each === 'string')
}
