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
    sql`select write_recipients(b.organization_id, b.id, array[r.message_id], null, null) from campaign_batch b
      join campaign_recipient r on r.organization_id = b.organization_id and r.campaign_id = b.campaign_id
        and r.subscriber_id > b.after_id and r.subscriber_id <= b.last_id
      where b.organization_id = ${organizationId} and r.subscriber_id = ${subscriberId} order by b.id`,
  )
}
