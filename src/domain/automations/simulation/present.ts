import { Temporal } from 'temporal-polyfill'
import type { Static } from 'typebox'

import type { Definition, Step } from '../../../../schema/automation.ts'
import type { DeadEnd, SimulatedVisit, SimulatedWay, WayEnd } from '../../../../schema/simulation.ts'
import { type Graph, JUMP_PORT, nextStep } from '../../../../temporal/graph.ts'
import { leavesBy, type Way, type WayVisit } from './walk.ts'

type Local = (at: number) => string

/** Returns ways in the format of the API, with local dates in the person's time zone. */
export function presentWays(ways: readonly Way[], timezone: string): SimulatedWay[] {
  const known = new Map<number, string>()
  // Ways share most of their dates, and time zone arithmetic is slow.
  const local = (at: number): string => {
    const text = known.get(at) ?? localTime(at, timezone)
    known.set(at, text)
    return text
  }
  return ways.map((way) => ({
    number: way.number,
    branchOf: way.branchOf,
    timeline: way.visits.map((visit) => presentVisit(visit, local)),
    end: { ...endOf(way), at: instant(way.at), localAt: local(way.at) },
  }))
}

/** Returns the dead ends, each once: ports that lead nowhere, waits without an end, and steps that no way reaches. */
export function presentDeadEnds(
  definition: Definition,
  graph: Graph,
  ways: readonly Way[],
): Static<typeof DeadEnd>[] {
  const found = new Map<string, Static<typeof DeadEnd>>()
  const add = (deadEnd: Static<typeof DeadEnd>) =>
    found.set(JSON.stringify([deadEnd.code, deadEnd.stepId, deadEnd.port]), deadEnd)
  const reached = new Set<string>()
  for (const { step, option } of ways.flatMap(({ visits }) => visits)) {
    reached.add(step.id)
    const port = leavesBy(step, option)
    if (option.result === null) {
      const message = 'Nothing but what they wait for ends this wait; give it a timeout.'
      add({ stepId: step.id, port: null, code: 'WAITS_FOREVER', message })
    } else if (port !== null && port !== 'next' && !isMeant(step, port) && !nextStep(graph, step.id, port)) {
      const message = `The port ${port} leads nowhere, so the run completes there.`
      add({ stepId: step.id, port, code: 'NOT_CONNECTED', message })
    }
  }
  for (const { id } of definition.steps) {
    if (reached.has(id)) continue
    const message = 'No way of this person leads here.'
    add({ stepId: id, port: null, code: 'NEVER_REACHED', message })
  }
  return [...found.values()]
}

/** Returns whether a port is unconnected on purpose, which is true of the holdout of a SPLIT. */
function isMeant({ type, config }: Step, port: string): boolean {
  return type === 'SPLIT' && config.holdoutVariantId === port
}

function presentVisit({ step, at, option }: WayVisit, local: Local): SimulatedVisit {
  const { result, until, assumed, chance, email } = option
  const port = leavesBy(step, option)
  const outcome = result?.outcome
  return {
    stepId: step.id,
    type: step.type,
    name: step.name ?? null,
    at: instant(at),
    localAt: local(at),
    until: until === null ? null : instant(until),
    localUntil: until === null ? null : local(until),
    result: outcome?.result ?? 'WAITING',
    reason: typeof outcome?.['reason'] === 'string' ? outcome['reason'] : null,
    port: port === JUMP_PORT ? 'jump' : port,
    assumed,
    chance,
    email,
  }
}

const CUT = {
  TOO_LONG: 'The way goes on, longer than a simulation shows.',
  AS_BEFORE: 'From here it goes on by steps that an earlier way shows.',
} as const

const REASONS: Readonly<Record<string, string>> = {
  END: 'The last port leads nowhere, so the run is complete.',
  EXIT_STEP: 'The run ends at an EXIT.',
  EXIT_RULE: 'An exit rule ends the run.',
  EXPIRED: 'The run ends because a wait or the window of a goal is over, or a date is missing or past.',
  GOAL: 'A goal is reached, which ends the run.',
  UNSUBSCRIBED: 'They are unsubscribed, which ends the run.',
  ERROR: 'A step fails, which ends the run.',
}

function endOf({ end }: Way): Pick<SimulatedWay['end'], 'exitReason' | 'message'> & { status: WayEnd } {
  if (end === 'WAITS_FOREVER') {
    return {
      status: end,
      exitReason: null,
      message: 'They wait, and nothing but what they wait for ends that.',
    }
  }
  if (end === 'TOO_LONG' || end === 'AS_BEFORE') return { status: 'CUT', exitReason: null, message: CUT[end] }
  const { status, exitReason, error } = end
  return { status, exitReason, message: error ?? REASONS[exitReason] ?? `The run ends: ${exitReason}.` }
}

function instant(at: number): string {
  return new Date(at).toISOString()
}

function localTime(at: number, timezone: string): string {
  const zoned = Temporal.Instant.fromEpochMilliseconds(Math.round(at)).toZonedDateTimeISO(timezone)
  return zoned.toString({ timeZoneName: 'never', smallestUnit: 'second' })
}
