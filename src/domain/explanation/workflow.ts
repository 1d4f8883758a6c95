import { sql } from 'kysely'

import type { Explanation, Reason, VerdictOutcome } from '../../../schema/explanation.ts'
import type { Run } from '../../../schema/run.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, rows } from '../../database.ts'
import { decodeId, encodeId } from '../../ids.ts'
import { type Automation, findAutomation } from '../automations/definition/records.ts'
import { loadVersion, loadVersions, type Version } from '../automations/definition/versions.ts'
import { listRuns } from '../automations/runs/run-records.ts'
import { emailsAhead, emailsOf, hasMet, isSettled, type Known, versionOf } from './ahead.ts'
import { emailReasons, hasArrived, readEmails } from './email.ts'
import { entryReasons, refusalWords } from './entry.ts'
import { type Decision, decisionWords, readDecisions } from './ledger.ts'
import { canGet, consentReasons, type Person } from './person.ts'
import { inOrder, verdictOf } from './verdict.ts'
import { spoken } from './words.ts'

/** How many runs are explained, the latest. */
const RUNS = 20

/** The email of a step that the question is about. */
export type AskedEmail = { campaignId: string; stepId: string; name: string }

type Facts = Known & { runs: readonly Run[] }

/** Explains why a person got, did not get or would get email of a workflow, or the email of one step. */
export async function explainWorkflow(
  call: Call,
  person: Person,
  workflowId: string,
  asked: AskedEmail | null = null,
): Promise<Explanation> {
  const automation = await findAutomation(call, workflowId, { lock: false })
  const { id, name, publishedVersionId } = automation
  const about = { subscriberId: person.record.id, workflowId: encodeId('wf', id) }
  const { runs } = await listRuns(call, { ...about, limit: RUNS })
  const ofStep = asked === null ? sql`` : sql`and m.campaign_id = ${asked.campaignId}`
  const emails = await readEmails(
    call,
    sql<boolean>`m.subscriber_id = ${person.id} and m.automation_id = ${id} ${ofStep}`,
  )
  const decisions = await readDecisions(call, person.id, sql<boolean>`d.automation_id = ${id}`)
  const ledger = decisions.filter(
    ({ action, stepId }) =>
      action !== 'RUN_ENDED' && (asked === null || action === 'ENTRY_REFUSED' || stepId === asked.stepId),
  )
  const versionIds = runs.map(({ version }) => decodeId('wfv', version.id))
  const versions = await loadVersions(call.em, call.organization.id, versionIds)
  const open = runs.filter(({ endedAt }) => endedAt === null)
  const jumps = await countJumps(call, open)
  const facts: Facts = { runs, emails, ledger, versions, jumps, stepId: asked?.stepId ?? null }
  const happened = [
    ...ledger.flatMap((decision) => decisionReasons(call, person, decision)),
    ...runs.toReversed().flatMap((run) => runReasons(call, run, decisions)),
    ...emails.flatMap((email) => emailReasons(call, email, ledger)),
    ...runs.flatMap((run) => unreachedReasons(run, facts)),
  ]
  const now = statusReasons(automation, open.length > 0)
  if (publishedVersionId !== null) {
    const version = await loadVersion(call.em, call.organization.id, publishedVersionId)
    const goneBy = open.length > 0 ? open.map((run) => versionOf(run, facts)) : [version]
    const meant = goneBy.flatMap((each) => emailsOf(each, facts.stepId))
    now.push(...consentReasons(person, meant))
    const entry =
      open.length > 0
        ? []
        : [...absenceReasons(version, asked), ...(await entryReasons(call, person, automation, version))]
    // For a person with earlier runs the question is about those, so reasons about another entry are only notes.
    now.push(...(runs.length > 0 ? entry.map(noted) : entry))
  }
  const what = asked === null ? 'email' : `the email “${asked.name}”`
  const reasons = inOrder([...happened, ...now])
  return verdictOf(outcomeOf(person, facts, now), person.who, `${what} of the workflow “${name}”`, reasons)
}

/** Counts the jumps of runs, by run and step. */
async function countJumps(
  { em, organization }: Call,
  runs: readonly Run[],
): Promise<Map<string, Map<string, number>>> {
  if (runs.length === 0) return new Map()
  const ids = runs.map(({ id }) => decodeId('run', id))
  const found = await rows<{ runId: string; stepId: string; times: number }>(
    em,
    sql`select run_id as "runId", step_id as "stepId", count(*)::int as times from run_step
      where organization_id = ${organization.id} and run_id = any(${array(ids, 'uuid')})
        and outcome ->> 'result' = 'JUMPED' group by 1, 2`,
  )
  const byRun = Map.groupBy(found, ({ runId }) => runId)
  return new Map(
    [...byRun].map(([id, own]) => [id, new Map(own.map(({ stepId, times }) => [stepId, times]))]),
  )
}

/** Returns a reason when the published version, which new entries use, lacks the email in question. */
function absenceReasons({ definition }: Version, asked: AskedEmail | null): Reason[] {
  if (asked === null) return []
  const { campaignId, stepId } = asked
  if (Object.values(definition.emails).some((email) => email.campaignId === campaignId)) return []
  const message =
    'The published version of the workflow does not have this email, so a new entry would not send it.'
  return [{ at: null, outcome: 'AGAINST', code: 'NOT_PUBLISHED', message, stepId }]
}

