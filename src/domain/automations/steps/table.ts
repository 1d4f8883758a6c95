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

/** What each type of step does when a run comes to it. */
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

/** Steps that write nothing outside their own run: a refusal inside one has nothing to undo. */
const PURE: ReadonlySet<StepType> = new Set([
  'TRIGGER',
  'WAIT',
  'WAIT_UNTIL',
  'BRANCH',
  'SPLIT',
  'JUMP',
  'EXIT',
])

/** Steps whose change may end the very run that makes it: by an unsubscribe, or by what answers to the change. */
const REBOUNDING: ReadonlySet<StepType> = new Set([
  'ADD_TAG',
  'REMOVE_TAG',
  'UPDATE_FIELD',
  'SUBSCRIPTION',
  'CREATE_EVENT',
])

/** Whether a step can have written something before it is refused. */
export function isWriting(step: Step): boolean {
  return !PURE.has(step.type)
}

/** Whether the run must be looked at after the step, because the step may have ended it. */
export function mayEndItsRun(step: Step): boolean {
  return REBOUNDING.has(step.type)
}

/** Does a step that the run has just come to. */
export async function enterStep(turn: Turn, step: Step): Promise<StepResult> {
  // The table has the function of this step's type under its type.
  const enter = ENTER[step.type] as Enter<StepType>
  return await enter(turn, step)
}

/** Looks at the step that the run waits in: null while there is nothing to do. */
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

/** Whether the conditions of a step hold; without any they do. */
export async function conditionsHold({ call, run }: Turn, step: Step): Promise<boolean> {
  if (!step.conditions?.length) return true
  return await matches(call.em, scopeOf(call), run.subscriberId, step.conditions, entryOf(run))
}
