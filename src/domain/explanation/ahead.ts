import type { Run } from '../../../schema/run.ts'
import { type Graph, JUMP_PORT } from '../../../temporal/graph.ts'
import { decodeId } from '../../ids.ts'
import type { Version } from '../automations/definition/versions.ts'
import { isPending } from '../messages.ts'
import type { Email } from './email.ts'
import { type Decision, isDeferral } from './ledger.ts'

/** The email of a step, in the version that a run or a newcomer goes by. */
export type StepEmail = { stepId: string; transactional: boolean }

/**
 * What is known of runs: their emails, decisions, versions and how often those under way have jumped, by run and step;
 * `stepId` where one step alone is asked about.
 */
export type Known = {
  emails: readonly Email[]
  ledger: readonly Decision[]
  versions: ReadonlyMap<string, Version>
  jumps: ReadonlyMap<string, ReadonlyMap<string, number>>
  stepId: string | null
}

/** The emails of a version that are asked about. */
export function emailsOf(version: Version | undefined, stepId: string | null): StepEmail[] {
  return Object.entries(version?.definition.emails ?? {})
    .filter(([id]) => stepId === null || id === stepId)
    .map(([id, { transactional }]) => ({ stepId: id, transactional }))
}

/** The version that a run entered on. */
export function versionOf(run: Run, { versions }: Known): Version | undefined {
  return versions.get(decodeId('wfv', run.version.id))
}

/** Whether a run came to a step whose email, or the decision against it, is known. */
export function hasMet(run: Run, stepId: string, { emails, ledger }: Known): boolean {
  const runId = decodeId('run', run.id)
  const decided = ledger.filter((decision) => !isDeferral(decision))
  return [...emails, ...decided].some((each) => each.runId === runId && each.stepId === stepId)
}

/** Whether it has been settled what becomes of the email of a step in a run. */
export function isSettled(run: Run, stepId: string, known: Known): boolean {
  return hasMet(run, stepId, { ...known, emails: known.emails.filter((email) => !isPending(email)) })
}

/** The emails that a run under way may still bring: of the step it stands at, and wherever the graph leads from there. */
export function emailsAhead(run: Run, known: Known): StepEmail[] {
  const version = versionOf(run, known)
  const at = run.currentStep?.id
  if (run.endedAt !== null || at === undefined || !version) return []
  const behind = stepsBehind(version.graph, at, known.jumps.get(decodeId('run', run.id)))
  return emailsOf(version, known.stepId).filter(
    ({ stepId }) => behind.has(stepId) || (stepId === at && !isSettled(run, stepId, known)),
  )
}

/** Every step that some way through the graph leads to from a step: by jumps too, unless all of them are done. */
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
  // A set is visited in insertion order, also what is added on the way.
  for (const id of reached) for (const to of next(id)) reached.add(to)
  return reached
}
