import type { AUTOMATION_LIMITS, Duration, DurationUnit } from '../schema/automation-parts.ts'
import type { TriggerType } from '../schema/automation-triggers.ts'
import type { Definition, Settings, Step } from '../schema/automation.ts'

/** One fault of a graph; `path` is a JSON path into the definition. */
export type GraphFault = { stepId?: string; path: string; message: string }

/** The port by which a JUMP jumps. No edge can have it, because no id ends with a space. */
export const JUMP_PORT = 'jump '

/** A definition prepared for walking: steps by id, and the target step id of each port by step id. */
export type Graph = {
  steps: ReadonlyMap<string, Step>
  targets: ReadonlyMap<string, ReadonlyMap<string, string>>
}

type Options = {
  /** Whether to check completeness as well: an email needs a subject and content. */
  publishing: boolean
  /** Positions of steps and edges that their own schema has refused, which are not checked again. */
  unreadable?: { steps: ReadonlySet<number>; edges: ReadonlySet<number> }
}

// Workflow code may import only types of `schema`, so these limits are repeated here. Their types keep them equal.
const MAX_STEPS: (typeof AUTOMATION_LIMITS)['steps'] = 200
const MAX_EDGES: (typeof AUTOMATION_LIMITS)['edges'] = 1000
const MINUTE = 60_000
const UNIT_MILLISECONDS: Readonly<Record<DurationUnit, number>> = {
  SECONDS: 1000,
  MINUTES: MINUTE,
  HOURS: 60 * MINUTE,
  DAYS: 1440 * MINUTE,
  WEEKS: 10_080 * MINUTE,
}

/** Returns a duration in milliseconds. A day has 24 hours. */
export function durationMilliseconds(duration: Duration): number {
  return duration.amount * UNIT_MILLISECONDS[duration.unit]
}

/** Returns the ports by which edges can leave a step, the usual one first. An EXIT has none. */
export function ports(step: Step): string[] {
  const choices = choicesOf(step)
  if (choices) return [...choices.map(({ id }) => id), 'else']
  if (step.type === 'EXIT') return []
  if (step.type === 'WAIT_UNTIL') return ['next', 'timeout']
  if (step.type === 'WEBHOOK') return ['next', 'failed']
  if (step.type === 'THROTTLE' && step.config.overflow === 'SKIP') return ['next', 'skipped']
  return ['next']
}

/**
 * Returns the port by which a step is left when its conditions skip it, or after an error with `onError: "CONTINUE"`.
 */
export function skipPort(step: Step): string {
  return choicesOf(step) ? 'else' : 'next'
}

/** Returns the paths or variants among which a step chooses, whose ids are its ports; null for other steps. */
function choicesOf(step: Step): readonly { id: string }[] | null {
  if (step.type === 'BRANCH') return step.config.paths
  return step.type === 'SPLIT' ? step.config.variants : null
}

/** Indexes a definition for walking it many times. */
export function indexGraph(definition: Definition): Graph {
  const targets = new Map<string, Map<string, string>>()
  for (const edge of definition.edges) {
    const from = targets.get(edge.from) ?? new Map<string, string>()
    targets.set(edge.from, from)
    if (!from.has(edge.port)) from.set(edge.port, edge.to)
  }
  for (const { id, type, config } of definition.steps) {
    if (type === 'JUMP') targets.set(id, new Map([...(targets.get(id) ?? []), [JUMP_PORT, config.toStepId]]))
  }
  return { steps: new Map(definition.steps.map((step) => [step.id, step])), targets }
}

/**
 * Returns the step to which a port leads, or undefined, which completes the run. An unconnected `timeout` port of a wait
 * leads where `next` leads; a path or variant may have that id too.
 */
export function nextStep(graph: Graph, stepId: string, port = 'next'): Step | undefined {
  const targets = graph.targets.get(stepId)
  const isTimeout = port === 'timeout' && graph.steps.get(stepId)?.type === 'WAIT_UNTIL'
  const to = targets?.get(port) ?? (isTimeout ? targets?.get('next') : undefined)
  return to === undefined ? undefined : graph.steps.get(to)
}

/** Returns the TRIGGER steps in the order of the definition. */
export function entrySteps(definition: Definition): (Step & { type: 'TRIGGER' })[] {
  return definition.steps.filter((step) => step.type === 'TRIGGER')
}

/**
 * Returns the trigger at which an entry by hand begins: a MANUAL one if there is any, else the first. Entry by hand is
 * always allowed.
 */
export function manualEntry(definition: Definition): (Step & { type: 'TRIGGER' }) | undefined {
  const entries = entrySteps(definition)
  return entries.find((step) => step.config.type === 'MANUAL') ?? entries[0]
}

const STATE_TRIGGERS: ReadonlySet<TriggerType> = new Set([
  'SUBSCRIBED',
  'UNSUBSCRIBED',
  'TAG_ADDED',
  'TAG_REMOVED',
  'FIELD_UPDATED',
  'SEGMENT_ENTERED',
  'SEGMENT_EXITED',
])

