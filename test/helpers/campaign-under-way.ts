import { sql } from 'kysely'

import { array, type EntityManager, execute } from '../../src/database.ts'
import { newId } from '../../src/ids.ts'

/** The sender address, the recipients (subscriber uuids) and the content in Markdown. */
type UnderWay = { from: string; people: readonly string[]; content?: string }

/** Creates a campaign that is being sent and whose emails no sender has claimed yet. */
export async function campaignUnderWay(
  em: EntityManager,
  organizationId: string,
  { from, people, content = 'Hi' }: UnderWay,
): Promise<{ campaignId: string; messageIds: string[] }> {
  const campaignId = newId()
  const messageIds = people.map(() => newId())
  await execute(
    em,
    sql`with campaign as (insert into campaign (id, organization_id, kind, status, schedule_version)
        values (${campaignId}, ${organizationId}, 'BROADCAST', 'SENDING', 1) returning id, organization_id
      ), send as (
        insert into campaign_send (id, organization_id, campaign_id, number, subject, content, content_type, sender_name,
          sender_email, recipient_filters, audience_frozen, total, targets)
        select new_id(), organization_id, id, 1, 'News', ${JSON.stringify(content)}::jsonb, 'MARKDOWN', 'News', ${from},
          '[]', true, ${people.length}, '{https://shop.example/a}'
        from campaign returning organization_id, campaign_id
      )
      insert into campaign_recipient (organization_id, campaign_id, subscriber_id, message_id)
      select organization_id, campaign_id, given.person, given.email
      from send, unnest(${array(people, 'uuid')}, ${array(messageIds, 'uuid')}) as given (person, email)`,
  )
  return { campaignId, messageIds }
}
