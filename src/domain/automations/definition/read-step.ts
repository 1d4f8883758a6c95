import Type, { type TSchema } from 'typebox'

import { AUTOMATION_LIMITS, DURATION_UNITS } from '../../../../schema/automation-parts.ts'
import { STEP_CONFIGS, WAIT_MODES, WAIT_UNTIL_CONFIGS } from '../../../../schema/automation-steps.ts'
import { RUN_EVENTS, TRIGGER_CONFIGS, TRIGGER_TYPES } from '../../../../schema/automation-triggers.ts'
import { type Step, STEP_TYPES, StepMembers, type StepType } from '../../../../schema/automation.ts'
import { closed } from '../../../../schema/define.ts'
import { isRecord } from '../../../../schema/json.ts'
import { durationMilliseconds } from '../../../../temporal/graph.ts'
import type { Fault } from '../../../catalogue/failure.ts'
import { didYouMean, joinPath, kindOf, schemaFaults, withDefaults } from '../../../catalogue/schema-faults.ts'
import { isTimeZone, readMoment } from '../../audience/moment.ts'
import { type FilterContext, validateFilters, validateWhere } from '../../audience/validate.ts'
import { cronFault } from '../triggers/trigger-times.ts'
import { detailFaults } from './step-faults.ts'

/** A step with its defaults filled in and its faults. If it has faults, `step` is a stand-in that keeps its place. */
export type StepReading = { step: Step; readable: boolean; faults: Fault[] }

type Raw = Record<string, unknown>
type ConfigChoice = { schema: TSchema } | { fault: Fault }

const AnyStep = closed({ ...StepMembers, type: Type.Unknown(), config: Type.Unknown() })

/** Reads the raw step at `path` and checks its members, configuration and filters. */
export function readStep(raw: unknown, path: string, context: FilterContext): StepReading {
  if (!isRecord(raw)) {
    const fault = { path, message: `must be a step {id, type, config}, not ${kindOf(raw)}` }
    return { step: standIn({}), readable: false, faults: [fault] }
  }
  const whole: Raw = raw.type === 'EXIT' && raw.config === undefined ? { ...raw, config: {} } : raw
  const faults = [...memberFaults(whole, path), ...configFaults(whole, path, context)]
  if (whole.conditions !== undefined && Array.isArray(whole.conditions)) {
    faults.push(...validateFilters(whole.conditions, joinPath(path, 'conditions'), context))
  }
  const named = typeof raw.id === 'string' ? { stepId: raw.id.slice(0, 64) } : {}
  const marked = faults.map((fault) => ({ ...named, ...fault }))
  if (faults.length > 0) return { step: standIn(whole), readable: false, faults: marked }
  return { step: filled(whole), readable: true, faults: marked }
}

/**
 * Returns the ids of the EMAIL steps among raw steps. Filters of any step may name them, so they are collected first.
 */
export function emailStepIds(steps: readonly unknown[]): Set<string> {
  const ids = steps.map((step) => (isRecord(step) && step.type === 'EMAIL' ? step.id : undefined))
  return new Set(ids.filter((id) => typeof id === 'string'))
}

/** Returns a message for a word that is not among `known`, with a suggestion, or null if it is. */
function wordFault(what: string, word: unknown, known: readonly string[]): string | null {
  if (typeof word !== 'string') return `must be a ${what}, one of ${known.join(', ')}, not ${kindOf(word)}`
  if (known.includes(word)) return null
  return `there is no ${what} ${JSON.stringify(word.slice(0, 64))}; ${didYouMean(word, known)}`
}

/**
 * Refuses ids such as "constructor": every object inherits a member of that name, so a look-up by id would find that.
 */
export function idFaults(id: unknown, path: string): Fault[] {
  if (typeof id !== 'string' || !(id in {})) return []
  return [
    { path: joinPath(path, 'id'), message: `"${id}" is a name that every object has; choose another id` },
  ]
}

