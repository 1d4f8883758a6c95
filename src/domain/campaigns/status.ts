import { sql } from 'kysely'

import type { Campaign } from '../../../schema/campaign.ts'
import type { CampaignStatus } from '../../../schema/values.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call, Impact } from '../../catalogue/tool.ts'
import { execute } from '../../database.ts'
import { lockSegments } from '../segments/lock.ts'
import { type CampaignRow, findCampaign, getCampaign, titleOf } from './records.ts'

/** Actions that are allowed only in some statuses. */
export type CampaignAction =
  | 'edit'
  | 'setAudience'
  | 'archive'
  | 'unarchive'
  | 'schedule'
  | 'cancelSchedule'
  | 'pause'
  | 'resume'
  | 'delete'

/** The status each action leads to (contract, "Campaign" transitions; decisions, section 5); others are refused. */
const CAMPAIGN_MOVES: Readonly<
  Record<CampaignStatus, Readonly<Partial<Record<CampaignAction, CampaignStatus>>>>
> = {
  DRAFT: {
    edit: 'DRAFT',
    setAudience: 'DRAFT',
    archive: 'ARCHIVED',
    schedule: 'SCHEDULED',
    // The row is deleted, so this status is never stored.
    delete: 'DRAFT',
  },
  // A due campaign becomes SENDING, and then SENT or FAILED, without an action; see begin.ts and deliver.ts.
  SCHEDULED: { cancelSchedule: 'DRAFT' },
  SENDING: { pause: 'SENDING', resume: 'SENDING' },
  SENT: {},
  ARCHIVED: { unarchive: 'DRAFT', delete: 'ARCHIVED' },
  FAILED: {},
}

/** Internal emails are published and archived with their workflow, so only editing applies to them. */
const OF_INTERNAL_EMAILS: ReadonlySet<CampaignAction> = new Set(['edit'])

const WORDS: Readonly<Record<CampaignAction, string>> = {
  edit: 'edited',
  setAudience: 'given another audience',
  archive: 'archived',
  unarchive: 'unarchived',
  schedule: 'scheduled',
  cancelSchedule: 'taken off its schedule',
  pause: 'paused',
  resume: 'resumed',
  delete: 'deleted',
}

const REPAIRS: Readonly<Record<CampaignStatus, string>> = {
  DRAFT: 'get_campaign shows its state',
  SCHEDULED: 'cancel_campaign_schedule makes it a draft again',
  SENDING: 'pause_campaign holds it, and duplicate_campaign makes a draft of it',
  SENT: 'duplicate_campaign makes a draft of it',
  ARCHIVED: 'unarchive_campaign makes it a draft again',
  FAILED: 'duplicate_campaign makes a draft of it',
}

/** Returns the status an action leads to. Throws `WRONG_STATE` with the statuses that allow the action. */
export function nextStatus(campaign: CampaignRow, action: CampaignAction): CampaignStatus {
  const { kind, status } = campaign
  if (kind === 'WORKFLOW' && !OF_INTERNAL_EMAILS.has(action)) {
    throw new Failure(
      'WRONG_STATE',
      `${titleOf(campaign)} is the internal email of a workflow step and cannot be ${WORDS[action]}; change the workflow, or copy the email to a campaign with duplicate_campaign.`,
      { details: { kind } },
    )
  }
  const next = CAMPAIGN_MOVES[status][action]
  if (next !== undefined) return next
  const allowed = Object.entries(CAMPAIGN_MOVES).flatMap(([from, moves]) => (action in moves ? [from] : []))
  throw new Failure(
    'WRONG_STATE',
    `The campaign ${titleOf(campaign)} is ${status} and cannot be ${WORDS[action]}, which needs ${allowed.join(' or ')}; ${REPAIRS[status]}.`,
    { details: { status, allowed } },
  )
}

/** Archives a draft, or makes an archived campaign a draft again. */
export async function moveCampaign(
  call: Call,
  campaignId: string,
  action: 'archive' | 'unarchive',
): Promise<Campaign> {
  // An archived campaign does not use its segments, so none may be deleted while the status changes.
  await lockSegments(call)
  const campaign = await findCampaign(call, campaignId, { lock: true })
  await execute(
    call.em,
    sql`update campaign set status = ${nextStatus(campaign, action)}
      where organization_id = ${call.organization.id} and id = ${campaign.id}`,
  )
  return await getCampaign(call, campaignId)
}

/** Summarizes what archiving does. Throws when the campaign cannot be archived. */
export async function summarizeArchival(call: Call, campaignId: string): Promise<Impact> {
  const campaign = await findCampaign(call, campaignId)
  nextStatus(campaign, 'archive')
  return {
    target: `the campaign ${titleOf(campaign)}`,
    effects: ['It leaves the list of campaigns and cannot be edited; unarchive_campaign brings it back.'],
    warnings: [],
  }
}
