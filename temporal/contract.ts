import { defineSearchAttributeKey } from '@temporalio/common'

/** The contract between the service and its workflows: names, ids, arguments. Ids are TypeIDs; no personal data. */

/** The task queues. Runs have a queue of their own, so that bulk work in the background does not delay them. */
export type QueueKind = 'runs' | 'background'

/** Returns the name of a task queue. The prefix separates installations that share a namespace. */
export function taskQueue(prefix: string, kind: QueueKind): string {
  return `${prefix}-${kind}`
}

/** The workflow type that drives one subscriber's run of an automation. */
export const AUTOMATION_RUN = 'AutomationRun'
/**
 * The signal that tells a workflow to look at the database now. It has no data, so it may come early, late or twice.
 */
export const NUDGE = 'nudge'
/** The update that makes a run look at the database and answers after that turn. */
export const FAST_FORWARD = 'fastForward'

/** Returns the workflow id of a run, `run/{wf_…}/{sub_…}/{n}`, which makes a repeated start of it harmless. */
export function runWorkflowId(automationId: string, subscriberId: string, number: number): string {
  return `run/${automationId}/${subscriberId}/${number}`
}

/** The search attributes by which the Temporal UI and `temporal workflow list --query` find workflows. */
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
  /** False if the server does not know the search attributes, because setting one would then fail the run. */
  searchable: boolean
}

/**
 * The request of a workflow to advance a run. `execution` is the first Temporal run id of the chain, `attempt` is the
 * current one. A reset keeps the first and changes the second.
 */
export type RunRequest = { organizationId: string; runId: string; execution: string; attempt: string }

