import { ELSE_PORT, type Step, type StepOf, type StepType } from '../../../../schema/automation.ts'
import { skipPort } from '../../../../temporal/graph.ts'
import { Failure, refuseFaults } from '../../../catalogue/failure.ts'
import { CONSENT } from '../../consent.ts'
import { type FieldScalar, typeFaults, typeOf } from '../../fields.ts'
import { type End, settlementOf } from '../runs/settlement.ts'
import { BY_GOAL, mayReach, reachGoals, simulateGoal } from './goals.ts'
import { momentOf, type Option, option, type Place } from './place.ts'
import { type State, withEntry, withEvent } from './state.ts'
import { simulateWait, simulateWaitUntil } from './waits.ts'
import { changedFields } from '../steps/changes.ts'
import { decideExit, decideJump, decideSplit } from '../steps/choices.ts'
import { decideSending } from '../steps/email.ts'
import { left } from '../steps/step.ts'
import { decideFailedRequest } from '../steps/webhook.ts'

type Simulate<Type extends StepType> = (place: Place, step: StepOf<Type>) => Option[] | Promise<Option[]>

/** What each type of step comes to, with the deciders of the engine; effects happen to the state of the way alone. */
const SIMULATE: { [Type in StepType]: Simulate<Type> } = {
  TRIGGER: (place) => [option(place, left('next', { result: 'ENTERED' }))],
  EMAIL: simulateEmail,
  WAIT: simulateWait,
  WAIT_UNTIL: simulateWaitUntil,
  BRANCH: simulateBranch,
  SPLIT: simulateSplit,
  ADD_TAG: (place, { config }) => changeTags(place, config.tagNames, true),
  REMOVE_TAG: (place, { config }) => changeTags(place, config.tagNames, false),
  UPDATE_FIELD: simulateUpdate,
  SUBSCRIPTION: simulateUnsubscribe,
  CREATE_EVENT: simulateCreateEvent,
  NOTIFY: (place) => [option(place, left('next', { result: 'DONE' }))],
  WEBHOOK: (place, { id }) => [
    option(place, left('next', { result: 'DONE' })),
    option(place, decideFailedRequest(place.world.graph, id, 'the request failed'), {
      assumed: 'The request fails for good.',
    }),
  ],
  START_WORKFLOW: (place) => [option(place, left('next', { result: 'ASKED' }))],
  STOP_WORKFLOW: (place) => [option(place, left('next', { result: 'ASKED' }))],
  THROTTLE: (place, { config }) => [
    option(place, left('next', { result: 'PASSED' })),
    ...(config.overflow === 'SKIP'
      ? [option(place, left('skipped', { result: 'FULL' }), { assumed: 'The throttle is full.' })]
      : []),
  ],
  JUMP: simulateJump,
  GOAL: simulateGoal,
  EXIT: (place, { config }) => [option(place, decideExit(config))],
}

/** What a step may come to, its conditions and the run's exit rules included. */
export async function simulateStep(place: Place, step: Step): Promise<Option[]> {
  const { conditions = [] } = step
  if (conditions.length === 0) return await entered(place, step)
  const skip = option(place, left(skipPort(step), { result: 'SKIPPED', reason: 'CONDITIONS' }))
  const asked = await guarded(place, async () => {
    const isSo = await place.world.filtering.firstHolding(
      [{ id: 'yes', filters: conditions }],
      place.state,
      place.at,
    )
    return isSo === null ? [skip] : []
  })
  if (asked.some(({ result }) => result?.kind === 'failed')) return asked
  const assuming = (assumed: string) => (each: Option) => ({ ...each, assumed: each.assumed ?? assumed })
  const inside = await entered(place, step)
  return asked.length > 0
    ? [skip, ...inside.map(assuming('The conditions of the step hold.'))]
    : [...inside, assuming('The conditions of the step do not hold.')(skip)]
}

async function entered(place: Place, step: Step): Promise<Option[]> {
  // The table has the function of this step's type under its type.
  const simulate = SIMULATE[step.type] as Simulate<StepType>
  const options = await guarded(place, async () => await simulate(place, step))
  return await Promise.all(options.map((each) => ruled(place, each)))
}

