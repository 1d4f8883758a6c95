import Type, { type Static } from 'typebox'

import { Filters } from './audience.ts'
import { closed, nullable, oneOf } from './define.ts'
import { SendingStop } from './deliverability.ts'
import { CAMPAIGN_STATUSES, CONTENT_TYPES, EMAIL_LINE } from './values.ts'

/** BROADCAST is sent to an audience; WORKFLOW is the internal email of an EMAIL step. */
const CAMPAIGN_KINDS = ['BROADCAST', 'WORKFLOW'] as const
export type CampaignKind = (typeof CAMPAIGN_KINDS)[number]

/** The origin of a history entry: the editor's autosave, a person, or a program that writes for a person. */
const HISTORY_SOURCES = ['autosave', 'manual', 'ai'] as const
export type HistorySource = (typeof HISTORY_SOURCES)[number]

/** The parts that `render_campaign` can return. */
export const RENDER_FORMATS = ['html', 'text', 'both'] as const
export type RenderFormat = (typeof RENDER_FORMATS)[number]

/** The sender of a campaign, reduced to what readers of the campaign need. */
export const CampaignSender = closed({ id: Type.String(), name: Type.String(), email: Type.String() })

/** Limits of a campaign: `name` and `line` in characters, addresses of one test, images measured in one call. */
export const CAMPAIGN_LIMITS = { name: 200, line: EMAIL_LINE, testEmails: 5, imagesAtOnce: 50 } as const

const summary = {
  id: Type.String(),
  name: Type.String(),
  subject: Type.String(),
  preview: nullable(Type.String({ description: 'The preview text that inboxes show next to the subject.' })),
  contentType: oneOf(CONTENT_TYPES),
  senderId: nullable(Type.String({ description: 'The id of the sender (`snd_…`). Null if none is chosen.' })),
  sender: nullable(CampaignSender),
  replyTo: nullable(
    Type.String({
      description: 'The address that replies go to. Null means the reply address of the sender.',
    }),
  ),
  status: oneOf(CAMPAIGN_STATUSES),
  scheduledAt: nullable(Type.String({ description: 'The time at which sending is or was due to begin.' })),
  paused: Type.Boolean({
    description:
      'Whether sending is paused. While the status is SENDING, nothing is sent until `resume_campaign`.',
  }),
  createdAt: Type.String(),
  updatedAt: Type.String(),
}

/** A campaign in a list, without the members that can be long. */
export const CampaignSummary = closed(summary)
export type CampaignSummary = Static<typeof CampaignSummary>

/**
 * A campaign on the wire (contract, "Campaign"). `workflowId` and `stepId` name the EMAIL step of a WORKFLOW campaign.
 */
export const Campaign = closed({
  ...summary,
  kind: oneOf(CAMPAIGN_KINDS, { description: 'WORKFLOW is the internal email of a workflow step.' }),
  content: Type.Unknown({ description: 'The content: Markdown text or a rich-text document.' }),
  recipientFilters: Filters,
  failure: nullable(Type.String({ description: 'The reason for the status FAILED.' })),
  workflowId: nullable(Type.String({ description: 'The workflow of an internal email (`wf_…`).' })),
  stepId: nullable(Type.String({ description: 'The step of an internal email.' })),
})
export type Campaign = Static<typeof Campaign>

const entry = {
  id: Type.String(),
  savedAt: Type.String(),
  source: oneOf(HISTORY_SOURCES, {
    description: 'The origin of the change: an editor, a person, or a program that writes for a person.',
  }),
  subject: Type.String(),
  preview: nullable(Type.String()),
  contentType: oneOf(CONTENT_TYPES),
  restoredFrom: nullable(
    Type.String({ description: 'The id of the entry that was restored, if this change was a restoration.' }),
  ),
}

/** A history entry in a list, without its content. */
export const HistorySummary = closed(entry)
export type HistorySummary = Static<typeof HistorySummary>

/** The content of a campaign at one point in time (contract, "Campaign history entry"). */
export const HistoryEntry = closed({ ...entry, content: Campaign.properties.content })
export type HistoryEntry = Static<typeof HistoryEntry>

const size = closed({ width: Type.Integer(), height: Type.Integer() })

/** One image of a document and its new size in pixels. `problem` says why the size is not changed. */
export const FittedImage = closed({
  index: Type.Integer({ description: 'The position among the images in document order, starting at 0.' }),
  address: Type.String(),
  before: closed({ width: Type.Unknown(), height: Type.Unknown() }),
  natural: nullable(size),
  fitted: nullable(size),
  changed: Type.Boolean(),
  problem: nullable(Type.String()),
})
export type FittedImage = Static<typeof FittedImage>

/** A problem of an email that its author should know about. `code` is for programs. */
export const RenderWarning = closed({ code: Type.String(), message: Type.String() })
export type RenderWarning = Static<typeof RenderWarning>

/** The progress of a campaign (decisions, section 5). */
export const CampaignProgress = closed({
  status: oneOf(CAMPAIGN_STATUSES),
  paused: Type.Boolean(),
  stop: nullable(SendingStop),
  total: Type.Integer({ description: 'The number of recipients when sending began.' }),
  queued: Type.Integer({ description: 'The number of recipients whose emails have no outcome yet.' }),
  sent: Type.Integer({
    description: 'The number of emails that mail servers accepted, whatever happened to them afterwards.',
  }),
  delivered: Type.Integer(),
  bounced: Type.Integer(),
  complained: Type.Integer(),
  skipped: Type.Record(Type.String(), Type.Integer(), {
    description: 'The number of recipients who were skipped, by reason: UNSUBSCRIBED, SUPPRESSED, …',
  }),
  failed: Type.Integer(),
  ratePerSecond: nullable(Type.Number()),
  etaSeconds: nullable(Type.Integer()),
  startedAt: nullable(Type.String()),
  finishedAt: nullable(Type.String()),
  ambiguousResent: Type.Integer({
    description:
      'The number of emails that were sent a second time, because the sending process was lost before it could record whether the first attempt had succeeded.',
  }),
})
export type CampaignProgress = Static<typeof CampaignProgress>

const visits = { unique: Type.Integer(), total: Type.Integer() }
const Visits = closed({ ...visits, machine: closed(visits) })

/**
 * The results of a campaign (decisions, section 5). `unique` counts emails and `total` counts visits. Visits of
 * machines are counted only under `machine`.
 */
export const CampaignAnalytics = closed({
  recipients: Type.Integer({ description: 'The number of recipients when sending began.' }),
  sent: Type.Integer(),
  delivered: Type.Integer(),
  opens: Visits,
  clicks: Visits,
  links: Type.Array(
    closed({
      position: Type.Integer(),
      url: nullable(
        Type.String({ description: 'The target of the link. Null if it differs between recipients.' }),
      ),
      ...visits,
    }),
  ),
  unsubscribes: Type.Integer(),
  bounces: Type.Record(Type.String(), Type.Integer()),
  complaints: Type.Integer(),
  revenue: Type.Array(closed({ currency: Type.String(), total: Type.Number() }), {
    description: 'Payments within five days after a click, by currency (ISO 4217), in major units.',
  }),
  timeline: Type.Array(
    closed({ hour: Type.String(), sent: Type.Integer(), opens: Type.Integer(), clicks: Type.Integer() }),
  ),
})
export type CampaignAnalytics = Static<typeof CampaignAnalytics>
