import type { Step, StepType } from '../../../../schema/automation.ts'
import { matches } from '../../audience/match.ts'
import {
  enterAddTag,
  enterCreateEvent,
  enterRemoveTag,
  enterSubscription,
  enterUpdateField,
} from './changes.ts'
import { enterBranch, enterExit, enterJump, enterSplit } from './choices.ts'
import { enterEmail, leaveEmail } from './email.ts'
import { enterGoal, leaveGoal } from './goal.ts'
import { enterNotify } from './notify.ts'
import { type Enter, entryOf, left, scopeOf, type StepResult, type Turn } from './step.ts'
import { enterThrottle, leaveThrottle } from './throttle.ts'
import { leaveWait } from './timing.ts'
import { enterWait, enterWaitUntil, leaveWaitUntil } from './waits.ts'
import { enterWebhook, leaveWebhook } from './webhook.ts'
import { enterStartWorkflow, enterStopWorkflow } from './workflows.ts'

/** The function per step type that executes a step when a run arrives at it. */
const ENTER: { [Type in StepType]: Enter<Type> } = {
  TRIGGER: () => left('next', { result: 'ENTERED' }),
  EMAIL: enterEmail,
  WAIT: enterWait,
  WAIT_UNTIL: enterWaitUntil,
  BRANCH: enterBranch,
  SPLIT: enterSplit,
  ADD_TAG: enterAddTag,
  REMOVE_TAG: enterRemoveTag,
  UPDATE_FIELD: enterUpdateField,
  SUBSCRIPTION: enterSubscription,
  CREATE_EVENT: enterCreateEvent,
  NOTIFY: enterNotify,
  WEBHOOK: enterWebhook,
  START_WORKFLOW: enterStartWorkflow,
  STOP_WORKFLOW: enterStopWorkflow,
  THROTTLE: enterThrottle,
  JUMP: enterJump,
  GOAL: enterGoal,
  EXIT: enterExit,
}

/** Step types whose writes need not be undone when a `Failure` is thrown inside them. */
const PURE: ReadonlySet<StepType> = new Set([
  'TRIGGER',
  'WAIT',
  'WAIT_UNTIL',
  'BRANCH',
  'SPLIT',
  'JUMP',
  'EXIT',
])

/**
 * Step types whose change may end their own run, by an unsubscribe or through an event that meets an exit rule or goal.
 */
const REBOUNDING: ReadonlySet<StepType> = new Set([
  'ADD_TAG',
  'REMOVE_TAG',
  'UPDATE_FIELD',
  'SUBSCRIPTION',
  'CREATE_EVENT',
])

/** Returns whether a step may have written something that must be undone when it is refused. */
export function isWriting(step: Step): boolean {
  return !PURE.has(step.type)
}

/** Returns whether the step may have ended its own run, so that the run must be read again. */
export function mayEndItsRun(step: Step): boolean {
  return REBOUNDING.has(step.type)
}

/** Executes a step when a run arrives at it. */
export async function enterStep(turn: Turn, step: Step): Promise<StepResult> {
  // The cast is safe: `ENTER` is keyed by the step's type.
  const enter = ENTER[step.type] as Enter<StepType>
  return await enter(turn, step)
}

/** Continues the step in which the run waits. Returns null while it has to wait. */
export async function leaveStep(turn: Turn, step: Step): Promise<StepResult | null> {
  switch (step.type) {
    case 'EMAIL':
      return await leaveEmail(turn, step)
    case 'WAIT_UNTIL':
      return await leaveWaitUntil(turn, step)
    case 'GOAL':
      return await leaveGoal(turn, step)
    case 'WEBHOOK':
      return await leaveWebhook(turn, step)
    case 'THROTTLE':
      return await leaveThrottle(turn, step)
    default:
      return leaveWait(turn)
  }
}

/** Returns whether the subscriber matches the conditions of a step; true without conditions. */
export async function conditionsHold({ call, run }: Turn, step: Step): Promise<boolean> {
  if (!step.conditions?.length) return true
  return await matches(call.em, scopeOf(call), run.subscriberId, step.conditions, entryOf(run))
}
