import { createHash } from 'node:crypto'

import { sql } from 'kysely'

import type { StepConfigs } from '../../../../schema/automation-steps.ts'
import { ELSE_PORT } from '../../../../schema/automation.ts'
import { JUMP_PORT } from '../../../../temporal/graph.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { execute, row } from '../../../database.ts'
import { firstMatching } from '../../audience/match.ts'
import { endOf, openGoals } from '../goals/goals.ts'
import type { RunState } from '../runs/run-state.ts'
import { type Enter, entryOf, left, scopeOf, type Settled, type Turn } from './step.ts'

type Variants = StepConfigs['SPLIT']['variants']

/** Leaves by the first path whose filters match, or by `else`. */
export const enterBranch: Enter<'BRANCH'> = async ({ call, run }, { config }) => {
  const path = await firstMatching(call.em, scopeOf(call), run.subscriberId, config.paths, entryOf(run))
  return left(path ?? ELSE_PORT, { result: 'DECIDED' })
}

/** Leaves by a random variant or, if the split is sticky, by the one that this subscriber had before. */
export const enterSplit: Enter<'SPLIT'> = async (turn, { id, config }) => {
  const { run } = turn
  const before = config.sticky ? await earlierVariant(turn, id, config.variants) : null
  const seed = config.sticky ? [run.automationId, id, run.subscriberId] : [run.id, id, run.visit]
  const result = decideSplit(config, before, seed.join('/'))
  if (config.holdoutVariantId === undefined || result.kind !== 'left') return result
  await noteVariant(turn, id, result.port)
  if (result.port !== config.holdoutVariantId) return result
  // A holdout gets no email, so goals that count from the first email count from the split.
  return endOf(await openGoals(turn, run.now), 'DECIDED') ?? result
}

/** Stores the first variant that a subscriber got. Statistics compare variants with the holdout by this one. */
async function noteVariant({ call, run }: Turn, stepId: string, variantId: string): Promise<void> {
  await execute(
    call.em,
    sql`insert into automation_variant (organization_id, automation_id, step_id, subscriber_id, variant_id)
      values (${call.organization.id}, ${run.automationId}, ${stepId}, ${run.subscriberId}, ${variantId})
      on conflict (organization_id, automation_id, step_id, subscriber_id) do nothing`,
  )
}

/** Decides for the variant `before` if it still exists, else for the one that the seed picks. */
export function decideSplit(
  { variants, holdoutVariantId }: StepConfigs['SPLIT'],
  before: string | null,
  seed: string,
): Settled {
  const port = variants.find(({ id }) => id === before)?.id ?? pickVariant(variants, seed)
  if (port !== holdoutVariantId) return left(port, { result: 'DECIDED' })
  return { ...left(port, { result: 'DECIDED', holdout: true }), decision: 'HOLDOUT' }
}

/** Ends the run. */
export const enterExit: Enter<'EXIT'> = (_turn, { config }) => decideExit(config)

/** Returns the result of an EXIT step. */
export function decideExit({ reason }: StepConfigs['EXIT']): Settled {
  const outcome = { result: 'EXIT', ...(reason !== undefined && { reason }) }
  return { kind: 'ends', exitReason: 'EXIT_STEP', outcome }
}

/** Jumps to the step's target, as often as allowed. */
export const enterJump: Enter<'JUMP'> = async (turn, { id, config }) => {
  return decideJump(config, await countJumps(turn, id))
}

/** Decides to jump to `toStepId`, or to leave by `next` if the run has jumped here `maxTimes` times already. */
export function decideJump({ toStepId, maxTimes }: StepConfigs['JUMP'], jumped: number): Settled {
  if (jumped >= maxTimes) return left('next', { result: 'EXHAUSTED', times: maxTimes })
  return left(JUMP_PORT, { result: 'JUMPED', toStepId, times: jumped + 1 })
}

/**
 * Picks a variant by the hash of the seed: always the same for a seed, and over many seeds in proportion to the
 * weights.
 */
export function pickVariant(variants: Variants, seed: string): string {
  const total = variants.reduce((sum, { weight }) => sum + weight, 0)
  const place = (createHash('sha256').update(seed).digest().readUIntBE(0, 6) / 2 ** 48) * total
  let end = 0
  for (const { id, weight } of variants) {
    end += weight
    if (place < end) return id
  }
  return variants.findLast(({ weight }) => weight > 0)?.id ?? ELSE_PORT
}

/** Returns the variant that this subscriber got last at this step, in this turn or any earlier run, or null. */
async function earlierVariant(
  { call, run, visits }: Turn,
  stepId: string,
  variants: Variants,
): Promise<string | null> {
  const here = visits.findLast((visit) => visit.stepId === stepId)?.port
  const isVariant = variants.some(({ id }) => id === here)
  if (here !== undefined && isVariant) return here
  return run.number === 1 && run.visit <= 2 ? null : await readEarlierVariant(call, run, stepId)
}

/** Reads the variant that this subscriber got last at this step, in any run and version. It may no longer exist. */
export async function readEarlierVariant(
  call: Call,
  run: Pick<RunState, 'automationId' | 'subscriberId'>,
  stepId: string,
): Promise<string | null> {
  const found = await row<{ port: string }>(
    call.em,
    sql`select step.port from automation_run run
      join run_step step on step.organization_id = run.organization_id and step.run_id = run.id
      where run.organization_id = ${call.organization.id} and run.automation_id = ${run.automationId}
        and run.subscriber_id = ${run.subscriberId} and step.step_id = ${stepId}
        and step.outcome ->> 'result' = 'DECIDED'
      order by step.started_at desc, step.visit desc limit 1`,
  )
  return found?.port ?? null
}

async function countJumps({ call, run, visits }: Turn, stepId: string): Promise<number> {
  const here = visits.filter((visit) => visit.stepId === stepId && visit.outcome.result === 'JUMPED').length
  const found = await row<{ count: number }>(
    call.em,
    sql`select count(*)::int as count from run_step where organization_id = ${call.organization.id}
      and run_id = ${run.id} and step_id = ${stepId} and outcome ->> 'result' = 'JUMPED'`,
  )
  return here + (found?.count ?? 0)
}
