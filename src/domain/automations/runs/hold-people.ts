import { sql } from 'kysely'

import type { Call } from '../../../catalogue/tool.ts'
import { array, execute } from '../../../database.ts'

/**
 * Locks the subscribers of these runs, as events do, so that none of the runs moves on before the transaction ends.
 * What was read of the runs before must be read again.
 */
export async function holdPeople({ em, organization }: Call, runIds: readonly string[]): Promise<void> {
  await execute(
    em,
    sql`select id from subscriber where organization_id = ${organization.id} and id in (select subscriber_id
      from automation_run where organization_id = ${organization.id} and id = any(${array(runIds, 'uuid')}))
      order by id for share`,
  )
}
