import { createHash } from 'node:crypto'

import { sql } from 'kysely'

import { ELSE_PORT } from '../../../../schema/automation.ts'
import type { StepConfigs } from '../../../../schema/automation-steps.ts'
import { JUMP_PORT } from '../../../../temporal/graph.ts'
import { row } from '../../../database.ts'
import { firstMatching } from '../../audience/match.ts'
import { type Enter, entryOf, left, scopeOf, type Turn } from './step.ts'

type Variants = StepConfigs['SPLIT']['variants']

/** The first path whose filters hold. */
export const enterBranch: Enter<'BRANCH'> = async ({ call, run }, { config }) => {
  const path = await firstMatching(call.em, scopeOf(call), run.subscriberId, config.paths, entryOf(run))
  return left(path ?? ELSE_PORT, { result: 'DECIDED' })
}

/** A variant by chance, or the one that this person had before. */
export const enterSplit: Enter<'SPLIT'> = async (turn, { id, config }) => {
  const { run } = turn
  const { variants, sticky, holdoutVariantId } = config
  const before = sticky ? await earlierVariant(turn, id, variants) : null
  const seed = sticky ? [run.automationId, id, run.subscriberId] : [run.id, id, run.visit]
  const port = before ?? pickVariant(variants, seed.join('/'))
  return left(port, { result: 'DECIDED', ...(port === holdoutVariantId && { holdout: true }) })
}

/** Back, or ahead, as often as allowed. */
export const enterJump: Enter<'JUMP'> = async (turn, { id, config }) => {
  const count = (await countJumps(turn, id)) + 1
  if (count > config.maxTimes) return left('next', { result: 'EXHAUSTED', times: config.maxTimes })
  return left(JUMP_PORT, { result: 'JUMPED', toStepId: config.toStepId, times: count })
}

/** The variant that a seed falls on: the same for the same seed, and over many seeds in the shares of the weights. */
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

/** What this person got at this step in any version, where it is still a variant. */
async function earlierVariant(
  { call, run, visits }: Turn,
  stepId: string,
  variants: Variants,
): Promise<string | null> {
  const known = (port: string | null | undefined) => variants.find(({ id }) => id === port)?.id ?? null
  const here = known(visits.findLast((visit) => visit.stepId === stepId)?.port)
  if (here !== null || (run.number === 1 && run.visit <= 2)) return here
  const found = await row<{ port: string }>(
    call.em,
    sql`select step.port from automation_run run
      join run_step step on step.organization_id = run.organization_id and step.run_id = run.id
      where run.organization_id = ${call.organization.id} and run.automation_id = ${run.automationId}
        and run.subscriber_id = ${run.subscriberId} and step.step_id = ${stepId}
        and step.outcome ->> 'result' = 'DECIDED'
      order by step.started_at desc, step.visit desc limit 1`,
  )
  return known(found?.port)
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