function memberFaults(step: Raw, path: string): Fault[] {
  const wrongType = wordFault('step type', step.type, STEP_TYPES)
  const faults = [...schemaFaults(AnyStep, step, { path }), ...idFaults(step.id, path)]
  return wrongType === null ? faults : [...faults, { path: joinPath(path, 'type'), message: wrongType }]
}

function configFaults(step: Raw, path: string, context: FilterContext): Fault[] {
  const type = STEP_TYPES.find((known) => known === step.type)
  if (type === undefined || step.config === undefined) return []
  const at = joinPath(path, 'config')
  if (!isRecord(step.config)) return [{ path: at, message: `must be an object, not ${kindOf(step.config)}` }]
  const choice = configSchema(type, step.config, at)
  if ('fault' in choice) return [choice.fault]
  const shape = schemaFaults(choice.schema, step.config, { path: at })
  return [
    ...shape,
    ...filterFaults(type, step.config, at, context),
    ...timeFaults(type, step.config, at),
    ...runEventFaults(type, step.config, at),
    ...(shape.length === 0 ? detailFaults(type, step.config, at) : []),
  ]
}

function configSchema(type: StepType, config: Raw, path: string): ConfigChoice {
  switch (type) {
    case 'TRIGGER':
      return chosen(TRIGGER_CONFIGS, 'trigger type', config.type, joinPath(path, 'type'), TRIGGER_TYPES)
    case 'WAIT_UNTIL':
      return chosen(WAIT_UNTIL_CONFIGS, 'WAIT_UNTIL mode', config.mode, joinPath(path, 'mode'), WAIT_MODES)
    default:
      return { schema: STEP_CONFIGS[type] }
  }
}

function chosen(
  schemas: Readonly<Record<string, TSchema>>,
  what: string,
  word: unknown,
  path: string,
  known: readonly string[],
): ConfigChoice {
  const message = wordFault(what, word, known)
  const schema = message === null && typeof word === 'string' ? schemas[word] : undefined
  return schema ? { schema } : { fault: { path, message: message ?? `is not a ${what}` } }
}

function filterFaults(type: StepType, config: Raw, path: string, context: FilterContext): Fault[] {
  const faults: Fault[] = []
  if (Array.isArray(config.where)) faults.push(...validateWhere(config.where, joinPath(path, 'where')))
  // Nothing has been sent when a trigger fires, so its filters cannot name a step's email.
  const onEntry: FilterContext = { ...context, emailSteps: new Set() }
  if (type === 'TRIGGER' && Array.isArray(config.filters)) {
    faults.push(...validateFilters(config.filters, joinPath(path, 'filters'), onEntry))
  }
  if (type === 'WAIT_UNTIL' && Array.isArray(config.filters)) {
    faults.push(...validateFilters(config.filters, joinPath(path, 'filters'), context))
  }
  if (type !== 'BRANCH' || !Array.isArray(config.paths)) return faults
  config.paths.forEach((branch: unknown, index) => {
    if (!isRecord(branch) || !Array.isArray(branch.filters)) return
    const at = joinPath(joinPath(joinPath(path, 'paths'), index), 'filters')
    faults.push(...validateFilters(branch.filters, at, context))
  })
  return faults
}

/** Members of each type's configuration that are durations. */
const LENGTHS: { [Type in StepType]?: string[] } = {
  WAIT_UNTIL: ['timeout', 'offset'],
  TRIGGER: ['offset', 'inactiveFor'],
  THROTTLE: ['per'],
}

