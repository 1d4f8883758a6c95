import { sql } from 'kysely'

import { execute, json } from '../database.ts'
import { newId } from '../ids.ts'
import type { Call } from './tool.ts'

/** Writes down who did what to which thing; `data` holds nothing personal that is not needed to account for it. */
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