/** The next action of a run, with texts for operators. Times are epoch milliseconds. */
export type NextAction = {
  kind: 'wait' | 'hold' | 'end'
  /** How long to wait before looking again. */
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

/** The argument of the fast-forward update: the wait to leave. */
export type FastForward = { stepId: string; visit: number }
/** The place of the run when the update answered. */
export type FastForwarded = { stepId: string | null; visit: number; state: string }
/** The result that a finished run leaves in its history. */
export type RunResult = { state: string; exitReason: string | null }

/** The database side of a run. */
export type RunActivities = {
  /** Executes everything that is due in one transaction and returns the next action. */
  advanceRun(request: RunRequest): Promise<NextAction>
  /** Cancels the run because an operator canceled its workflow. */
  cancelRun(request: RunRequest): Promise<NextAction>
}

/** The workflow type that imports an uploaded list of subscribers. */
export const SUBSCRIBER_IMPORT = 'SubscriberImport'

/** Returns the workflow id of an import: `import/{imp_…}`. */
export function importWorkflowId(importId: string): string {
  return `import/${importId}`
}

/** The argument of a SubscriberImport. */
export type ImportRequest = { organizationId: string; importId: string }

/** The progress of an import, for operators. */
export type ImportProgress = {
  state: 'RUNNING' | 'COMPLETED' | 'FAILED' | 'CANCELED'
  /** Processed rows, including rejected ones. */
  rows: number
  /** An estimate from the bytes read so far; exact at the end. */
  expectedRows: number
  rejected: number
  error: string | null
}

/** The result that a finished import leaves in its history. */
export type ImportResult = { state: string; rows: number; rejected: number }

/** The database side of an import. */
export type ImportActivities = {
  /** Imports pages of rows for some seconds, each with its checkpoint in one transaction, and returns the progress. */
  applyImport(request: ImportRequest): Promise<ImportProgress>
  /** Cancels the import because an operator canceled its workflow. */
  cancelImport(request: ImportRequest): Promise<ImportProgress>
}

/** The workflow type that re-evaluates filters that can match, or stop matching, just because time passes. */
export const SEGMENT_REFRESH = 'SegmentRefresh'

/**
 * Returns the id of the schedule that starts SegmentRefresh. The prefix separates installations that share a namespace.
 */
export function segmentScheduleId(prefix: string): string {
  return `segments/refresh/${prefix}`
}

/** How many organizations, and how many segments that depend on time, were looked at. */
export type SegmentRefreshed = { organizations: number; segments: number }

/** The database side of a SegmentRefresh. */
export type SegmentActivities = {
  /**
   * Queues checks of the people whose segments, waits or goals may have changed just because time has passed, page by
   * page. An attempt after a crash skips organizations that are done.
   */
  refreshSegments(): Promise<SegmentRefreshed>
}

/** The workflow type that sends a campaign. */
export const CAMPAIGN_SEND = 'CampaignSend'

/** Returns the workflow id of one scheduled send of a campaign: `campaign/{cmp_…}/{n}`. */
export function campaignWorkflowId(campaignId: string, number: number): string {
  return `campaign/${campaignId}/${number}`
}

/** The argument of a CampaignSend. `number` counts how often the campaign was scheduled. */
export type CampaignSendRequest = { organizationId: string; campaignId: string; number: number }

/** The progress of a send, with texts for operators. Times are epoch milliseconds. */
export type CampaignSendProgress = {
  /** The next stage (wait until it is due, freeze the audience, deliver), or how the send ended. */
  stage: 'SCHEDULED' | 'FREEZING' | 'DELIVERING' | 'SENT' | 'FAILED' | 'CANCELED'
  /** How long to wait before looking again. */
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

/** The result that a finished send leaves in its history. */
export type CampaignSendResult = { stage: string; total: number; done: number }

/**
 * The database side of a CampaignSend. Each activity may be repeated at any time, because the rows record the progress.
 */
export type CampaignActivities = {
  /** Begins the send if it is due, and freezes its content. A cancellation either comes before that or is refused. */
  beginCampaign(request: CampaignSendRequest): Promise<CampaignSendProgress>
  /** Stores the recipients, page by page. */
  freezeAudience(request: CampaignSendRequest): Promise<CampaignSendProgress>
  /** Queues email ahead of the lane, and watches for some seconds or until every recipient has an outcome. */
  deliverCampaign(request: CampaignSendRequest): Promise<CampaignSendProgress>
  /** Cancels the send because an operator canceled its workflow. */
  cancelCampaign(request: CampaignSendRequest): Promise<CampaignSendProgress>
}

/** The workflow type that checks the DNS records of a sending domain. */
export const DOMAIN_VERIFICATION = 'DomainVerification'
/** The update that checks the records now and answers the result. */
export const CHECK_NOW = 'checkNow'

/** Returns the workflow id of a domain: `domain/{dom_…}`. */
export function domainWorkflowId(domainId: string): string {
  return `domain/${domainId}`
}

/** The argument of a domain check. */
export type DomainCheckRequest = { organizationId: string; domainId: string }

/** How often a domain is checked: POLL until it is verified, then DAILY, or never again (END). */
export type DomainPace = 'POLL' | 'DAILY' | 'END'

/** The argument of a DomainVerification. `polls` and `pace` carry the state over a continue-as-new. */
export type DomainVerificationInput = DomainCheckRequest & { polls?: number; pace?: DomainPace }

/** The result of a check, for operators: host names and statuses, no keys. */
export type DomainChecked = {
  status: string
  pace: DomainPace
  /** One line for each record: "VERIFIED DKIM pl1._domainkey.example.com". */
  records: string[]
}

/** The result that a finished verification leaves in its history. */
export type DomainVerificationResult = { status: string }

/** The database and DNS side of a DomainVerification. */
export type DomainActivities = {
  /** Queries the name servers and stores the result. A repeated call queries again. */
  checkDomain(request: DomainCheckRequest): Promise<DomainChecked>
}

/** The workflow type that lets many people into an automation. */
export const AUTOMATION_INTAKE = 'AutomationIntake'

/** Returns the workflow id of an intake: `intake/{wf_…}/{uuid}`. */
export function intakeWorkflowId(automationId: string, intakeId: string): string {
  return `intake/${automationId}/${intakeId}`
}

/** The argument of an AutomationIntake. */
export type IntakeRequest = { organizationId: string; automationId: string; intakeId: string }

/** The progress of an intake, for operators. */
export type IntakeProgress = {
  /** PAUSED means that nobody enters because the automation is paused. */
  state: 'RUNNING' | 'PAUSED' | 'COMPLETED' | 'CANCELED' | 'FAILED'
  /** The number of people who were looked at, and how many matched when the intake began. */
  looked: number
  expected: number
  /** The number of runs that were created, including those that a group skipped. */
  entered: number
  error: string | null
}

/** The database side of an intake. Each activity may be repeated at any time, because the row records the progress. */
export type IntakeActivities = {
  /** Lets people in for some seconds, page by page, and returns the progress. */
  continueIntake(request: IntakeRequest): Promise<IntakeProgress>
  /** Cancels the intake because an operator canceled its workflow. People who have entered stay in. */
  cancelIntake(request: IntakeRequest): Promise<IntakeProgress>
}

/** The workflow type that looks for people who are due by a timed trigger. */
export const TRIGGER_FIRING = 'TriggerFiring'

/** Returns the beginning of the ids of all trigger schedules of an installation. */
export function triggerSchedulePrefix(prefix: string): string {
  return `trigger/${prefix}/`
}

/** Returns the id of the schedule of a timed trigger: `trigger/{prefix}/{wf_…}/{step}`. */
export function triggerScheduleId(prefix: string, automationId: string, stepId: string): string {
  return `${triggerSchedulePrefix(prefix)}${automationId}/${stepId}`
}

/** The argument of a TriggerFiring. */
export type FiringRequest = { organizationId: string; automationId: string; stepId: string }

/** The result of a firing, for operators. */
export type Fired = {
  /** FIRED: an intake has begun. NOTHING: nobody was due. IDLE: the automation takes nobody in. */
  state: 'FIRED' | 'NOTHING' | 'IDLE'
  /** The moment up to which people were looked for, ISO 8601. */
  until: string | null
  /** How many people were due, and the id of the workflow that lets them in. */
  expected: number
  intake: string | null
  /** The time until the next look in ms. The workflow needs it when its clock is ahead of the database's. */
  nextMs: number | null
}

/** The database side of a firing, which lets in everybody who has become due since the last look. */
export type FiringActivities = { fireTrigger(request: FiringRequest): Promise<Fired> }
