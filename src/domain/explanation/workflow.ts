import { sql } from 'kysely'

import type { Explanation, Reason } from '../../../schema/explanation.ts'
import type { Run } from '../../../schema/run.ts'
import type { Call } from '../../catalogue/tool.ts'
import { encodeId } from '../../ids.ts'
import { type Automation, findAutomation } from '../automations/records.ts'
import { listRuns } from '../automations/run-records.ts'
import { loadVersion, type Version } from '../automations/versions.ts'
import { type Email, emailReasons, hasArrived, readEmails } from './email.ts'
import { entryReasons, refusalWords } from './entry.ts'
import { type Decision, decisionWords, readDecisions } from './ledger.ts'
import { consentReasons, type Person } from './person.ts'
import { inOrder, verdictOf } from './verdict.ts'
import { spoken } from './words.ts'

/** So many runs are told, the latest. */
const RUNS = 20

/** Why a person got email of a workflow, did not, or would not. */
export async function explainWorkflow(call: Call, person: Person, workflowId: string): Promise<Explanation> {
  const automation = await findAutomation(call, workflowId, { lock: false })
  const { id, name, publishedVersionId } = automation
  const about = { subscriberId: person.record.id, workflowId: encodeId('wf', id) }
  const { runs } = await listRuns(call, { ...about, limit: RUNS })
  const emails = await readEmails(
    call,
    sql<boolean>`m.subscriber_id = ${person.id} and m.automation_id = ${id}`,
  )
  const ledger = await readDecisions(call, person.id, sql<boolean>`d.automation_id = ${id}`)
  const isUnderWay = runs.some(({ endedAt }) => endedAt === null)
  const happened = inOrder([
    ...ledger.flatMap((decision) => decisionReasons(person, decision)),
    ...runs.toReversed().flatMap((run) => runReasons(call, run)),
    ...emails.flatMap((email) => emailReasons(call, email, ledger)),
  ])
  const now = statusReasons(automation)
  if (publishedVersionId !== null) {
    const version = await loadVersion(call.em, call.organization.id, publishedVersionId)
    if (sendsMarketing(version)) now.push(...consentReasons(person))
    const entry = isUnderWay ? [] : await entryReasons(call, person, automation, version)
    // Whoever has been in it asks about that; what a next entry would meet is not the answer.
    now.push(...(runs.length > 0 ? entry.map(noted) : entry))
  }
  const outcome = outcomeOf({ runs, emails, ledger, now, isUnderWay })
  return verdictOf(outcome, person.who, `email of the workflow “${name}”`, inOrder([...happened, ...now]))
}

function outcomeOf(facts: {
  runs: readonly Run[]
  emails: readonly Email[]
  ledger: readonly Decision[]
  now: readonly Reason[]
  isUnderWay: boolean
}): Explanation['verdict']['outcome'] {
  if (facts.isUnderWay) return 'UNDER_WAY'
  if (facts.emails.some(hasArrived)) return 'GOT_IT'
  if (facts.runs.length > 0) return 'DID_NOT_GET_IT'
  if (!facts.now.some(({ outcome }) => outcome === 'AGAINST')) return 'WOULD_GET_IT'
  return facts.ledger.length > 0 ? 'DID_NOT_GET_IT' : 'WOULD_NOT_GET_IT'
}

function statusReasons({ status }: Automation): Reason[] {
  const state = (message: string): Reason[] => [
    { at: null, outcome: 'AGAINST', code: `WORKFLOW_${status}`, message },
  ]
  if (status === 'DRAFT') return state('The workflow has never been published, so nobody is in it.')
  if (status === 'ARCHIVED') return state('The workflow is archived: nobody enters it and nothing is sent.')
  if (status === 'PAUSED') return state('The workflow is paused: nobody enters it and nothing is sent.')
  return []
}

function sendsMarketing({ definition }: Version): boolean {
  return Object.values(definition.emails).some(({ transactional }) => !transactional)
}

/** Entries that were refused and steps that were left out; decisions about an email are told with the email. */
function decisionReasons(
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
  return [
    {
      ...own,
      message:
        action === 'STEP_FAILED'
          ? `The step ${stepId} failed: ${reason}.`
          : `The step ${stepId} was left out. ${words}`,
    },
  ]
}

function runReasons({ organization }: Call, run: Run): Reason[] {
  // One that a group never let begin is told by its refusal.
  if (run.status === 'SKIPPED') return []
  const own = { runId: run.id }
  const entered = `They entered the workflow in its version ${run.version.number}.`
  const reasons: Reason[] = [{ at: run.enteredAt, outcome: 'FOR', code: 'ENTERED', message: entered, ...own }]
  const step = run.currentStep
  const at = step === null ? 'its start' : `the step ${step.name ?? step.id}`
  const stepId = step === null ? {} : { stepId: step.id }
  if (run.endedAt === null) {
    const until = run.nextStepAt === null ? '' : ` until ${spoken(run.nextStepAt, organization.timezone)}`
    const message =
      run.status === 'QUEUED'
        ? 'They were let in and wait for their turn to begin.'
        : run.held
          ? `They are at ${at}, held there because the workflow is paused.`
          : `They are in the workflow, at ${at}${until}.`
    return [...reasons, { at: null, outcome: 'WAITING', code: 'IN_WORKFLOW', message, ...own, ...stepId }]
  }
  const isDone = run.status === 'COMPLETED'
  const code = run.exitReason ?? run.status
  const message = isDone
    ? `They came to the end of their way through the workflow, at ${at}.`
    : `Their way through the workflow ended before its end, at ${at}. ${run.error ?? decisionWords(code)}`
  return [
    ...reasons,
    { at: run.endedAt, outcome: isDone ? 'NOTE' : 'AGAINST', code, message, ...own, ...stepId },
  ]
}

function noted(reason: Reason): Reason {
  return reason.outcome === 'AGAINST' ? { ...reason, outcome: 'NOTE' } : reason
}
