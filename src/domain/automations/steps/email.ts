import { sql } from 'kysely'

import type { StepConfigs } from '../../../../schema/automation-steps.ts'
import type { Settings, StepOf } from '../../../../schema/automation.ts'
import { durationMilliseconds } from '../../../../temporal/graph.ts'
import { Failure } from '../../../catalogue/failure.ts'
import { row } from '../../../database.ts'
import type { FromAddress } from '../../domains/stand-in.ts'
import { enqueueMessages } from '../../emails/messages.ts'
import type { OverQuota } from '../../emails/quota.ts'
import { endOf, openGoals, reachByFilters } from '../goals/goals.ts'
import { hitExitRule } from '../runs/exit-rules.ts'
import type { RunState } from '../runs/run-state.ts'
import { windowOpens } from '../runs/schedule.ts'
import { type Enter, left, type StepResult, type Turn } from './step.ts'
import { isElapsed, type Moment, waitUntil, windowJitter } from './timing.ts'

type MessageState = { status: string; reason: string | null; createdAt: number; sentAt: number | null }

const FIRST_LOOK_MS = 30_000
const LAST_LOOK_MS = 15 * 60_000

/** Queues the email of the step, unless an exit rule or goal ends the run, or the email is too late or must wait. */
export const enterEmail: Enter<'EMAIL'> = async (turn, step) => {
  const { version } = turn
  const ruleId = await hitExitRule(turn)
  if (ruleId !== null) {
    const outcome = { result: 'CANCELED', reason: 'EXIT_RULE', ruleId }
    return { kind: 'ends', exitReason: 'EXIT_RULE', outcome }
  }
  // A change of the subscriber is compared with the goals a moment later, so goals are checked before each email as
  // well.
  const reached = endOf(await reachByFilters(turn, version.definition.successGoals), 'CANCELED')
  if (reached) return reached
  const notYet = decideSending(turn, version.definition.settings, step.config)
  if (notYet) return notYet
  return await sendStepEmail(turn, step.id, step.config.transactional)
}

/** Returns the result of an email that is too late or outside of its sending hours, or null if it can be sent now. */
export function decideSending(
  { run, clock, due }: Moment & { run: Pick<RunState, 'wakeReason'>; due: number },
  settings: Settings,
  { sendWindow, transactional }: StepConfigs['EMAIL'],
): StepResult | null {
  const late = lateResult(settings, run.now - due)
  if (late) return late
  const window = sendWindow ?? (transactional ? undefined : settings.sendWindow)
  if (!window || run.wakeReason === 'FAST_FORWARD') return null
  const opens = windowOpens(window, { ...clock, now: run.now })
  if (opens <= run.now) return null
  return waitUntil(opens + windowJitter(run, window), run, { reason: 'SEND_WINDOW' })
}

/**
 * Continues a run that waits at an EMAIL step. Returns null while the sending hours are closed or the email has no
 * outcome.
 */
export async function leaveEmail(turn: Turn, step: StepOf<'EMAIL'>): Promise<StepResult | null> {
  const { run } = turn
  if (run.waitKind === 'MESSAGE') return await readOutcome(turn)
  return run.wakeReason === 'FAST_FORWARD' || isElapsed(run) ? await enterEmail(turn, step) : null
}

/** Applies `settings.lateSend` to an email that is `late` ms late; null if it is sent all the same. */
function lateResult({ lateSend }: Settings, late: number): StepResult | null {
  const lateMs = Math.round(late)
  if (!lateSend || lateSend.action === 'SEND' || lateMs <= durationMilliseconds(lateSend.maxLateness)) {
    return null
  }
  const lateSeconds = Math.round(lateMs / 1_000)
  if (lateSend.action === 'EXIT') {
    return { kind: 'ends', exitReason: 'EXPIRED', outcome: { result: 'EXIT', reason: 'LATE', lateSeconds } }
  }
  return { ...left('next', { result: 'SKIPPED', reason: 'LATE', lateSeconds }), decision: 'LATE' }
}

/**
 * Reads the outcome of the step's email, or returns null while it has none. Delivery nudges the run, so the time until
 * the run looks again by itself grows with the age of the email.
 */
