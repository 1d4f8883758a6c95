import { type RawBuilder, sql } from 'kysely'

import type { Email, EmailMoment, EmailSource, EmailSummary } from '../../../schema/email.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row, rows } from '../../database.ts'
import { decodeId, encodeId, missing } from '../../ids.ts'
import { readWalk, type Walk } from '../keyset.ts'
import { timestamp } from '../text.ts'
import type { MessageSource } from './messages.ts'
import { renderAgain } from './render.ts'
import { lastEvent } from './status.ts'

type SummaryRow = {
  id: string
  fromName: string | null
  fromEmail: string
  recipient: string
  replyTo: string | null
  subject: string | null
  status: Parameters<typeof lastEvent>[0]['status']
  openedAt: string | null
  clickedAt: string | null
  createdAt: string
}

/** An email with its stored source and the current data of its recipient. */
type EmailRow = SummaryRow & {
  marketing: boolean
  isTest: boolean
  subscriberName: string | null
  phone: string | null
  fields: Record<string, unknown> | null
  source: Partial<MessageSource> | null
}

/** The subject of `message m` as it was sent, or as it was written if the email is not sent yet. */
export const SUBJECT = sql<string | null>`coalesce(m.subject,
  (select content.source ->> 'subject' from message_content content
    where content.organization_id = m.organization_id and content.message_id = m.id),
  (select send.subject from campaign_send send
    where m.class = 'CAMPAIGN' and send.organization_id = m.organization_id and send.id = m.version_id),
  (select version.definition #>> array['emails', m.step_id, 'subject'] from automation_version version
    where m.step_id is not null and version.organization_id = m.organization_id and version.id = m.version_id))`

const SUMMARY = sql`m.id, m.from_name as "fromName", m.from_email as "fromEmail", m.recipient, m.reply_to as "replyTo",
  ${SUBJECT} as subject, m.status, m.opened_at as "openedAt", m.clicked_at as "clickedAt", m.created_at as "createdAt"`

/** The limit of moments shown for one email. */
const MOST_MOMENTS = 500

/** Lists transactional emails without bodies, newest first. Other emails are listed per subscriber. */
export async function browseEmails(
  { em, organization }: Call,
  asked: Walk,
): Promise<{ emails: EmailSummary[]; hasMore: boolean }> {
  const walk = readWalk('eml', asked)
  const found = await rows<SummaryRow>(
    em,
    sql`select ${SUMMARY} from message m where m.organization_id = ${organization.id}
        and m.class = 'TRANSACTIONAL' ${walk.part(sql`m.id`)}`,
  )
  const { page, hasMore } = walk.page(found)
  return { emails: page.map(summarized), hasMore }
}

/** Returns one email of any class with its events, and with its content while that is stored. */
export async function getEmail(call: Call, emailId: string): Promise<Email> {
  const { em, organization } = call
  const found = await row<EmailRow>(
    em,
    sql`select ${SUMMARY}, m.marketing, m.class = 'TEST' as "isTest", s.name as "subscriberName", s.phone, s.fields,
        source.source
      from message m left join subscriber s on s.organization_id = m.organization_id and s.id = m.subscriber_id
      cross join lateral (select ${SOURCE} as source) as source
      where m.organization_id = ${organization.id} and m.id = ${decodeId('eml', emailId)}`,
  )
  if (!found) missing('eml', emailId)
  const { source } = found
  return {
    ...summarized(found),
    ...(source === null ? { html: null, text: null } : renderAgain(call, { ...found, source })),
    source: source && presentSource(source),
    events: await readMoments(call, found.id),
  }
}

/** The source of an email: its own, that of its campaign send, or that of its step in the workflow version. */
const SOURCE = sql`coalesce(
  (select source from message_content content
    where content.organization_id = m.organization_id and content.message_id = m.id),
  (select jsonb_build_object('subject', send.subject, 'preview', send.preview, 'content', send.content,
      'contentType', send.content_type)
    from campaign_send send where m.class = 'CAMPAIGN' and send.organization_id = m.organization_id
      and send.id = m.version_id),
  (select version.definition -> 'emails' -> m.step_id from automation_version version
    where m.step_id is not null and version.organization_id = m.organization_id and version.id = m.version_id))`

