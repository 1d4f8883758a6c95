import { type RawBuilder, sql } from 'kysely'

import type { Filter } from '../../../schema/audience.ts'
import type { Campaign, CampaignKind, CampaignSummary } from '../../../schema/campaign.ts'
import type { CampaignStatus, ContentType } from '../../../schema/values.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row, rows } from '../../database.ts'
import { decodeId, encodeId, missing } from '../../ids.ts'
import { readWalk, type Walk } from '../keyset.ts'
import { searchPattern, timestamp, timestampOrNull } from '../text.ts'

/** A campaign or internal email as the database returns it: ids are uuids, times are in the driver's format. */
export type CampaignRow = {
  id: string
  kind: CampaignKind
  name: string
  subject: string
  preview: string | null
  content: unknown
  contentType: ContentType
  senderId: string | null
  senderName: string
  senderEmail: string
  replyTo: string | null
  recipientFilters: Filter[]
  status: CampaignStatus
  /** When it is or was due; null without a schedule. */
  sendAt: string | null
  /** The number of the latest schedule; 0 before the first. */
  scheduleVersion: number
  paused: boolean
  failure: string | null
  automationId: string | null
  stepId: string | null
  /** For an internal email, the `transactional` flag of its step in the draft graph; false for campaigns. */
  transactional: boolean
  createdAt: string
  updatedAt: string
}

type SummaryRow = Omit<
  CampaignRow,
  | 'kind'
  | 'content'
  | 'recipientFilters'
  | 'scheduleVersion'
  | 'failure'
  | 'automationId'
  | 'stepId'
  | 'transactional'
>

const SUMMARY = sql`campaign.id, campaign.name, campaign.subject, campaign.preview,
  campaign.content_type as "contentType", sender.id as "senderId", sender.name as "senderName",
  sender.email as "senderEmail", campaign.reply_to as "replyTo", campaign.status,
  campaign.send_at as "sendAt", campaign.paused, campaign.created_at as "createdAt", campaign.updated_at as "updatedAt"`
const JOINS = sql`left join sender
  on sender.organization_id = campaign.organization_id and sender.id = campaign.sender_id`

/** Filters a list of campaigns. Without a status, archived campaigns are left out. */
type CampaignQuery = { status?: CampaignStatus | undefined; query?: string | undefined }

/** Returns one page of the broadcasts, newest first. Internal emails of workflows are not included. */
export async function listCampaigns(
  { em, organization }: Call,
  { limit, page, ...query }: CampaignQuery & { limit: number; page: number },
): Promise<{
  campaigns: CampaignSummary[]
  page: number
  pageSize: number
  total: number
  hasMore: boolean
}> {
  const matching = broadcasts(organization.id, query)
  const counted = await row<{ total: number }>(
    em,
    sql`select count(*)::int as total from campaign where ${matching}`,
  )
  const found = await rows<SummaryRow>(
    em,
    sql`select ${SUMMARY} from campaign ${JOINS} where ${matching}
      order by campaign.id desc limit ${limit} offset ${(page - 1) * limit}`,
  )
  const total = counted?.total ?? 0
  return { campaigns: found.map(summarized), page, pageSize: limit, total, hasMore: page * limit < total }
}

/** Lists the same campaigns by keyset, in both directions. */
export async function browseCampaigns(
  { em, organization }: Call,
  { status, query, ...asked }: CampaignQuery & Walk,
): Promise<{ campaigns: CampaignSummary[]; hasMore: boolean }> {
  const walk = readWalk('cmp', asked)
  const found = await rows<SummaryRow>(
    em,
    sql`select ${SUMMARY} from campaign ${JOINS} where ${broadcasts(organization.id, { status, query })}
      ${walk.part(sql`campaign.id`)}`,
  )
  const { page, hasMore } = walk.page(found)
  return { campaigns: page.map(summarized), hasMore }
}

function broadcasts(organizationId: string, { status, query }: CampaignQuery): RawBuilder<boolean> {
  const pattern = searchPattern(query)
  return sql<boolean>`campaign.organization_id = ${organizationId} and campaign.kind = 'BROADCAST'
    and ${status === undefined ? sql`campaign.status <> 'ARCHIVED'` : sql`campaign.status = ${status}`}
    and (${pattern}::text is null or campaign.name ilike ${pattern} or campaign.subject ilike ${pattern})`
}

/** Returns a campaign or a workflow's internal email in full. */
export async function getCampaign(call: Call, campaignId: string): Promise<Campaign> {
  const found = await findCampaign(call, campaignId)
  const { kind, content, recipientFilters, failure, automationId, stepId } = found
  return {
    ...summarized(found),
    kind,
    content,
    recipientFilters,
    failure,
    workflowId: automationId === null ? null : encodeId('wf', automationId),
    stepId,
  }
}

/** Returns a campaign. Throws `NOT_FOUND` when there is none. `lock` locks its row until the end of the transaction. */
export async function findCampaign(
  { em, organization }: Pick<Call, 'em' | 'organization'>,
  campaignId: string,
  { lock = false }: { lock?: boolean } = {},
): Promise<CampaignRow> {
  const found = await row<CampaignRow>(
    em,
    sql`select ${SUMMARY}, campaign.kind, campaign.content, campaign.recipient_filters as "recipientFilters",
        campaign.schedule_version as "scheduleVersion", campaign.failure,
        campaign.automation_id as "automationId", campaign.step_id as "stepId",
        coalesce((select (step -> 'config' ->> 'transactional')::boolean
          from automation, jsonb_array_elements(automation.draft -> 'steps') step
          where automation.organization_id = campaign.organization_id and automation.id = campaign.automation_id
            and step ->> 'id' = campaign.step_id limit 1), false) as transactional
      from campaign ${JOINS}
      where campaign.organization_id = ${organization.id} and campaign.id = ${decodeId('cmp', campaignId)}
      ${lock ? sql`for update of campaign` : sql``}`,
  )
  return found ?? missing('cmp', campaignId)
}

/** Returns the name and id of a campaign for error messages and summaries. */
export function titleOf({ id, name }: Pick<CampaignRow, 'id' | 'name'>): string {
  return `"${name}" (${encodeId('cmp', id)})`
}

function summarized(found: SummaryRow): CampaignSummary {
  const { name, subject, preview, contentType, replyTo, status, senderName, senderEmail, sendAt, paused } =
    found
  const senderId = found.senderId === null ? null : encodeId('snd', found.senderId)
  return {
    id: encodeId('cmp', found.id),
    name,
    subject,
    preview,
    contentType,
    senderId,
    sender: senderId === null ? null : { id: senderId, name: senderName, email: senderEmail },
    replyTo,
    status,
    scheduledAt: timestampOrNull(sendAt),
    paused,
    createdAt: timestamp(found.createdAt),
    updatedAt: timestamp(found.updatedAt),
  }
}
