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
/** The signal that tells a run to look at the database now; it carries nothing, so early, late or twice is the same. */
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

/** What a workflow asks the database about a run. `execution` is the first Temporal run id of the chain. */
export type RunRequest = { organizationId: string; runId: string; execution: string }

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