/** A refusal inside a step is the step's failure, as in the engine. */
async function guarded(place: Place, work: () => Promise<Option[]>): Promise<Option[]> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const outcome = { result: 'FAILED', reason: error.code }
    return [option(place, { kind: 'failed', reason: error.message, outcome })]
  }
}

/** Ends the run where one of its goals or exit rules names what the step has just made happen. */
async function ruled(place: Place, each: Option): Promise<Option> {
  const { exitRules = [] } = place.world.settings
  if (each.end !== null || each.result?.kind === 'ends' || !mayReach(place, each)) return each
  const { state, goalId } = await reachGoals({ ...place, ...each }, place.state.events.length)
  if (goalId !== null) return { ...each, state, end: BY_GOAL }
  for (const { type, data } of each.state.events.slice(place.state.events.length)) {
    for (const { on, where = [] } of exitRules) {
      if (on !== type || !(await place.world.filtering.fulfils(data, where))) continue
      return { ...each, end: { status: 'CANCELED', exitReason: 'EXIT_RULE', error: null } }
    }
  }
  return { ...each, state }
}

/** How the run ends with an option, or null where it goes on by a port. */
export function endOf(step: Step, { result, end }: Option): End | null {
  return end ?? (result === null ? null : settlementOf(step, result).end)
}

async function simulateEmail(place: Place, { id, config }: StepOf<'EMAIL'>): Promise<Option[]> {
  const { world, state } = place
  const wait = decideSending(momentOf(place, place.at), world.settings, config)
  const until = wait?.kind === 'waits' ? wait.wakeAt : null
  const at = until ?? place.at
  const email = world.emails.get(id)
  const shown = { email: email?.render(state) ?? null, at, until }
  const before = await reachGoals({ ...place, at })
  if (before.goalId !== null) {
    const outcome = { result: 'CANCELED', reason: 'GOAL', goalId: before.goalId }
    return [
      option({ ...place, state: before.state }, { kind: 'ends', exitReason: 'GOAL', outcome }, { at, until }),
    ]
  }
  const refusal = world.consent(state.status, !config.transactional)
  if (refusal !== null) return [option(place, left('next', { result: 'SKIPPED', reason: refusal }), shown)]
  const sent = { stepId: id, campaignId: email?.campaignId ?? null, at }
  const told = withEvent(before.state, { type: 'EMAIL_SENT', at, data: { stepId: id } })
  const after = { ...told, emails: [...state.emails, sent] }
  const reached = await reachGoals({ world, state: after, at }, state.events.length)
  const outcome = {
    result: 'SENT',
    ...(reached.goalId !== null && { reason: 'GOAL', goalId: reached.goalId }),
  }
  const result =
    reached.goalId === null ? left('next', outcome) : ({ kind: 'ends', exitReason: 'GOAL', outcome } as const)
  return [option(place, result, { ...shown, state: reached.state })]
}

async function simulateBranch(place: Place, { config }: StepOf<'BRANCH'>): Promise<Option[]> {
  const { world, state, at } = place
  const taken = (await world.filtering.firstHolding(config.paths, state, at)) ?? ELSE_PORT
  const by = (port: string) => left(port, { result: 'DECIDED' })
  const others = [...config.paths, { id: ELSE_PORT, name: undefined }].filter(({ id }) => id !== taken)
  return [
    option(place, by(taken)),
    ...others.map(({ id, name }) =>
      option(place, by(id), {
        assumed: id === ELSE_PORT ? 'No path takes them.' : `The path ${name ?? id} takes them.`,
      }),
    ),
  ]
}

/** Whoever is real in a real workflow has a variant already where it sticks; for all others chance stays open. */
function simulateSplit(place: Place, { id, config }: StepOf<'SPLIT'>): Option[] {
  const { world, state } = place
  const { variants, sticky } = config
  const total = variants.reduce((sum, { weight }) => sum + weight, 0)
  const possible = variants.filter(({ weight }) => weight > 0)
  const heaviest = possible.toSorted((one, other) => other.weight - one.weight)[0]?.id ?? null
  const { automationId, subscriberId } = world.subject
  const here = (sticky && state.variants.get(id)) || null
  const known = here ?? (sticky && world.earlier !== null ? (world.earlier.get(id) ?? null) : heaviest)
  const taken = decideSplit(config, known, [automationId, id, subscriberId].join('/'))
  const by = (port: string, result = left(port, { result: 'DECIDED' })) =>
    option(place, result, {
      state: { ...state, variants: withEntry(state.variants, id, port) },
      chance: total === 0 ? null : (variants.find((each) => each.id === port)?.weight ?? 0) / total,
    })
  const port = taken.kind === 'left' ? taken.port : ELSE_PORT
  return [
    { ...by(port), result: taken },
    ...possible
      .filter((each) => each.id !== port)
      .map((each) => ({ ...by(each.id), assumed: `Chance gives them the variant ${each.name ?? each.id}.` })),
  ]
}