/** Returns the re-entry rule: as set, else ONCE if any trigger is on a state, else AFTER_EXIT. */
export function reEntryOf(definition: Definition, settings: Settings): NonNullable<Settings['reEntry']> {
  if (settings.reEntry) return settings.reEntry
  const onState = entrySteps(definition).some((step) => STATE_TRIGGERS.has(step.config.type))
  return { mode: onState ? 'ONCE' : 'AFTER_EXIT' }
}

/** Returns all faults of the graph. Without any, it may be saved or, if checked for publishing, run. */
export function validateGraph(definition: Definition, options: Options): GraphFault[] {
  const { unreadable } = options
  const readable = (position: number) => !unreadable?.steps.has(position)
  const size = sizeFaults(definition)
  if (size.length > 0) return size
  return [
    ...idFaults(definition),
    ...edgeFaults(definition, readable, (position) => !unreadable?.edges.has(position)),
    ...entryFaults(definition),
    // An unreadable edge may be the one that leads to a step, so reachability is unknown.
    ...(unreadable?.edges.size ? [] : reachFaults(definition)),
    ...cycleFaults(definition, readable),
    ...choiceFaults(definition, readable),
    ...jumpFaults(definition, readable),
    ...(options.publishing ? emailFaults(definition, readable) : []),
  ]
}

/** Checks the number of steps and edges. A graph that is too large is not checked any further. */
function sizeFaults({ steps, edges }: Definition): GraphFault[] {
  const faults: GraphFault[] = []
  const most = (of: string, limit: number) =>
    faults.push({ path: of, message: `a workflow has at most ${limit} ${of}, this one has more` })
  if (steps.length > MAX_STEPS) most('steps', MAX_STEPS)
  if (edges.length > MAX_EDGES) most('edges', MAX_EDGES)
  return faults
}

function idFaults({ steps }: Definition): GraphFault[] {
  const first = new Map<string, number>()
  const faults: GraphFault[] = []
  steps.forEach(({ id }, position) => {
    if (id === '') return
    const earlier = first.get(id)
    if (earlier === undefined) first.set(id, position)
    else faults.push(stepFault(id, `steps[${position}].id`, `steps[${earlier}] has the id "${id}" already`))
  })
  return faults
}

type Readable = (position: number) => boolean

function edgeFaults({ steps, edges }: Definition, readable: Readable, readableEdge: Readable): GraphFault[] {
  const positions = new Map(steps.map((step, position) => [step.id, position]))
  positions.delete('')
  const taken = new Map<string, number>()
  const faults: GraphFault[] = []
  edges.forEach((edge, position) => {
    if (!readableEdge(position)) return
    const path = `edges[${position}]`
    const from = positions.get(edge.from)
    const to = positions.get(edge.to)
    const target = to === undefined ? undefined : steps[to]
    if (from === undefined) faults.push({ path: `${path}.from`, message: `there is no step "${edge.from}"` })
    if (to === undefined) {
      const known = from === undefined ? {} : { stepId: edge.from }
      faults.push({ ...known, path: `${path}.to`, message: `there is no step "${edge.to}"` })
    }
    if (target?.type === 'TRIGGER') {
      const message = `"${edge.to}" is a TRIGGER; triggers begin a run and no edge may lead to them`
      faults.push(stepFault(edge.to, `${path}.to`, message))
    }
    const source = from === undefined ? undefined : steps[from]
    if (!source || from === undefined) return
    if (readable(from)) faults.push(...portFaults(source, edge.port, `${path}.port`))
    const port = JSON.stringify([edge.from, edge.port])
    const earlier = taken.get(port)
    if (earlier === undefined) taken.set(port, position)
    else {
      const message = `edges[${earlier}] leaves "${edge.from}" by the port "${edge.port}" already; a port leads to one step`
      faults.push(stepFault(edge.from, path, message))
    }
  })
  return faults
}

function portFaults(step: Step, port: string, path: string): GraphFault[] {
  const known = ports(step)
  if (known.includes(port)) return []
  const message =
    known.length === 0
      ? `"${step.id}" is an EXIT; no edge leaves it`
      : `"${step.id}" (${step.type}) has no port "${port}"; its ports are ${known.join(', ')}`
  return [stepFault(step.id, path, message)]
}

function entryFaults(definition: Definition): GraphFault[] {
  if (definition.steps.some((step) => step.type === 'TRIGGER')) return []
  return [
    { path: 'steps', message: 'there is no TRIGGER; add one, for example {"type": "MANUAL"}, as the entry' },
  ]
}

