import { type RawBuilder, sql } from 'kysely'

import type { Filter } from '../../schema/audience.ts'
import { encodeId } from '../../src/ids.ts'
import type { AudienceData } from './audience-data.ts'

/** A query in the filter language, and the equivalent handwritten condition on `subscriber s`. */
export type Comparison = { name: string; filters: Filter[]; byHand: RawBuilder<unknown> }

const MONTH = { amount: 30, unit: 'DAYS' } as const

/** Returns the twelve queries of segment-1M. */
export function comparisons(
  organizationId: string,
  timezone: string,
  { campaignId, segmentId }: AudienceData,
): Comparison[] {
  const own = sql`${organizationId}`
  const tagged = (name: string) => sql`exists (select from subscriber_tag st where st.organization_id = ${own}
    and st.subscriber_id = s.id and st.tag_id = (select id from tag where organization_id = ${own} and name_key = ${name}))`
  const monthAgo = sql`((now() at time zone ${timezone} - interval '30 days') at time zone ${timezone})`
  return [
    {
      name: 'tag',
      filters: [{ field: 'tags', operator: 'has_any', value: ['tag-20'] }],
      byHand: tagged('tag-20'),
    },
    {
      name: 'two tags',
      filters: [{ field: 'tags', operator: 'has_all', value: ['tag-7', 'tag-20'] }],
      byHand: sql`${tagged('tag-7')} and ${tagged('tag-20')}`,
    },
    {
      name: 'not a tag',
      filters: [{ field: 'tags', operator: 'has_none', value: ['tag-2'] }],
      byHand: sql`not ${tagged('tag-2')}`,
    },
    {
      name: 'field equals',
      filters: [{ field: 'customFields.plan', operator: 'equals', value: 'pro' }],
      byHand: sql`s.fields @> '{"plan": "pro"}'`,
    },
    {
      name: 'number above',
      filters: [{ field: 'customFields.seats', operator: 'gt', value: 990 }],
      byHand: sql`(s.fields->'seats')::numeric > 990`,
    },
    {
      name: 'email contains',
      filters: [{ field: 'email', operator: 'contains', value: 'son-4242' }],
      byHand: sql`s.email_key like '%son-4242%'`,
    },
    {
      name: 'email domain',
      filters: [{ field: 'email.domain', operator: 'equals', value: 'company17.example' }],
      byHand: sql`s.email_key like '%@company17.example'`,
    },
    {
      name: 'created within',
      filters: [{ field: 'createdAt', operator: 'within_last', value: MONTH }],
      byHand: sql`s.created_at >= (select ${monthAgo}) and s.created_at <= now()`,
    },
    {
      name: 'opened often',
      filters: [{ field: 'openCount', operator: 'gte', value: 10 }],
      byHand: sql`exists (select from subscriber_stat st where st.organization_id = ${own}
        and st.subscriber_id = s.id and st.open_count >= 10)`,
    },
    {
      name: 'opened twice in 30 days',
      filters: [
        {
          field: 'event',
          operator: 'performed',
          event: 'EMAIL_OPENED',
          count: { operator: 'gte', value: 2 },
          within: MONTH,
        },
      ],
      byHand: sql`s.id in (select e.subscriber_id from subscriber_event e where e.organization_id = ${own}
        and e.type = 'EMAIL_OPENED' and e.id >= id_floor(${monthAgo} - interval '1 hour')
        and e.created_at >= (select ${monthAgo}) group by e.subscriber_id having count(*) >= 2)`,
    },
    {
      name: 'campaign not opened',
      filters: [{ field: 'campaign', operator: 'not_opened', value: encodeId('cmp', campaignId) }],
      byHand: sql`not exists (select from message m where m.organization_id = ${own}
        and m.campaign_id = ${campaignId} and m.subscriber_id = s.id and m.opened_at is not null)`,
    },
    {
      name: 'segment, any, not',
      filters: [
        {
          any: [
            { field: 'segment', operator: 'has_any', value: [encodeId('seg', segmentId)] },
            {
              all: [
                { field: 'tags', operator: 'has_any', value: ['tag-33'] },
                { field: 'country', operator: 'equals', value: 'FR' },
              ],
            },
          ],
        },
        { not: { field: 'status', operator: 'in', value: ['BOUNCED', 'COMPLAINED', 'UNSUBSCRIBED'] } },
      ],
      byHand: sql`((s.fields @> '{"plan": "pro"}' and ${tagged('tag-20')}) or (${tagged('tag-33')} and s.country = 'FR'))
        and s.status not in ('BOUNCED', 'COMPLAINED', 'UNSUBSCRIBED')`,
    },
  ]
}
