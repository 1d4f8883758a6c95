import { sql } from 'kysely'

import type { Call } from '../../../catalogue/tool.ts'
import { array, execute, json } from '../../../database.ts'
import { newId } from '../../../ids.ts'
import { historySource } from '../../campaigns/history.ts'
import type { EmailPlan } from './internal-emails.ts'

/** Writes the planned emails in set-based statements, and deletes those that no step and no version uses. */
export async function writeEmails(
  call: Call,
  automationId: string,
  plans: readonly EmailPlan[],
): Promise<void> {
  const fresh = plans.filter(({ isNew }) => isNew)
  const known = plans.filter(({ isNew }) => !isNew)
  if (fresh.length > 0) await insertEmails(call, automationId, fresh)
  if (known.length > 0) await updateEmails(call, automationId, known)
  await removeUnused(call, automationId, plans)
}

const COLUMNS = sql`input (id uuid, "historyId" uuid, "sourceId" uuid, "stepId" text, name text, replaces boolean,
  subject text, preview text, content jsonb, "contentType" text, "senderId" uuid, "replyTo" text)`

function inputOf(plans: readonly EmailPlan[]) {
  return sql`jsonb_to_recordset(${json(plans.map((plan) => ({ ...plan, historyId: newId() })))}) as ${COLUMNS}`
}

async function insertEmails(
  { em, organization, actor }: Call,
  automationId: string,
  plans: readonly EmailPlan[],
): Promise<void> {
  await execute(
    em,
    sql`with input as materialized (select * from ${inputOf(plans)}), made as (
        insert into campaign (id, organization_id, kind, automation_id, step_id, name, subject, preview, content,
          content_type, sender_id, reply_to)
        select input.id, ${organization.id}, 'WORKFLOW', ${automationId}, input."stepId", input.name,
          coalesce(input.subject, source.subject, ''), nullif(coalesce(input.preview, source.preview), ''),
          coalesce(input.content, source.content, '""'),
          coalesce(input."contentType", source.content_type, 'MARKDOWN'),
          coalesce(input."senderId", source.sender_id), coalesce(input."replyTo", source.reply_to)
        from input left join campaign source
          on source.organization_id = ${organization.id} and source.id = input."sourceId"
        order by input.id
        returning id, subject, preview, content, content_type)
      insert into campaign_history (id, organization_id, campaign_id, source, subject, preview, content, content_type)
      select input."historyId", ${organization.id}, made.id, ${historySource(actor)}, made.subject, made.preview, made.content,
        made.content_type
      from made join input on input.id = made.id order by made.id`,
  )
}

/** Updates only emails that differ, and writes a history entry when the subject, preview or content changes. */
async function updateEmails(
  { em, organization, actor }: Call,
  automationId: string,
  plans: readonly EmailPlan[],
): Promise<void> {
  await execute(
    em,
    sql`with wanted as materialized (
        select campaign.id, input."historyId", input."stepId", input.name,
          coalesce(input.subject, case when input.replaces then '' else campaign.subject end) as subject,
          nullif(coalesce(input.preview, case when input.replaces then '' else campaign.preview end), '') as preview,
          coalesce(input.content, case when input.replaces then '""'::jsonb else campaign.content end) as content,
          coalesce(input."contentType", case when input.replaces then 'MARKDOWN' else campaign.content_type end) as content_type,
          coalesce(input."senderId", case when input.replaces then null else campaign.sender_id end) as sender_id,
          coalesce(input."replyTo", case when input.replaces then null else campaign.reply_to end) as reply_to,
          (campaign.subject, campaign.preview, campaign.content) as before
        from ${inputOf(plans)} join campaign on campaign.organization_id = ${organization.id}
          and campaign.automation_id = ${automationId} and campaign.id = input.id
      ), changed as (
        update campaign set step_id = wanted."stepId", name = wanted.name, subject = wanted.subject,
          preview = wanted.preview, content = wanted.content, content_type = wanted.content_type,
          sender_id = wanted.sender_id, reply_to = wanted.reply_to
        from wanted where campaign.organization_id = ${organization.id} and campaign.id = wanted.id
          and (campaign.step_id, campaign.name, campaign.subject, campaign.preview, campaign.content,
            campaign.content_type, campaign.sender_id, campaign.reply_to)
          is distinct from (wanted."stepId", wanted.name, wanted.subject, wanted.preview, wanted.content,
            wanted.content_type, wanted.sender_id, wanted.reply_to))
      insert into campaign_history (id, organization_id, campaign_id, source, subject, preview, content, content_type)
      select "historyId", ${organization.id}, id, ${historySource(actor)}, subject, preview, content, content_type from wanted
      where (subject, preview, content) is distinct from before order by id`,
  )
}

/** Deletes emails that were never published and whose step is gone. Emails of published versions stay readable. */
async function removeUnused(
  { em, organization }: Call,
  automationId: string,
  plans: readonly EmailPlan[],
): Promise<void> {
  const kept = plans.map(({ id }) => id)
  await execute(
    em,
    sql`delete from campaign where organization_id = ${organization.id} and automation_id = ${automationId}
      and id <> all(${array(kept, 'uuid')})
      and not exists (
        select from automation_version version, jsonb_each(version.definition -> 'emails') email
        where version.organization_id = ${organization.id} and version.automation_id = ${automationId}
          and email.value ->> 'campaignId' = campaign.id::text)`,
  )
}
