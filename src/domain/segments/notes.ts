import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { array, execute } from '../../database.ts'

/** Records that these subscribers changed without an event, so that their segments and conditions are checked. */
export async function noteSegmentChanges(
  { em, organization, actor }: Call,
  subscriberIds: readonly string[],
  { silent = false }: { silent?: boolean } = {},
): Promise<void> {
  if (subscriberIds.length === 0) return
  await execute(
    em,
    sql`select note_for_segments(${organization.id}, ${array(subscriberIds, 'uuid')}, ${silent},
      ${actor.depth ?? null}::int)`,
  )
}
