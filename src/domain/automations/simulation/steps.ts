import { ELSE_PORT, type Step, type StepOf, type StepType } from '../../../../schema/automation.ts'
import { skipPort } from '../../../../temporal/graph.ts'
import { Failure, refuseFaults } from '../../../catalogue/failure.ts'
import { emailFacts } from '../../emails/facts.ts'
import { CONSENT } from '../../subscribers/consent.ts'
import { type FieldScalar, shapeFaults, typeFaults } from '../../subscribers/fields.ts'
import { REVENUE } from '../../subscribers/history.ts'
import { tagEvents } from '../../subscribers/tags.ts'
import { type End, settlementOf } from '../runs/settlement.ts'
import { changedFields, createdFacts } from '../steps/changes.ts'
import { decideExit, decideJump, decideSplit } from '../steps/choices.ts'
import { decideSending } from '../steps/email.ts'
import { failedBy, left } from '../steps/step.ts'
import { mayEndItsRun } from '../steps/table.ts'
import { decideFailedRequest } from '../steps/webhook.ts'
import { requestFacts } from '../webhooks/webhooks.ts'
import { BY_GOAL, passTime, reachByEvents, reachByFilters, simulateGoal } from './goals.ts'
import { momentOf, type Option, option, type Place, timed } from './place.ts'
import { NOBODY, type SimulatedEvent, withEntry, withEvent, withField } from './state.ts'
import { simulateWait, simulateWaitUntil } from './waits.ts'

type Simulate<Type extends StepType> = (place: Place, step: StepOf<Type>) => Option[] | Promise<Option[]>

/**
 * The function per step type that simulates a step. It shares the engine's decisions; effects only change the state.
 */
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
  WEBHOOK: simulateWebhook,
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

/** Returns the options of a step, including those of its conditions and of the run's goals and exit rules. */
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
  // The cast is safe: `SIMULATE` is keyed by the step's type.
  const simulate = SIMULATE[step.type] as Simulate<StepType>
  const options = await guarded(place, async () => await simulate(place, step))
  return await Promise.all(options.map((each) => ruled(place, step, each)))
}

/** Turns a `Failure` inside a step into the step's failure, as the engine does. */
async function guarded(place: Place, work: () => Promise<Option[]>): Promise<Option[]> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return [option(place, failedBy(error))]
  }
}

/**
 * Ends the run if the step's events or the time that it took meet a goal or exit rule. The order is the engine's: goals
 * by events, then exit rules, then goals by filters.
 */
async function ruled(place: Place, step: Step, given: Option): Promise<Option> {
  if (given.end !== null) return given
  const each = await passTime(place, given)
  if (each.result === null || each.result.kind === 'ends') return each
  const events = each.state.events.slice(place.state.events.length)
  const byEvents = await reachByEvents({ ...place, ...each }, events)
  const told = { ...each, state: byEvents.state }
  if (byEvents.goalId !== null) return endedBy(step, told, 'GOAL')
  if (await hitsRule(place, events)) return endedBy(step, told, 'EXIT_RULE')
  const isHeldOut = each.state.heldOutAt !== place.state.heldOutAt
  const isUnchanged = events.length === 0 && each.at === place.at && !isHeldOut
  if (isUnchanged || settlementOf(step, each.result).end !== null) return told
  const { state, goalId } = await reachByFilters({ ...place, ...told })
  if (goalId === null) return { ...told, state }
  const reached = { ...told, state }
  // The engine checks these goals inside an EMAIL or holdout, which open windows, and after any other step.
  const isInside = step.type === 'EMAIL' || isHeldOut
  return isInside ? endedBy(step, reached, 'GOAL') : { ...reached, end: BY_GOAL }
}

async function hitsRule({ world }: Place, events: readonly SimulatedEvent[]): Promise<boolean> {
  for (const { type, data } of events) {
    for (const { on, where = [] } of world.settings.exitRules ?? []) {
      if (on === type && (await world.filtering.fulfils(data, where))) return true
    }
  }
  return false
}

/**
 * Ends the run by an event of the step: after the step if its type changes something at once (`mayEndItsRun`), else
 * inside it, so that the end is the step's result.
 */
function endedBy(step: Step, each: Option, exitReason: 'GOAL' | 'EXIT_RULE'): Option {
  const isOver = step.type === 'EMAIL' || step.type === 'WEBHOOK' || step.type === 'SPLIT'
  const outcome = { result: (isOver && each.result?.outcome.result) || 'CANCELED', reason: exitReason }
  const result = { kind: 'ends', exitReason, outcome } as const
  return mayEndItsRun(step) ? { ...each, end: settlementOf(step, result).end } : { ...each, result }
}

/** Returns how an option ends the run, or null if the run goes on. */
export function endOf(step: Step, { result, end }: Option): End | null {
  return end ?? (result === null ? null : settlementOf(step, result).end)
}

