import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { json } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { refuseInUse, usesWhere } from '../audience/uses.ts'

/** Throws `WRONG_STATE` when an unfinished campaign, a workflow or another segment uses the segment, naming each. */
export async function refuseUsedSegment(call: Call, segment: { id: string; name: string }): Promise<void> {
  const uses = await usesWhere(
    call,
    sql`id <> ${segment.id} and jsonb_path_exists(document,
      '$.** ? ((@.field == "segment" && @.value[*] == $id) || @.segmentId == $id)',
      ${json({ id: encodeId('seg', segment.id) })})`,
  )
  refuseInUse(uses, `The segment "${segment.name}" cannot be deleted`, 'remove it there first')
}