async function readOutcome(turn: Turn): Promise<StepResult | null> {
  const { run } = turn
  const message = await messageOutcome(turn)
  if (!message) {
    const reason = 'the email of this step is gone'
    return { kind: 'failed', code: 'NOT_FOUND', reason, outcome: { result: 'FAILED' } }
  }
  const { status, reason } = message
  if (status === 'QUEUED' || status === 'SUBMITTING' || status === 'DELAYED') {
    const age = run.now - message.createdAt
    run.wakeAt = run.now + Math.min(LAST_LOOK_MS, Math.max(FIRST_LOOK_MS, age / 2))
    return null
  }
  const outcome = { result: status, ...(reason !== null && { reason }) }
  if (status === 'FAILED')
    return { kind: 'failed', code: null, reason: reason ?? 'the email failed', outcome }
  if (message.sentAt !== null) {
    const opened = await openGoals(turn, message.sentAt)
    const held = await reachByFilters(turn, turn.version.definition.successGoals)
    const reached = endOf([...opened, ...held], status)
    if (reached) return reached
  }
  return left('next', outcome, message.sentAt ?? undefined)
}

/** Queues the email of an EMAIL step, once per visit, and waits for its outcome. */
async function sendStepEmail(
  { call, run, version }: Turn,
  stepId: string,
  transactional: boolean,
): Promise<StepResult> {
  const email = version.definition.emails[stepId]
  if (!email?.sender) {
    throw new Failure(
      'WRONG_STATE',
      `The published version has no email with a sender for step ${JSON.stringify(stepId)}; publish the workflow again.`,
    )
  }
  const { sender } = email
  const leaving = await row<FromAddress & { recipient: string | null; overQuota: OverQuota | null }>(
    call.em,
    sql`select (select email from subscriber
          where organization_id = ${call.organization.id} and id = ${run.subscriberId}) as recipient,
        leaving.email, leaving.stood_in_for as "stoodInFor", take_emails(domain.organization_id, 1) as "overQuota"
      from domain cross join lateral leave_from(domain.organization_id, ${sender.email}, domain.status) leaving
      where domain.organization_id = ${call.organization.id}
        and domain.domain = split_part(${sender.email}, '@', 2)`,
  )
  if (!leaving) {
    const reason = 'the domain of its sender is not VERIFIED any more, and none stands in'
    const code = 'DOMAIN_NOT_VERIFIED'
    return { kind: 'failed', code, reason, outcome: { result: 'FAILED', reason: code } }
  }
  if (leaving.overQuota) {
    return {
      ...left('next', { result: 'SKIPPED', reason: 'QUOTA_EXCEEDED' }),
      decision: 'QUOTA_EXCEEDED',
    }
  }
  const [message] = await enqueueMessages(call, [
    {
      class: transactional ? 'TRANSACTIONAL' : 'AUTOMATION',
      marketing: !transactional,
      key: `run/${run.id}/${stepId}/${run.visit}`,
      subscriberId: run.subscriberId,
      recipient: leaving.recipient ?? '',
      fromName: sender.name,
      fromEmail: leaving.email,
      stoodInFor: leaving.stoodInFor,
      replyTo: email.replyTo ?? leaving.stoodInFor,
      campaignId: email.campaignId,
      automationId: run.automationId,
      versionId: run.versionId,
      runId: run.id,
      stepId,
      visit: run.visit,
    },
  ])
  if (!message) throw new Error('an email was asked for and none was accepted')
  const outcome = { result: 'QUEUED', messageId: message.id }
  return { kind: 'waits', waitKind: 'MESSAGE', wakeAt: run.now + FIRST_LOOK_MS, outcome }
}

/** Reads the email of the current visit, with times in epoch milliseconds; null if it does not exist. */
async function messageOutcome({ call, run }: Turn): Promise<MessageState | null> {
  return await row<MessageState>(
    call.em,
    sql`select status, reason, extract(epoch from created_at)::float8 * 1000 as "createdAt",
        extract(epoch from sent_at)::float8 * 1000 as "sentAt"
      from message where organization_id = ${call.organization.id} and run_id = ${run.id}
        and step_id = ${run.stepId} and visit = ${run.visit}`,
  )
}