async function simulateEmail(place: Place, step: StepOf<'EMAIL'>): Promise<Option[]> {
  const { world, state } = place
  const { id, config } = step
  const wait = timed(place, step, () => decideSending(momentOf(place, place.at), world.settings, config))
  const until = wait?.kind === 'waits' ? wait.wakeAt : null
  const at = until ?? place.at
  const email = world.emails.get(id)
  const lines = email?.render(state) ?? null
  const shown = { email: lines, at, until }
  const before = await reachByFilters({ ...place, at })
  if (before.goalId !== null) {
    const outcome = { result: 'CANCELED', reason: 'GOAL', goalId: before.goalId }
    return [
      option({ ...place, state: before.state }, { kind: 'ends', exitReason: 'GOAL', outcome }, { at, until }),
    ]
  }
  const refusal = world.consent(state.status, !config.transactional)
  if (refusal !== null) {
    const skipped = left('next', { result: 'SKIPPED', reason: refusal })
    return [option({ ...place, state: before.state }, skipped, shown)]
  }
  const campaignId = email?.campaignId ?? null
  const { automationId } = world.subject
  const origin = { messageId: NOBODY, campaignId, automationId, runId: NOBODY, stepId: id }
  const data = { ...emailFacts(origin), ...(lines !== null && { subject: lines.subject }) }
  const told = withEvent(before.state, { type: 'EMAIL_SENT', at, data })
  const after = { ...told, emails: [...state.emails, { stepId: id, campaignId, at }] }
  return [option(place, left('next', { result: 'SENT' }), { ...shown, state: after })]
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

/**
 * Simulates a SPLIT. A sticky one repeats the variant of this way or of an earlier run; for an existing subscriber of a
 * workflow without one, the seed decides. In all other cases, the variant with the greatest weight comes first.
 */
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
      state: {
        ...state,
        variants: withEntry(state.variants, id, port),
        heldOutAt: port === config.holdoutVariantId ? (state.heldOutAt ?? place.at) : state.heldOutAt,
      },
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

function simulateWebhook(place: Place, { id, config }: StepOf<'WEBHOOK'>): Option[] {
  const { world, at } = place
  const { automationId } = world.subject
  const told = (succeeded: boolean) => {
    const data = requestFacts(
      { automationId, runId: NOBODY, stepId: id, method: config.method },
      { succeeded },
    )
    return withEvent(place.state, { type: 'WEBHOOK_EXECUTED', at, data })
  }
  const failed = decideFailedRequest(world.graph, id, 'the request failed')
  return [
    option(place, left('next', { result: 'DONE' }), { state: told(true) }),
    option(place, failed, { state: told(false), assumed: 'The request fails for good.' }),
  ]
}

function changeTags(place: Place, names: readonly string[], adds: boolean): Option[] {
  const { world, state, at } = place
  const { subscriberId } = world.subject
  const tags = new Set(state.tags)
  const changes = names.flatMap((name) => {
    const tag = world.tags.get(name)
    if (tag === undefined || tags.has(tag.id) === adds) return []
    if (adds) tags.add(tag.id)
    else tags.delete(tag.id)
    return [{ subscriberId, tag }]
  })
  const told = tagEvents(adds ? 'TAG_ADDED' : 'TAG_REMOVED', changes)
  const events = [...state.events, ...told.map(({ type, data = {} }) => ({ type, at, data }))]
  return [option(place, left('next', { result: 'DONE' }), { state: { ...state, tags, events } })]
}

function simulateUpdate(place: Place, { config }: StepOf<'UPDATE_FIELD'>): Option[] {
  const { world, at } = place
  const changes = Object.entries(changedFields(place.state.fields, config))
  const faults = [...shapeFaults(changes), ...typeFaults(changes, place.state.fieldTypes, 'fields')]
  if (faults.length > 0) refuseFaults(faults)
  let { state } = place
  for (const [field, value] of changes) {
    const from = state.fields[field] ?? null
    if (from === value) continue
    // The cast is safe: `typeFaults` has refused everything but null, which clears, and values of the field's type.
    const to = value as FieldScalar | null
    state = withEvent(withField(state, field, to, world.timezone), {
      type: 'FIELD_UPDATED',
      at,
      data: { field, custom: true, from, to },
    })
  }
  return [option(place, left('next', { result: 'DONE' }), { state })]
}

function simulateUnsubscribe(place: Place, { config }: StepOf<'SUBSCRIPTION'>): Option[] {
  const { world, state, at } = place
  const { reason } = config
  const result = left('next', { result: 'DONE' })
  const status = CONSENT[state.status].UNSUBSCRIBE
  if (!status) return [option(place, result)]
  const data = { source: 'workflow', from: state.status, ...(reason !== undefined && { reason }) }
  const changed = withEvent({ ...state, status }, { type: 'UNSUBSCRIBED', at, data })
  const end: End = { status: 'CANCELED', exitReason: 'UNSUBSCRIBED', error: null }
  return [option(place, result, { state: changed, ...(world.settings.exitOnUnsubscribe && { end }) })]
}

function simulateCreateEvent(place: Place, { config }: StepOf<'CREATE_EVENT'>): Option[] {
  const { eventType, amount } = config
  const state = withEvent(place.state, { type: eventType, at: place.at, data: createdFacts(config) })
  const revenue = state.revenue + (REVENUE[eventType] ?? 0) * (amount ?? 0)
  return [option(place, left('next', { result: 'DONE' }), { state: { ...state, revenue } })]
}
