import { sql } from 'kysely'

import { column, type EntityManager, execute, row } from '../../database.ts'

/** Identifies an email by its uuids. */
type EmailKey = { organizationId: string; messageId: string }

/**
 * Writes the `message` rows of emails that a sender took as part of a batch and that are needed before their outcome is
 * recorded: a recipient may click before the sender records the email, or the sender may have crashed. Returns whether
 * any row was written.
 */
export async function writeAwaited(em: EntityManager, emails: readonly EmailKey[]): Promise<boolean> {
  const found = await row<{ isMore: boolean }>(
    em,
    sql`select write_awaited(
        ${column(emails, ({ organizationId }) => organizationId, 'uuid')},
        ${column(emails, ({ messageId }) => messageId, 'uuid')}
      ) as "isMore"`,
  )
  return found?.isMore ?? false
}

/** Does the same as `writeAwaited` for all emails to one subscriber. */
export async function writeAwaitedOf(
  em: EntityManager,
  { organizationId, subscriberId }: { organizationId: string; subscriberId: string },
): Promise<void> {
  await execute(
    em,
    sql`select write_recipients(organization_id, batch_id, array[message_id], null, null) from campaign_batch_member
      where organization_id = ${organizationId} and subscriber_id = ${subscriberId} order by batch_id`,
  )
}
