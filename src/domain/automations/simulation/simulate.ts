import { TIMED_TRIGGERS, type TriggerType } from '../../../../schema/automation-triggers.ts'
import type { StepOf } from '../../../../schema/automation.ts'
import type { SamplePerson, SimulatedEntry, Simulation } from '../../../../schema/simulation.ts'
import { entrySteps, indexGraph, manualEntry } from '../../../../temporal/graph.ts'
import { refuse } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { filtersOf, tagNamesOf } from '../../audience/check.ts'
import { loadReferences, type References } from '../../audience/references.ts'
import { typeOf } from '../../subscribers/fields.ts'
import type { TagRow } from '../../subscribers/tags.ts'
import type { Version } from '../definition/versions.ts'
import { decide, readEntry, type Refusal } from '../entry/enrolment.ts'
import { REFUSALS } from '../entry/enter-by-hand.ts'
import { readEarlierVariant } from '../steps/choices.ts'
import { createFiltering } from './filters.ts'
import { type Begun, fire, isIn } from './firing.ts'
import { momentIn, readConsent, readReal, readSample, readTags, type SimulatedPerson } from './person.ts'
import type { World } from './place.ts'
import { presentDeadEnds, presentWays } from './present.ts'
import { readEmails, readSource, type Source } from './source.ts'
import { NOBODY, type State } from './state.ts'
import { walkAll } from './walk.ts'

/** The input of a simulation: either `workflowId` or `definition`, for either `subscriberId` or `sample`. */
export type SimulationInput = {
  workflowId?: string | undefined
  definition?: unknown
  subscriberId?: string | undefined
  sample?: SamplePerson | undefined
  from?: string | undefined
}

/**
 * Walks through a workflow's draft, or any definition, for one person with a simulated clock, along every branch that
 * can be reached (decisions, section 12). Only reads: nothing is written or sent.
 */
export async function simulate(call: Call, input: SimulationInput): Promise<Simulation> {
  const { workflowId, definition, subscriberId, sample } = input
  if ((workflowId === undefined) === (definition === undefined)) {
    refuse('workflowId', 'or definition says what is simulated: send exactly one of them.')
  }
  if ((subscriberId === undefined) === (sample === undefined)) {
    refuse('subscriberId', 'and sample both say for whom to simulate: send exactly one of them.')
  }
  const from = input.from === undefined ? call.now.getTime() : momentIn('from', input.from, call)
  const source = await readSource(call, { workflowId, definition })
  const person = sample ? await readSample(call, sample, from) : await readReal(call, subscriberId ?? '')
  const { world, state } = await prepare(call, source, person, from)
  const begun: Begun[] = []
  for (const step of startsOf(source)) begun.push(await fire(world, step, state, from))
  const ways = await walkAll(world, begun, from)
  const timezone = person.timezone ?? world.timezone
  return {
    from: new Date(from).toISOString(),
    timezone,
    entries: await readEntries(call, source, person, world, begun, from),
    ways: presentWays(ways, timezone),
    deadEnds: presentDeadEnds(source.definition, world.graph, ways),
  }
}

/** Returns the triggers, beginning with the one by which an entry by hand would begin. */
function startsOf({ definition }: Source): StepOf<'TRIGGER'>[] {
  const first = manualEntry(definition)
  return [...(first ? [first] : []), ...entrySteps(definition).filter((step) => step !== first)]
}

async function prepare(
  call: Call,
  source: Source,
  person: SimulatedPerson,
  from: number,
): Promise<{ world: World; state: State }> {
  const { organization, em } = call
  const { definition, settings, goals } = source
  const { references, tags } = await readMentioned(call, source, person)
  const subject = {
    organizationId: organization.id,
    subscriberId: person.id,
    automationId: source.automationId ?? NOBODY,
    person: person.person,
    numbers: person.numbers,
    references,
  }
  const world: World = {
    graph: indexGraph(definition),
    settings,
    goals,
    enteredAt: from,
    timezone: settings.timezone ?? organization.timezone,
    subject,
    filtering: createFiltering(em, subject),
    timing: new Map(),
    emails: await readEmails(call, source, person),
    tags,
    earlier:
      isReal(person) && source.automationId !== null ? await readVariants(call, source, person.id) : null,
    consent: await readConsent(call, person),
  }
  return { world, state: firstState(person, references, tags) }
}

