import { sql } from 'kysely'

import { array, type EntityManager, execute, row } from '../../database.ts'

/** An email by uuids. */
type EmailKey = { organizationId: string; messageId: string }

/**
 * Writes the rows of emails that a sender has taken as part of a batch, and that somebody asks about before they have
 * their outcome: a reader may be faster than its record, and a sender may be gone. Answers whether there are any more
 * rows now.
 */
export async function writeAwaited(em: EntityManager, emails: readonly EmailKey[]): Promise<boolean> {
  const found = await row<{ isMore: boolean }>(
    em,
    sql`select write_awaited(${array(
      emails.map(({ organizationId }) => organizationId),
      'uuid',
    )}, ${array(
      emails.map(({ messageId }) => messageId),
      'uuid',
    )}) as "isMore"`,
  )
  return found?.isMore ?? false
}

/** The same for all emails to a subscriber. */
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