function timeFaults(type: StepType, config: Raw, path: string): Fault[] {
  const faults: Fault[] = []
  const isWindow = type === 'WAIT_UNTIL' && config.mode === 'TIME_WINDOW'
  if (!isWindow && typeof config.timezone === 'string' && !isTimeZone(config.timezone)) {
    faults.push({ path: joinPath(path, 'timezone'), message: timeZoneSentence(config.timezone) })
  }
  if (type === 'WAIT') faults.push(...lengthFaults(config, path))
  for (const member of LENGTHS[type] ?? []) {
    if (isRecord(config[member])) faults.push(...lengthFaults(config[member], joinPath(path, member)))
  }
  if (isWindow) faults.push(...windowFaults(config, path))
  if (type === 'TRIGGER' && config.type === 'SCHEDULE' && typeof config.cron === 'string') {
    const wrong = cronFault(config.cron)
    if (wrong !== null) faults.push({ path: joinPath(path, 'cron'), message: wrong })
  }
  if (type === 'EMAIL' && isRecord(config.sendWindow)) {
    faults.push(...windowFaults(config.sendWindow, joinPath(path, 'sendWindow')))
  }
  if (type === 'WAIT_UNTIL' && typeof config.date === 'string' && readMoment(config.date, 'UTC') === null) {
    const message = `${JSON.stringify(config.date.slice(0, 40))} is not an ISO date; write "2025-01-31" or "2025-01-31T09:00:00Z"`
    faults.push({ path: joinPath(path, 'date'), message })
  }
  return faults
}

/** Refuses an EVENT trigger for an event of runs, which would never fire. */
function runEventFaults(type: StepType, { type: trigger, eventType }: Raw, path: string): Fault[] {
  const event = RUN_EVENTS.find((known) => known === eventType)
  if (type !== 'TRIGGER' || trigger !== 'EVENT' || event === undefined) return []
  const message = `${event} starts workflows by a trigger {"type": "WORKFLOW_EVENT", "workflowId": "wf_…", "event": "${event}"}; write that`
  return [{ path: joinPath(path, 'eventType'), message }]
}

/** Checks what the schema of a window cannot express: `start` and `end` differ, and the time zone exists. */
export function windowFaults({ start, end, timezone }: Raw, path: string): Fault[] {
  const faults: Fault[] = []
  if (typeof start === 'string' && start === end) {
    const message = `is the start as well; a window from ${start} to ${start} never says when it is closed`
    faults.push({ path: joinPath(path, 'end'), message })
  }
  if (typeof timezone === 'string' && !isTimeZone(timezone)) {
    faults.push({ path: joinPath(path, 'timezone'), message: timeZoneSentence(timezone) })
  }
  return faults
}

/** Returns the message for an unknown time zone. */
export function timeZoneSentence(name: string): string {
  return `${JSON.stringify(name.slice(0, 64))} is not a time zone; write an IANA name, such as "Europe/Paris"`
}

/** Returns a fault if a duration exceeds the longest wait. A duration of another shape is left to the schema. */
export function lengthFaults({ amount, unit }: Raw, path: string): Fault[] {
  const known = DURATION_UNITS.find((candidate) => candidate === unit)
  if (typeof amount !== 'number' || known === undefined) return []
  const most = AUTOMATION_LIMITS.waitSeconds
  if (durationMilliseconds({ amount, unit: known }) <= most * 1000) return []
  return [{ path: joinPath(path, 'amount'), message: `a wait lasts at most ${most / 86_400} days` }]
}

function filled(step: Raw): Step {
  const choice = configSchema(
    STEP_TYPES.find((type) => type === step.type) ?? 'EXIT',
    isRecord(step.config) ? step.config : {},
    '',
  )
  const config = 'schema' in choice ? withDefaults(choice.schema, step.config) : step.config
  const whole = withDefaults(AnyStep, step)
  // The cast is safe: the schemas of the step and of its configuration have accepted it.
  return { ...(whole as object), config } as Step
}

/** Makes a step with the id and type of the raw step, where they can be read, and an empty configuration. */
function standIn(step: Raw): Step {
  const type = STEP_TYPES.find((known) => known === step.type) ?? 'ADD_TAG'
  // The cast is safe: of an unreadable step, only id and type are ever read.
  return { id: typeof step.id === 'string' ? step.id : '', type, config: {} } as unknown as Step
}
