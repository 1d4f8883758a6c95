import type { WaitUntilConfigs } from '../../../../schema/automation-steps.ts'
import type { StepOf } from '../../../../schema/automation.ts'
import { left, type Settled, type StepResult } from '../steps/step.ts'
import {
  decideCondition,
  decideDate,
  decideEvent,
  decideFieldDate,
  decideTimeOver,
  decideWait,
  decideWindow,
  leaveWait,
} from '../steps/timing.ts'
import { isConnected, momentOf, type Option, option, type Place, timed } from './place.ts'
import { withEvent } from './state.ts'

type Waiting = Extract<StepResult, { kind: 'waits' }>

/** How far ahead the simulation looks for filters that start to match just because time passes, in ms. */
const HORIZON_MS = 366 * 86_400_000

/** Simulates a WAIT. */
export function simulateWait(place: Place, step: StepOf<'WAIT'>): Option[] {
  const result = timed(place, step, () => decideWait(momentOf(place, place.at), step.config))
  const over = ({ wakeAt }: Waiting) =>
    leaveWait({ run: { wakeReason: null, wakeAt, now: wakeAt ?? place.at } })
  return [waited(place, result, over)]
}

/** Simulates a wait for a date, hours of the day, an event or a condition, with the other ways to leave it. */
export async function simulateWaitUntil(place: Place, step: StepOf<'WAIT_UNTIL'>): Promise<Option[]> {
  const { config } = step
  const moment = momentOf(place, place.at)
  switch (config.mode) {
    case 'DATE':
      return [
        untilOver(
          place,
          timed(place, step, () => decideDate(moment, config)),
          config,
        ),
      ]
    case 'TIME_WINDOW':
      return [
        untilOver(
          place,
          timed(place, step, () => decideWindow(moment, config)),
          config,
        ),
      ]
    case 'FIELD_DATE':
      return simulateFieldDate(place, step, config)
    case 'EVENT':
      return await simulateEvent(place, config)
    case 'CONDITION':
      return await simulateCondition(place, config)
  }
}

function simulateFieldDate(
  place: Place,
  step: StepOf<'WAIT_UNTIL'>,
  config: WaitUntilConfigs['FIELD_DATE'],
): Option[] {
  const value = place.state.fields[config.field]
  const result = decideFieldDate(momentOf(place, place.at), config, value)
  const other = (port: string, assumed: string) =>
    option(place, left(port, { result: 'ELAPSED' }), { assumed })
  return [
    untilOver(place, result, config),
    other('next', `The field ${config.field} has a date, and it comes.`),
    ...(isConnected(place, step, 'timeout')
      ? [other('timeout', `The field ${config.field} has no date, or one out of reach.`)]
      : []),
  ]
}

async function simulateEvent(place: Place, config: WaitUntilConfigs['EVENT']): Promise<Option[]> {
  const { eventType, scope, where = [] } = config
  const came = left('next', { result: 'EVENT', eventType })
  const earlier = scope === 'RUN' ? place.state.events.filter(({ type }) => type === eventType) : []
  for (const { data } of earlier) {
    if (await place.world.filtering.fulfils(data, where)) return [option(place, came)]
  }
  const state = withEvent(place.state, { type: eventType, at: place.at, data: {} })
  return [
    untilOver(place, decideEvent(momentOf(place, place.at), config), config),
    option(place, came, { state, assumed: `The event ${eventType} comes as soon as they wait for it.` }),
  ]
}

async function simulateCondition(place: Place, config: WaitUntilConfigs['CONDITION']): Promise<Option[]> {
  const held = left('next', { result: 'CONDITION' })
  if (await holds(place, config.filters, place.at)) {
    return [option(place, held), ...timeouts(place, config)]
  }
  const result = decideCondition(momentOf(place, place.at), config)
  const before = (result.kind === 'waits' ? result.wakeAt : null) ?? place.at + HORIZON_MS
  const between = { after: place.at, before }
  const at = await place.world.filtering.firstMoment(config.filters, place.state, between)
  const likely =
    at === null ? untilOver(place, result, config) : option({ ...place, at }, held, { until: at })
  return [
    likely,
    option(place, held, { assumed: 'The filters begin to match as soon as the run waits for it.' }),
    ...(at === null ? [] : timeouts(place, config)),
  ]
}

/** Returns the option that leaves the wait by its timeout, for a wait that something else would end. */
function timeouts(place: Place, config: WaitUntilConfigs['CONDITION']): Option[] {
  if (!config.timeout) return []
  const assumed = 'The filters do not hold before the time-out.'
  return [{ ...untilOver(place, decideCondition(momentOf(place, place.at), config), config), assumed }]
}

async function holds(
  { world, state }: Place,
  filters: WaitUntilConfigs['CONDITION']['filters'],
  at: number,
): Promise<boolean> {
  return (await world.filtering.firstHolding([{ id: 'yes', filters }], state, at)) !== null
}

function untilOver(
  place: Place,
  result: StepResult,
  config: WaitUntilConfigs[keyof WaitUntilConfigs],
): Option {
  return waited(place, result, ({ waitKind }) => decideTimeOver({ waitKind, wakeReason: null }, config))
}

/** Makes the option that leaves a wait when its time has come. A wait without an end has a null result. */
function waited(place: Place, result: StepResult, over: (wait: Waiting) => Settled | null): Option {
  if (result.kind !== 'waits') return option(place, result)
  const { wakeAt } = result
  if (wakeAt === null) return option(place, null)
  return option({ ...place, at: wakeAt }, over(result), { until: wakeAt })
}
