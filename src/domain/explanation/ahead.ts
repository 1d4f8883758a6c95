import type { Run } from '../../../schema/run.ts'
import { type Graph, JUMP_PORT } from '../../../temporal/graph.ts'
import { decodeId } from '../../ids.ts'
import { emailsInOrder, type Version } from '../automations/definition/versions.ts'
import { isPending } from '../emails/messages.ts'
import type { Email } from './email.ts'
import { type Decision, isDeferral } from './ledger.ts'

/** The email of a step, in the version of a run, or in the published one for a new entry. */
export type StepEmail = { stepId: string; transactional: boolean }

/**
 * Known facts about runs: their emails, decisions, versions (by uuid), and jumps of active runs by run and step.
 * `stepId` is set when the question is about one step.
 */
export type Known = {
  emails: readonly Email[]
  ledger: readonly Decision[]
  versions: ReadonlyMap<string, Version>
  jumps: ReadonlyMap<string, ReadonlyMap<string, number>>
  stepId: string | null
}

/** Returns the emails of a version that the question is about. */
export function emailsOf(version: Version | undefined, stepId: string | null): StepEmail[] {
  return (version ? emailsInOrder(version.definition) : [])
    .filter(([id]) => stepId === null || id === stepId)
    .map(([id, { transactional }]) => ({ stepId: id, transactional }))
}

/** Returns the version that a run entered. */
export function versionOf(run: Run, { versions }: Known): Version | undefined {
  return versions.get(decodeId('wfv', run.version.id))
}

/** Whether a run reached the email of a step: the email exists, or a final decision against it. */
export function hasMet(run: Run, stepId: string, { emails, ledger }: Known): boolean {
  const runId = decodeId('run', run.id)
  const decided = ledger.filter((decision) => !isDeferral(decision))
  return [...emails, ...decided].some((each) => each.runId === runId && each.stepId === stepId)
}

/** Whether the outcome of a step's email in a run is final. */
export function isSettled(run: Run, stepId: string, known: Known): boolean {
  return hasMet(run, stepId, { ...known, emails: known.emails.filter((email) => !isPending(email)) })
}

/** Returns the emails that an active run may still send: that of its current step, and those of steps it can reach. */
export function emailsAhead(run: Run, known: Known): StepEmail[] {
  const version = versionOf(run, known)
  const at = run.currentStep?.id
  if (run.endedAt !== null || at === undefined || !version) return []
  const behind = stepsBehind(version.graph, at, known.jumps.get(decodeId('run', run.id)))
  return emailsOf(version, known.stepId).filter(
    ({ stepId }) => behind.has(stepId) || (stepId === at && !isSettled(run, stepId, known)),
  )
}

/** Returns all steps that can be reached from a step; a jump counts until it has been taken `maxTimes` times. */
function stepsBehind(
  { steps, targets }: Graph,
  from: string,
  jumped: ReadonlyMap<string, number> | undefined,
): ReadonlySet<string> {
  const next = (id: string) => {
    const step = steps.get(id)
    const isOver = step?.type === 'JUMP' && (jumped?.get(id) ?? 0) >= step.config.maxTimes
    return [...(targets.get(id) ?? [])].flatMap(([port, to]) => (isOver && port === JUMP_PORT ? [] : [to]))
  }
  const reached = new Set(next(from))
  // A set is iterated in insertion order, including members added meanwhile.
  for (const id of reached) for (const to of next(id)) reached.add(to)
  return reached
}
