import { sql } from 'kysely'

import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { json } from '../../database.ts'
import { encodeId, type IdPrefix } from '../../ids.ts'
import { type Use, usesWhere } from '../audience/uses.ts'

const PREFIXES = { campaign: 'cmp', workflow: 'wf', segment: 'seg' } as const satisfies Record<
  Use['kind'],
  IdPrefix
>

/** Throws `WRONG_STATE` when an unfinished campaign, a workflow or another segment uses the segment, naming each. */
export async function refuseUsedSegment(call: Call, segment: { id: string; name: string }): Promise<void> {
  const uses = await usesWhere(
    call,
    sql`id <> ${segment.id} and jsonb_path_exists(document,
      '$.** ? ((@.field == "segment" && @.value[*] == $id) || @.segmentId == $id)',
      ${json({ id: encodeId('seg', segment.id) })})`,
  )
  if (uses.length === 0) return
  const named = uses.map(({ kind, id, name }) => `the ${kind} "${name}" (${encodeId(PREFIXES[kind], id)})`)
  throw new Failure(
    'WRONG_STATE',
    `The segment "${segment.name}" cannot be deleted while it is used by ${named.join(', ')}; remove it there first.`,
    {
      details: {
        usedBy: uses.map(({ kind, id, name }) => ({ type: kind, id: encodeId(PREFIXES[kind], id), name })),
      },
    },
  )
}