function summarized(found: SummaryRow): EmailSummary {
  const { fromName, fromEmail } = found
  return {
    id: encodeId('eml', found.id),
    from: fromName === null ? fromEmail : `${fromName} <${fromEmail}>`,
    to: [found.recipient],
    reply_to: found.replyTo,
    subject: found.subject,
    created_at: timestamp(found.createdAt),
    last_event: lastEvent(found),
  }
}

function presentSource({ contentType, content, text, preview }: Partial<MessageSource>): EmailSource {
  return {
    // The API calls a MAILY document TIPTAP.
    content_type: contentType === 'MAILY' ? 'TIPTAP' : (contentType ?? 'MARKDOWN'),
    content: content ?? null,
    text: text ?? null,
    preview: preview ?? null,
  }
}

type MomentRow = Omit<EmailMoment, 'raw' | 'created_at'> & { at: string; raw: Buffer | null }

async function readMoments({ em, organization }: Call, id: string): Promise<EmailMoment[]> {
  const found = await rows<MomentRow>(
    em,
    sql`with m as (select * from message where organization_id = ${organization.id} and id = ${id})
      select event, at, detail, url, machine, raw from (${MOMENTS}) as moment order by at, position limit ${MOST_MOMENTS}`,
  )
  return found.map(({ at, raw, ...moment }) => ({
    ...moment,
    created_at: timestamp(at),
    raw: raw && raw.toString('utf8').toWellFormed(),
  }))
}

const REPORT_EVENTS = sql`case report.kind
  when 'BOUNCE' then case report.category when 'SENDER_REFUSED' then 'failed' else 'bounced' end when 'COMPLAINT' then 'complained'
  when 'DELAY' then 'delivery_delayed' when 'REPLY' then 'replied' else 'auto_replied' end`

const FAILURE_EVENTS = sql`case m.status when 'SKIPPED' then 'suppressed' when 'BOUNCED' then 'bounced' else 'failed' end`

/** The moments of an email: its own times, reports about it, delays before it was sent, and settled visits. */
const MOMENTS: RawBuilder<unknown> = sql`
  select 'queued' as event, m.created_at as at, 0 as position, null as detail, null as url, null::boolean as machine,
    null::bytea as raw from m
  union all
  select 'delivery_delayed', told.created_at, 1, told.data ->> 'response', null, null, null
  from m join subscriber_event told on told.organization_id = m.organization_id
    and told.subscriber_id = m.subscriber_id and told.type = 'EMAIL_DELIVERY_DELAYED'
    and told.id > id_floor(m.created_at - interval '1 minute') and told.data ->> 'emailId' = type_id('eml', m.id)
    and told.created_at < coalesce(m.sent_at, 'infinity')
  union all
  select 'sent', m.sent_at, 2, case when m.failed_at is null then m.response end, null, null, null from m where m.sent_at is not null
  union all
  select 'delivered', m.delivered_at, 3, null, null, null, null from m where m.delivered_at is not null
  union all
  select ${FAILURE_EVENTS}, m.failed_at, 3, coalesce(m.response, m.reason), null, null, null from m
  where m.failed_at is not null and m.status in ('SKIPPED', 'BOUNCED', 'FAILED') and not exists (
    select from email_report report where report.organization_id = m.organization_id and report.message_id = m.id
      and report.kind = 'BOUNCE')
  union all
  select ${REPORT_EVENTS}, report.created_at, 4, report.diagnostic, null, null, report.raw
  from m join email_report report on report.organization_id = m.organization_id and report.message_id = m.id
  union all
  select case visit.kind when 'OPEN' then 'opened' else 'clicked' end, visit.created_at, 5, null,
    link_target(m.organization_id, m.id, visit.position), not visit.human, null
  from m join tracking_event visit on visit.organization_id = m.organization_id and visit.message_id = m.id`
