import { sql } from 'kysely'

import { execute, json } from '../database.ts'
import { newId } from '../ids.ts'
import type { Call } from './tool.ts'

/**
 * Records an audit entry: who did what to which record. `data` must contain only the personal data that accountability
 * needs.
 */
export async function audit(
  call: Call,
  action: string,
  target: string,
  data: Record<string, unknown>,
): Promise<void> {
  await execute(
    call.em,
    sql`insert into audit_entry (id, organization_id, actor, action, target, data)
      values (${newId()}, ${call.organization.id}, ${call.actor.id}, ${action}, ${target}, ${json(data)})`,
  )
}