function reachFaults(definition: Definition): GraphFault[] {
  const next = neighbours(definition)
  const reached = new Set(definition.steps.filter((step) => step.type === 'TRIGGER').map((step) => step.id))
  if (reached.size === 0) return []
  // The loop over the set also visits ids that are added while it runs.
  for (const id of reached) for (const to of next.get(id) ?? []) reached.add(to)
  const faults: GraphFault[] = []
  definition.steps.forEach((step, position) => {
    if (step.id === '' || reached.has(step.id)) return
    faults.push(
      stepFault(step.id, `steps[${position}]`, `no TRIGGER leads to "${step.id}"; connect or remove it`),
    )
  })
  return faults
}

/** Requires in each cycle a WAIT of at least a minute without conditions, so that no run goes round without a pause. */
function cycleFaults(definition: Definition, readable: Readable): GraphFault[] {
  const brakes = new Set(
    definition.steps
      .filter((step, position) => !readable(position) || brakesCycle(step))
      .map((step) => step.id),
  )
  return cycles(neighbours(definition), brakes).map((cycle) => {
    const [first = ''] = cycle
    const position = definition.steps.findIndex((step) => step.id === first)
    const message = `the cycle ${cycle.join(' → ')} → ${first} has no WAIT of at least a minute without conditions; add one`
    return stepFault(first, `steps[${position}]`, message)
  })
}

function brakesCycle(step: Step): boolean {
  if (step.type === 'EXIT') return true
  return step.type === 'WAIT' && !step.conditions?.length && durationMilliseconds(step.config) >= MINUTE
}

/** Checks the ids of paths and variants: they are ports, so each must be unique and none may be `else`. */
function choiceFaults({ steps }: Definition, readable: Readable): GraphFault[] {
  return steps.flatMap((step, position) => {
    const choices = readable(position) ? choicesOf(step) : null
    const [member, noun] = step.type === 'SPLIT' ? ['variants', 'variant'] : ['paths', 'path']
    const seen = new Set(['else'])
    return (choices ?? []).flatMap(({ id }, index) => {
      if (!seen.has(id)) {
        seen.add(id)
        return []
      }
      const message =
        id === 'else' ? `"else" is the port when no ${noun} is taken` : `the ${noun} id "${id}" is used twice`
      const path = `steps[${position}].config.${member}[${index}].id`
      return [stepFault(step.id, path, `${message}; choose another id`)]
    })
  })
}

function jumpFaults({ steps }: Definition, readable: Readable): GraphFault[] {
  const types = new Map(steps.map(({ id, type }) => [id, type]))
  return steps.flatMap((step, position) => {
    if (step.type !== 'JUMP' || !readable(position)) return []
    const { toStepId } = step.config
    const path = `steps[${position}].config.toStepId`
    const target = types.get(toStepId)
    if (target === undefined) return [stepFault(step.id, path, `there is no step "${toStepId}"`)]
    if (target !== 'TRIGGER') return []
    return [stepFault(step.id, path, `"${toStepId}" is a TRIGGER; jump to the step after it`)]
  })
}

function emailFaults({ steps }: Definition, readable: Readable): GraphFault[] {
  return steps.flatMap((step, position) => {
    // An email that is named by its id is checked when it is frozen.
    if (step.type !== 'EMAIL' || !readable(position) || step.config.campaignId !== undefined) return []
    return (['subject', 'content'] as const)
      .filter((member) => isBlank(step.config[member]))
      .map((member) =>
        stepFault(
          step.id,
          `steps[${position}].config.${member}`,
          `the email has no ${member}; write one to publish it`,
        ),
      )
  })
}

/** Returns whether text is missing or blank. Content that is a document is checked elsewhere. */
function isBlank(value: unknown): boolean {
  return value === undefined || (typeof value === 'string' && value.trim() === '')
}

function neighbours({ steps, edges }: Definition): Map<string, string[]> {
  const next = new Map<string, string[]>(steps.filter(({ id }) => id !== '').map(({ id }) => [id, []]))
  for (const { from, to } of edges) if (next.has(to)) next.get(from)?.push(to)
  for (const { id, type, config } of steps) {
    // An unreadable step has an empty configuration, so `toStepId` may be undefined.
    if (type === 'JUMP' && next.has(config.toStepId)) next.get(id)?.push(config.toStepId)
  }
  return next
}

/**
 * Returns cycles of steps that pass no brake, each in walking order. If there is any such cycle, at least one is
 * returned.
 */
function cycles(next: ReadonlyMap<string, readonly string[]>, brakes: ReadonlySet<string>): string[][] {
  const found: string[][] = []
  const state = new Map<string, 'open' | 'done'>()
  const trail: string[] = []
  const visit = (id: string): void => {
    if (brakes.has(id)) return
    state.set(id, 'open')
    trail.push(id)
    for (const to of next.get(id) ?? []) {
      const seen = state.get(to)
      if (seen === 'open') found.push(trail.slice(trail.indexOf(to)))
      else if (seen === undefined) visit(to)
    }
    trail.pop()
    state.set(id, 'done')
  }
  for (const id of next.keys()) if (!state.has(id)) visit(id)
  return found
}

function stepFault(stepId: string, path: string, message: string): GraphFault {
  return { stepId, path, message }
}
