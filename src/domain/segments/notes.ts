import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { array, execute } from '../../database.ts'

/** Records that these subscribers changed without an event, so that their segments are checked. */
export async function noteSegmentChanges(
  { em, organization }: Call,
  subscriberIds: readonly string[],
  { silent = false }: { silent?: boolean } = {},
): Promise<void> {
  await execute(
    em,
    sql`select note_for_segments(${organization.id}, ${array(subscriberIds, 'uuid')}, ${silent})`,
  )
}
