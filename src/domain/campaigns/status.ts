import { sql } from 'kysely'

import type { Campaign } from '../../../schema/campaign.ts'
import type { CampaignStatus } from '../../../schema/values.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call, ConfirmationSummary } from '../../catalogue/tool.ts'
import { execute } from '../../database.ts'
import { lockSegments } from '../segments/lock.ts'
import { type CampaignRow, findCampaign, getCampaign, titleOf } from './records.ts'

/** What can be done to a campaign only in some of its states. */
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

/** The state each action leads to (contract, "Campaign" transitions; decisions, section 5); what is absent is refused. */
const CAMPAIGN_MOVES: Readonly<
  Record<CampaignStatus, Readonly<Partial<Record<CampaignAction, CampaignStatus>>>>
> = {
  DRAFT: {
    edit: 'DRAFT',
    setAudience: 'DRAFT',
    archive: 'ARCHIVED',
    schedule: 'SCHEDULED',
    // It is gone, whatever its state is called.
    delete: 'DRAFT',
  },
  // It moves on to SENDING by itself when it is due, and from there to SENT or FAILED; see begin.ts and deliver.ts.
  SCHEDULED: { cancelSchedule: 'DRAFT' },
  SENDING: { pause: 'SENDING', resume: 'SENDING' },
  SENT: {},
  ARCHIVED: { unarchive: 'DRAFT', delete: 'ARCHIVED' },
  FAILED: {},
}

/** An internal email follows its workflow, which is what is published and archived. */
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

/** The state an action leads to, or WRONG_STATE saying which state it needs. */
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

/** Hides a draft from the list, or makes an archived campaign a draft again. */
export async function moveCampaign(
  call: Call,
  campaignId: string,
  action: 'archive' | 'unarchive',
): Promise<Campaign> {
  // Whether it uses its segments follows its state, so nobody may be deleting one meanwhile.
  await lockSegments(call)
  const campaign = await findCampaign(call, campaignId, { lock: true })
  await execute(
    call.em,
    sql`update campaign set status = ${nextStatus(campaign, action)}
      where organization_id = ${call.organization.id} and id = ${campaign.id}`,
  )
  return await getCampaign(call, campaignId)
}

/** What archiving does, or why it cannot be. */
export async function summarizeArchival(call: Call, campaignId: string): Promise<ConfirmationSummary> {
  const campaign = await findCampaign(call, campaignId)
  nextStatus(campaign, 'archive')
  return {
    action: 'archive_campaign',
    target: `the campaign ${titleOf(campaign)}`,
    effects: ['It leaves the list of campaigns and cannot be edited; unarchive_campaign brings it back.'],
    warnings: [],
  }
}
