import { defineSearchAttributeKey } from '@temporalio/common'

/** What the service and its workflows agree on: names, ids, arguments. Pure; ids are TypeIDs, and nothing personal. */

/** Runs have a queue of their own, so that bulk work in the background never makes them late. */
export type QueueKind = 'runs' | 'background'

/** The queues of one installation; the prefix keeps installations that share a namespace apart. */
export function taskQueue(prefix: string, kind: QueueKind): string {
  return `${prefix}-${kind}`
}

/** The workflow type of one subscriber's way through an automation. */
export const AUTOMATION_RUN = 'AutomationRun'
/** The signal that tells a workflow to look at the database now; it carries nothing, so early, late or twice is the same. */
export const NUDGE = 'nudge'
/** The update that answers when a run has moved past a wait. */
export const FAST_FORWARD = 'fastForward'

/** Two starts of the same entry meet in this id: `run/{wf_…}/{sub_…}/{n}`. */
export function runWorkflowId(automationId: string, subscriberId: string, number: number): string {
  return `run/${automationId}/${subscriberId}/${number}`
}

/** What runs are found by in the Temporal UI and with `temporal workflow list --query`. */
export const SEARCH = {
  organization: defineSearchAttributeKey('OrgId', 'KEYWORD'),
  automation: defineSearchAttributeKey('AutomationId', 'KEYWORD'),
  campaign: defineSearchAttributeKey('CampaignId', 'KEYWORD'),
  subscriber: defineSearchAttributeKey('SubscriberId', 'KEYWORD'),
  step: defineSearchAttributeKey('Step', 'KEYWORD'),
  state: defineSearchAttributeKey('RunState', 'KEYWORD'),
  nextAt: defineSearchAttributeKey('NextAt', 'DATETIME'),
} as const

/** The argument of an AutomationRun. */
export type AutomationRunInput = {
  organizationId: string
  automationId: string
  subscriberId: string
  runId: string
  /** False where the server does not know the search attributes: setting one would fail the run. */
  searchable: boolean
}

/**
 * What a workflow asks the database about a run. `execution` is the first Temporal run id of the chain, `attempt` that
 * of the workflow that asks: a reset keeps the first and changes the second.
 */
export type RunRequest = { organizationId: string; runId: string; execution: string; attempt: string }

/** What a run does next, in words that an operator reads. Times are epoch milliseconds. */
export type NextAction = {
  kind: 'wait' | 'hold' | 'end'
  /** How long until it is worth looking again. */
  waitMs: number
  /** One line for the timer: "pause: waits until 2026-01-02T09:00:00.000Z". */
  label: string
  /** QUEUED, ACTIVE, WAITING, HELD, COMPLETED, CANCELED or FAILED. */
  state: string
  stepId: string | null
  visit: number
  nextAt: number | null
  recentSteps: string[]
  exitReason: string | null
  error: string | null
}

/** The argument of the fast-forward update: which wait to leave, and a request id that repeats of it share. */
export type FastForward = { stepId: string; visit: number; requestId: string }
/** Where the run stood when the update answered. */
export type FastForwarded = { stepId: string | null; visit: number; state: string }
/** What a finished run leaves in its history. */
export type RunResult = { state: string; exitReason: string | null }

/** The database side of a run. */
export type RunActivities = {
  /** Does all that is due in one transaction and says what comes next. */
  advanceRun(request: RunRequest): Promise<NextAction>
  /** Closes the run because an operator canceled its workflow. */
  cancelRun(request: RunRequest): Promise<NextAction>
}

/** The workflow type that applies an uploaded list of subscribers. */
export const SUBSCRIBER_IMPORT = 'SubscriberImport'

/** One workflow for each upload: `import/{imp_…}`. */
export function importWorkflowId(importId: string): string {
  return `import/${importId}`
}

/** The argument of a SubscriberImport. */
export type ImportRequest = { organizationId: string; importId: string }

/** How far an import is, in numbers that an operator reads. */
export type ImportProgress = {
  state: 'RUNNING' | 'COMPLETED' | 'FAILED' | 'CANCELED'
  /** Rows that are dealt with, rejected ones among them. */
  rows: number
  /** An estimate by the bytes that are read; exact at the end. */
  expectedRows: number
  rejected: number
  error: string | null
}

/** What a finished import leaves in its history. */
export type ImportResult = { state: string; rows: number; rejected: number }

/** The database side of an import. */
export type ImportActivities = {
  /** Applies pages of rows for some seconds, each with its checkpoint in one transaction, and says how far it came. */
  applyImport(request: ImportRequest): Promise<ImportProgress>
  /** Closes the import because an operator canceled its workflow. */
  cancelImport(request: ImportRequest): Promise<ImportProgress>
}

/** The workflow type that compares segments that people enter and leave by time alone. */
export const SEGMENT_REFRESH = 'SegmentRefresh'

/** The schedule that starts it; installations that share a namespace have one each. */
export function segmentScheduleId(prefix: string): string {
  return `segments/refresh/${prefix}`
}

/** What a comparison of segments looked at. */
export type SegmentRefreshed = { organizations: number; segments: number }

/** The database side of a SegmentRefresh. */
export type SegmentActivities = {
  /** Notes whoever is not where they belong, page by page; an attempt that follows a crash skips what was done. */
  refreshSegments(): Promise<SegmentRefreshed>
}

/** The workflow type that sends a campaign. */
export const CAMPAIGN_SEND = 'CampaignSend'

/** One workflow for each schedule of a campaign: `campaign/{cmp_…}/{n}`. */
export function campaignWorkflowId(campaignId: string, number: number): string {
  return `campaign/${campaignId}/${number}`
}

