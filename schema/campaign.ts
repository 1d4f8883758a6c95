import Type, { type Static } from 'typebox'

import { Filters } from './audience.ts'
import { closed, nullable, oneOf } from './define.ts'
import { CAMPAIGN_STATUSES, CONTENT_TYPES } from './values.ts'

/** BROADCAST is sent to an audience; WORKFLOW is the internal email of an EMAIL step. */
export const CAMPAIGN_KINDS = ['BROADCAST', 'WORKFLOW'] as const
export type CampaignKind = (typeof CAMPAIGN_KINDS)[number]

/** What made a history entry: the editor by itself, somebody, or a program that writes for somebody. */
export const HISTORY_SOURCES = ['autosave', 'manual', 'ai'] as const
export type HistorySource = (typeof HISTORY_SOURCES)[number]

/** What render_campaign gives back. */
export const RENDER_FORMATS = ['html', 'text', 'both'] as const
export type RenderFormat = (typeof RENDER_FORMATS)[number]

/** The from-address a campaign names, as far as a reader of the campaign needs it. */
export const CampaignSender = closed({ id: Type.String(), name: Type.String(), email: Type.String() })

/** Bounds of a campaign's lines, in characters; a line of email has at most 998 (RFC 5322, 2.1.1). */
export const CAMPAIGN_LIMITS = { name: 200, line: 998 } as const

const summary = {
  id: Type.String(),
  name: Type.String(),
  subject: Type.String(),
  preview: nullable(Type.String()),
  contentType: oneOf(CONTENT_TYPES),
  senderId: nullable(Type.String()),
  sender: nullable(CampaignSender),
  replyTo: nullable(Type.String()),
  status: oneOf(CAMPAIGN_STATUSES),
  createdAt: Type.String(),
  updatedAt: Type.String(),
}

/** A campaign in a list: everything but what can be long. */
export const CampaignSummary = closed(summary)
export type CampaignSummary = Static<typeof CampaignSummary>

/** A campaign on the wire (contract, "Campaign"); `workflowId` and `stepId` say whose internal email it is. */
export const Campaign = closed({
  ...summary,
  kind: oneOf(CAMPAIGN_KINDS),
  content: Type.Unknown({ description: 'Markdown text, or the rich-text document.' }),
  recipientFilters: Filters,
  workflowId: nullable(Type.String()),
  stepId: nullable(Type.String()),
})
export type Campaign = Static<typeof Campaign>

const entry = {
  id: Type.String(),
  savedAt: Type.String(),
  source: oneOf(HISTORY_SOURCES),
  subject: Type.String(),
  preview: nullable(Type.String()),
  contentType: oneOf(CONTENT_TYPES),
  restoredFrom: nullable(
    Type.String({ description: 'The entry that was put back, where it was a restoration.' }),
  ),
}

/** A moment of a campaign in a list, without what can be long. */
export const HistorySummary = closed(entry)
export type HistorySummary = Static<typeof HistorySummary>

/** What a campaign said at a moment (contract, "Campaign history entry"). */
export const HistoryEntry = closed({ ...entry, content: Campaign.properties.content })
export type HistoryEntry = Static<typeof HistoryEntry>

/** Something an author should know about an email; `code` is for programs. */
export const RenderWarning = closed({ code: Type.String(), message: Type.String() })
export type RenderWarning = Static<typeof RenderWarning>