function simulateJump(place: Place, { id, config }: StepOf<'JUMP'>): Option[] {
  const { state } = place
  const times = state.jumps.get(id) ?? 0
  const exhausted = decideJump(config, config.maxTimes)
  if (times >= config.maxTimes) return [option(place, exhausted)]
  const jumped = { ...state, jumps: withEntry(state.jumps, id, times + 1) }
  const assumed = `They have jumped from here ${config.maxTimes} times already.`
  return [
    option(place, decideJump(config, times), { state: jumped }),
    option(place, exhausted, {
      assumed,
      state: { ...state, jumps: withEntry(state.jumps, id, config.maxTimes) },
    }),
  ]
}

function changeTags(place: Place, names: readonly string[], adds: boolean): Option[] {
  const { world, at } = place
  let { state } = place
  for (const name of names) {
    const id = world.tagIds.get(name) ?? name
    if (state.tags.has(id) === adds) continue
    const tags = new Set(state.tags)
    if (adds) tags.add(id)
    else tags.delete(id)
    state = withEvent(
      { ...state, tags },
      { type: adds ? 'TAG_ADDED' : 'TAG_REMOVED', at, data: { tag: name } },
    )
  }
  return [option(place, left('next', { result: 'DONE' }), { state })]
}

function simulateUpdate(place: Place, { config }: StepOf<'UPDATE_FIELD'>): Option[] {
  const { world, at } = place
  const types = world.subject.references.fields
  const changes = Object.entries(changedFields(place.state.fields, config))
  const faults = typeFaults(changes, types, 'fields')
  if (faults.length > 0) refuseFaults(faults)
  let { state } = place
  for (const [field, value] of changes) {
    const from = state.fields[field] ?? null
    if (from === value) continue
    const { [field]: _old, ...fields } = state.fields
    // Null clears; typeFaults has refused what is neither that nor a value of the field's type.
    const to = value as FieldScalar | null
    // As in the engine, a field that is new gets the type of its first value.
    if (to !== null && !types.has(field)) types.set(field, typeOf(to, world.timezone))
    const changed: State = { ...state, fields: to === null ? fields : { ...fields, [field]: to } }
    state = withEvent(changed, { type: 'FIELD_UPDATED', at, data: { field, from, to } })
  }
  return [option(place, left('next', { result: 'DONE' }), { state })]
}

function simulateUnsubscribe(place: Place): Option[] {
  const { world, state, at } = place
  const result = left('next', { result: 'DONE' })
  const status = CONSENT[state.status].UNSUBSCRIBE
  if (!status) return [option(place, result)]
  const changed = withEvent({ ...state, status }, { type: 'UNSUBSCRIBED', at, data: {} })
  const end: End = { status: 'CANCELED', exitReason: 'UNSUBSCRIBED', error: null }
  return [option(place, result, { state: changed, ...(world.settings.exitOnUnsubscribe && { end }) })]
}

const SIGNS: Readonly<Record<string, number>> = { SUBSCRIBER_PAYMENT: 1, SUBSCRIBER_REFUND: -1 }

function simulateCreateEvent(place: Place, { config }: StepOf<'CREATE_EVENT'>): Option[] {
  const { eventType, amount, currency = 'USD', metadata } = config
  const data = { ...(amount !== undefined && { amount, currency }), ...(metadata && { metadata }) }
  const state = withEvent(place.state, { type: eventType, at: place.at, data })
  const revenue = state.revenue + (SIGNS[eventType] ?? 0) * (amount ?? 0)
  return [option(place, left('next', { result: 'DONE' }), { state: { ...state, revenue } })]
}