/** The argument of a CampaignSend; `number` is that of the schedule. */
export type CampaignSendRequest = { organizationId: string; campaignId: string; number: number }

/** How far a send is, in words and numbers that an operator reads. Times are epoch milliseconds. */
export type CampaignSendProgress = {
  /** What is next: wait until it is due, freeze the audience, deliver; or how it ended. */
  stage: 'SCHEDULED' | 'FREEZING' | 'DELIVERING' | 'SENT' | 'FAILED' | 'CANCELED'
  /** How long until it is worth looking again. */
  waitMs: number
  /** One line for the timer: "due at 2026-01-02T09:00:00.000Z". */
  label: string
  total: number
  /** Recipients with an outcome: sent, skipped, failed. */
  done: number
  perSecond: number | null
  expectedEnd: number | null
  error: string | null
}

/** What a finished send leaves in its history. */
export type CampaignSendResult = { stage: string; total: number; done: number }

/** The database side of a CampaignSend. Each may be repeated at any moment: the rows say what is done. */
export type CampaignActivities = {
  /** Begins the send if it is due, in the statement that a cancellation would meet; freezes what is said. */
  beginCampaign(request: CampaignSendRequest): Promise<CampaignSendProgress>
  /** Writes down who gets it, page by page. */
  freezeAudience(request: CampaignSendRequest): Promise<CampaignSendProgress>
  /** Puts email into the queue ahead of the lane and watches, for some seconds or until every recipient has an outcome. */
  deliverCampaign(request: CampaignSendRequest): Promise<CampaignSendProgress>
  /** Ends the send because an operator canceled its workflow. */
  cancelCampaign(request: CampaignSendRequest): Promise<CampaignSendProgress>
}

/** The workflow type that watches the DNS records of a sending domain. */
export const DOMAIN_VERIFICATION = 'DomainVerification'
/** The update that looks at the records now and answers what it found. */
export const CHECK_NOW = 'checkNow'

/** One workflow for each domain: `domain/{dom_…}`. */
export function domainWorkflowId(domainId: string): string {
  return `domain/${domainId}`
}

/** What a check is about. */
export type DomainCheckRequest = { organizationId: string; domainId: string }

/** How often a domain is looked at: again and again until it is right, then every day, or no more. */
export type DomainPace = 'POLL' | 'DAILY' | 'END'

/** The argument of a DomainVerification; the rest is what a run hands to the next one. */
export type DomainVerificationInput = DomainCheckRequest & { polls?: number; pace?: DomainPace }

/** What a check found, in words that an operator reads. Host names and statuses, no keys. */
export type DomainChecked = {
  status: string
  pace: DomainPace
  /** One line for each record: "VERIFIED DKIM pl1._domainkey.example.com". */
  records: string[]
}

/** What a finished verification leaves in its history. */
export type DomainVerificationResult = { status: string }

/** The database and DNS side of a DomainVerification. */
export type DomainActivities = {
  /** Asks the name servers and stores what they say; repeated, it asks again. */
  checkDomain(request: DomainCheckRequest): Promise<DomainChecked>
}

/** The workflow type that lets many people into an automation. */
export const AUTOMATION_INTAKE = 'AutomationIntake'

/** One workflow for each call that lets people in: `intake/{wf_…}/{uuid}`. */
export function intakeWorkflowId(automationId: string, intakeId: string): string {
  return `intake/${automationId}/${intakeId}`
}

/** The argument of an AutomationIntake. */
export type IntakeRequest = { organizationId: string; automationId: string; intakeId: string }

/** How far an intake is, in words and numbers that an operator reads. */
export type IntakeProgress = {
  /** PAUSED: nobody enters while the automation is paused. */
  state: 'RUNNING' | 'PAUSED' | 'COMPLETED' | 'CANCELED' | 'FAILED'
  /** People who were asked, and how many there were when it began. */
  looked: number
  expected: number
  /** Runs that were made. */
  entered: number
  error: string | null
}

/** The database side of an intake. Each may be repeated at any moment: the row says what is done. */
export type IntakeActivities = {
  /** Lets people in for some seconds, page by page, and says how far it came. */
  continueIntake(request: IntakeRequest): Promise<IntakeProgress>
  /** Ends it because an operator canceled its workflow; who is in stays in. */
  cancelIntake(request: IntakeRequest): Promise<IntakeProgress>
}

/** The workflow type that lets people in by a trigger that time fires. */
export const TRIGGER_FIRING = 'TriggerFiring'

/** What the ids of all schedules of triggers begin with; installations that share a namespace have their own. */
export function triggerSchedulePrefix(prefix: string): string {
  return `trigger/${prefix}/`
}

/** One schedule for each timed trigger of a published automation: `trigger/{prefix}/{wf_…}/{step}`. */
export function triggerScheduleId(prefix: string, automationId: string, stepId: string): string {
  return `${triggerSchedulePrefix(prefix)}${automationId}/${stepId}`
}

/** The argument of a TriggerFiring. */
export type FiringRequest = { organizationId: string; automationId: string; stepId: string }

/** What a firing came to, in words and numbers that an operator reads. */
export type Fired = {
  /** FIRED: people are on their way in. NOTHING: nobody was due. IDLE: the automation takes nobody in. */
  state: 'FIRED' | 'NOTHING' | 'IDLE'
  /** Up to which moment everybody was looked for, ISO 8601. */
  until: string | null
  /** How many were due, and the workflow that lets them in. */
  expected: number
  intake: string | null
  /** When the next moment is, from now: a clock that runs ahead of the database's comes too early. */
  nextMs: number | null
}

/** The database side of a firing: looks for everybody who has become due since the last time, once. */
export type FiringActivities = { fireTrigger(request: FiringRequest): Promise<Fired> }