function outcomeOf(person: Person, facts: Facts, now: readonly Reason[]): VerdictOutcome {
  const { runs, emails, ledger, stepId } = facts
  const hasArrival = emails.some(hasArrived)
  if (stepId !== null && hasArrival) return 'GOT_IT'
  if (runs.some((run) => emailsAhead(run, facts).some((email) => canGet(person, email)))) return 'UNDER_WAY'
  if (hasArrival) return 'GOT_IT'
  const isOpen = runs.some((run) => run.endedAt === null && !hasSettled(run, facts))
  if (isOpen) return 'WOULD_NOT_GET_IT'
  if (runs.length > 0) return 'DID_NOT_GET_IT'
  if (!now.some(({ outcome }) => outcome === 'AGAINST')) return 'WOULD_GET_IT'
  return ledger.length > 0 ? 'DID_NOT_GET_IT' : 'WOULD_NOT_GET_IT'
}

function hasSettled(run: Run, facts: Facts): boolean {
  return emailsOf(versionOf(run, facts), facts.stepId).some(({ stepId }) => isSettled(run, stepId, facts))
}

/** Returns a reason for each email that a run can no longer reach. */
function unreachedReasons(run: Run, facts: Facts): Reason[] {
  if (run.status === 'SKIPPED') return []
  const ahead = new Set(emailsAhead(run, facts).map(({ stepId }) => stepId))
  const missed = emailsOf(versionOf(run, facts), facts.stepId).filter(
    ({ stepId }) => !ahead.has(stepId) && !hasMet(run, stepId, facts),
  )
  return missed.map(({ stepId }): Reason => ({
    at: run.endedAt,
    outcome: facts.stepId === null ? 'NOTE' : 'AGAINST',
    code: 'STEP_NOT_REACHED',
    message:
      run.endedAt === null
        ? `From where they are in the workflow no way leads to the step ${stepId} any more, so its email is not written.`
        : `Their way through the workflow did not lead to the step ${stepId}, so its email was not written.`,
    runId: run.id,
    stepId,
  }))
}

function statusReasons({ status }: Automation, isIn: boolean): Reason[] {
  const state = (message: string): Reason[] => [
    { at: null, outcome: 'AGAINST', code: `WORKFLOW_${status}`, message },
  ]
  if (status === 'DRAFT') return state('The workflow has never been published, so nobody is in it.')
  if (status === 'ARCHIVED') return state('The workflow is archived: nobody enters it and nothing is sent.')
  if (status === 'PAUSED' && isIn) {
    const message = 'The workflow is paused: nothing is sent until it is active again.'
    return [{ at: null, outcome: 'WAITING', code: 'WORKFLOW_PAUSED', message }]
  }
  if (status === 'PAUSED') return state('The workflow is paused: nobody enters it and nothing is sent.')
  return []
}

/** Returns reasons for refused entries and skipped steps; decisions about an email are reported with the email. */
function decisionReasons(
  { organization }: Call,
  person: Person,
  { action, reason, at, runId, stepId, messageId, data }: Decision,
): Reason[] {
  if (messageId !== null) return []
  const own = {
    at,
    outcome: 'AGAINST' as const,
    code: reason,
    ...(runId !== null && { runId: encodeId('run', runId) }),
    ...(stepId !== null && { stepId }),
  }
  if (action === 'ENTRY_REFUSED') return [{ ...own, message: refusalWords(person, reason) }]
  const words = decisionWords(reason, data)
  if (action === 'STEP_DEFERRED') {
    const until =
      typeof data['until'] === 'string' ? ` until ${spoken(data['until'], organization.timezone)}` : ''
    return [{ ...own, outcome: 'NOTE', message: `The step ${stepId} held them back${until}. ${words}` }]
  }
  if (action === 'STEP_FAILED') {
    const why = typeof data['reason'] === 'string' ? data['reason'] : reason
    return [{ ...own, message: `The step ${stepId} failed: ${why.replace(/\.?$/, '.')}` }]
  }
  return [{ ...own, message: `The step ${stepId} was left out. ${words}` }]
}

/** Describes where an active run stands; `at` names its step. */
function whereabouts({ status, held, nextStepAt }: Run, at: string, timezone: string): string {
  if (status === 'QUEUED') return 'They were let in and wait for their turn to begin.'
  if (held) return `They are at ${at}, held there because the workflow is paused.`
  const until = nextStepAt === null ? '' : ` until ${spoken(nextStepAt, timezone)}`
  return `They are in the workflow, at ${at}${until}.`
}

function runReasons({ organization }: Call, run: Run, decisions: readonly Decision[]): Reason[] {
  // A run that its group never let begin is reported as a refused entry.
  if (run.status === 'SKIPPED') return []
  const own = { runId: run.id }
  const entered = `They entered the workflow in its version ${run.version.number}.`
  const reasons: Reason[] = [{ at: run.enteredAt, outcome: 'FOR', code: 'ENTERED', message: entered, ...own }]
  const step = run.currentStep
  const at = step === null ? 'its start' : `the step ${step.name ?? step.id}`
  const stepId = step === null ? {} : { stepId: step.id }
  if (run.endedAt === null) {
    const message = whereabouts(run, at, organization.timezone)
    return [...reasons, { at: null, outcome: 'WAITING', code: 'IN_WORKFLOW', message, ...own, ...stepId }]
  }
  const isDone = run.status === 'COMPLETED'
  const code = run.exitReason ?? run.status
  const runId = decodeId('run', run.id)
  const end = decisions.findLast((each) => each.action === 'RUN_ENDED' && each.runId === runId)
  const why = end ? decisionWords(end.reason, end.data) : decisionWords(code)
  const message =
    isDone && !end
      ? `They came to the end of their way through the workflow, at ${at}.`
      : `Their way through the workflow ended before its end, at ${at}. ${run.error ?? why}`
  return [
    ...reasons,
    { at: run.endedAt, outcome: isDone && !end ? 'NOTE' : 'AGAINST', code, message, ...own, ...stepId },
  ]
}

function noted(reason: Reason): Reason {
  return reason.outcome === 'AGAINST' ? { ...reason, outcome: 'NOTE' } : reason
}