/** Loads the things and tags that filters, goals, triggers and steps name; for a sample, also its own tags. */
async function readMentioned(
  call: Call,
  { definition, goals }: Source,
  person: SimulatedPerson,
): Promise<{ references: References; tags: Map<string, TagRow> }> {
  const { id, timezone } = call.organization
  const references = await loadReferences(call.em, { organizationId: id, timezone }, [
    ...filtersOf(definition).map(({ filter }) => filter),
    ...goals.flatMap(({ filters = [] }) => filters),
    ...entrySteps(definition).flatMap(({ config }) =>
      'segmentId' in config ? [isIn(config.segmentId)] : [],
    ),
  ])
  const own = isReal(person) ? [] : person.tags
  const tags = await readTags(call, [...tagNamesOf(definition, goals), ...references.tags.keys(), ...own])
  for (const [name, tag] of tags) references.tags.set(name, tag.id)
  // Fields that do not exist get the type of the sample's value, as they would for a new subscriber.
  for (const [name, value] of Object.entries(person.fields)) {
    if (!references.fields.has(name)) references.fields.set(name, typeOf(value, timezone))
  }
  return { references, tags }
}

/** Makes the state of the person before any trigger has fired. */
function firstState(
  person: SimulatedPerson,
  references: References,
  tags: ReadonlyMap<string, TagRow>,
): State {
  return {
    entry: person.entry,
    begunBy: [],
    status: person.status,
    profile: {},
    fields: person.fields,
    fieldTypes: references.fields,
    tags: new Set(isReal(person) ? person.tags : person.tags.map((name) => tags.get(name)?.id ?? name)),
    revenue: Number(person.numbers['revenue'] ?? 0),
    emails: [],
    heldOutAt: null,
    events: [],
    jumps: new Map(),
    variants: new Map(),
    goals: new Set(),
  }
}

function isReal({ id }: SimulatedPerson): boolean {
  return id !== NOBODY
}

/** Reads the variants that an existing subscriber had before at each sticky SPLIT, by step id. */
async function readVariants(
  call: Call,
  { automationId, definition }: Source,
  subscriberId: string,
): Promise<Map<string, string>> {
  const known = new Map<string, string>()
  for (const { id, type, config } of definition.steps) {
    if (type !== 'SPLIT' || !config.sticky || automationId === null) continue
    const variant = await readEarlierVariant(call, { automationId, subscriberId }, id)
    if (variant !== null) known.set(id, variant)
  }
  return known
}

const TIMED: ReadonlySet<TriggerType> = new Set(TIMED_TRIGGERS)
const ENTRY_REFUSALS = {
  ...REFUSALS,
  FILTERS: 'does not fulfil the filters of the trigger',
  NOT_SUBSCRIBED: 'is not SUBSCRIBED, and such a trigger takes nobody else (settings.exitOnUnsubscribe)',
} as const

/** Returns for each trigger whether it would let the person in once it has fired, if the workflow were ACTIVE. */
async function readEntries(
  call: Call,
  source: Source,
  person: SimulatedPerson,
  world: World,
  begun: readonly Begun[],
  from: number,
): Promise<SimulatedEntry[]> {
  const refusalOf = await reEntry(call, source, person, world, from)
  const entries: SimulatedEntry[] = []
  for (const { id, config } of entrySteps(source.definition)) {
    const fired = begun.find(({ step }) => step.id === id)
    if (!fired) continue
    const { state, assumed } = fired
    const refusal = refusalOf(state)
    const isGone = source.settings.exitOnUnsubscribe && state.status !== 'SUBSCRIBED'
    const filters = config.filters ?? []
    const isTimed = TIMED.has(config.type)
    // The filters of a timed trigger choose among people before a run has data.
    const asked = isTimed ? { ...state, entry: {} } : state
    const isMeant =
      filters.length === 0 || (await world.filtering.firstHolding([{ id, filters }], asked, from)) !== null
    const reason = isGone && isTimed ? 'NOT_SUBSCRIBED' : isMeant ? refusal : 'FILTERS'
    const message = reason === null ? null : `The person ${ENTRY_REFUSALS[reason]}.`
    entries.push({ stepId: id, type: config.type, enters: reason === null, reason, message, assumed })
  }
  return entries
}

/** Returns a function that answers why re-entry would refuse the person in a state, or null. */
async function reEntry(
  call: Call,
  { automationId, definition, settings }: Source,
  { id: subscriberId }: SimulatedPerson,
  { graph }: World,
  from: number,
): Promise<(state: State) => Refusal | null> {
  const published = { ...definition, settings, successGoals: [], emails: {} }
  const own = { automationId: automationId ?? NOBODY }
  const version: Version = { ...own, id: NOBODY, number: 0, definition: published, graph }
  // A sample, or a definition without a workflow, has no entries, but may lack a key.
  const entry = await readEntry(call, { ...own, subscriberId })
  const idleMs = entry.idleMs === null ? null : entry.idleMs + from - call.now.getTime()
  return ({ entry: context }) => {
    const decided = decide({ version, context }, { ...entry, idleMs })
    return 'refusal' in decided ? decided.refusal : null
  }
}
