import { sql } from 'kysely'

import { type EntityManager, execute } from '../database.ts'
import { IS_OPEN } from './automations/goals/goals.ts'

/**
 * What keeps the database in shape, safe to run by several processes at any time: partitions for the coming months,
 * and the end of what has outlived its use.
 */
export async function keepHouse(em: EntityManager): Promise<void> {
  await execute(em, sql`select ensure_partitions()`)
  await execute(em, sql`delete from confirmation_challenge where expires_at < now() - interval '1 day'`)
  await execute(em, sql`delete from idempotency_record where created_at < now() - interval '24 hours'`)
  await execute(em, sql`delete from automation_webhook_receipt where created_at < now() - interval '1 day'`)
  await execute(em, sql`delete from email_report where created_at < now() - interval '90 days'`)
  // A window that an email opens never begins where the run is over and no email has gone; what is under way goes in a day.
  await execute(
    em,
    sql`delete from goal_watch watch using automation_run run
      where run.organization_id = watch.organization_id and run.id = watch.run_id and (watch.expires_at < now()
        or (watch.opens_at is null and run.ended_at < now() - interval '2 days'
          and not coalesce(${IS_OPEN}, false)))`,
  )
  // What triggers fired; until when each was looked at, their schedules know.
  await execute(
    em,
    sql`delete from automation_intake where step_id is not null and finished_at < now() - interval '90 days'`,
  )
  // Uploads whose process died, and refused rows that had a month to be fetched.
  await execute(
    em,
    sql`delete from subscriber_import where status = 'UPLOADING' and updated_at < now() - interval '1 hour'`,
  )
  await execute(
    em,
    sql`delete from import_rejection refused using subscriber_import finished
      where finished.organization_id = refused.organization_id and finished.id = refused.import_id
        and finished.finished_at < now() - interval '30 days'`,
  )
}
