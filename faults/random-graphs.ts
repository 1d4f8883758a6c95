/** A random workflow: `entry`, and the input of `configure_workflow_draft`. */
export type RandomGraph = {
  entry: Entry
  steps: RandomStep[]
  edges: Edge[]
  settings: object
  successGoals: Goal[]
}

/**
 * The way people enter: by hand, by an event, by a tag that is added or removed, or by a value of the field `came`.
 * Event, tag and value belong to this graph alone.
 */
export type Entry =
  | { by: 'hand' }
  | { by: 'event'; eventType: string }
  | { by: 'tag' | 'untag'; tagName: string }
  | { by: 'field'; value: string }

/** Things outside of the graph to which it refers. */
export type Surroundings = {
  /** A server that accepts requests at `/taken` and refuses them permanently at `/refused`. */
  url: string
  /** The recipient of NOTIFY. */
  team: string
  /** A workflow for START_WORKFLOW and STOP_WORKFLOW. */
  otherWorkflowId: string
}

type RandomStep = { id: string; type: string; config: object; onError?: string; conditions?: object[] }
type Edge = { from: string; to: string; port: string }
type Goal = { id: string; name: string; windowDays: number; countFrom: string; exitOnReach: boolean }
/** Everything drawn so far to which later steps and filters may refer. */
type Drawing = {
  random: () => number
  around: Surroundings
  emails: string[]
  waits: string[]
  goals: Goal[]
  /** Tags and events that filters may name. */
  tags: string[]
  events: string[]
  /** Whether a step already turns runs away: a refused request or a full throttle. */
  turnsAway: boolean
}
type Made = { config: object; ports: string[] }

const TAGS = ['red', 'green', 'blue']
const EVENTS = ['MADE_ONE', 'MADE_TWO']
/** Events that steps and entries cause besides `HEARD`, for filters. */
const CHANGES = ['TAG_REMOVED', 'FIELD_UPDATED']
/** Events that a run causes itself: by steps immediately, and by email while the run waits. */
const HEARD = [...EVENTS, 'TAG_ADDED', 'EMAIL_SENT', 'WEBHOOK_EXECUTED']
/** The sum of two of these exceeds the largest number, so a second increment of the field is refused. */
export const HUGE = 1.7e308
/** The limit of a THROTTLE that lets every run pass. */
const AMPLE = 1_000
const LEAST_STEPS = 4
const MORE_STEPS = 12

/**
 * Returns a valid random graph with steps of every type. Each step is connected to ports of earlier ones, so all can be
 * reached and only JUMP leads back: to a wait, and at most twice. The fields `plan`, `points`, `passes`, `huge`,
 * `came`, `due` and `over` must exist, and `over` must be further in the past than any offset. Each UPDATE_FIELD that
 * is not refused adds one to `passes`. `name` distinguishes its entry from those of other graphs.
 */
export function randomGraph(random: () => number, name: string, around: Surroundings): RandomGraph {
  const entry = drawEntry(random, name)
  const tags = 'tagName' in entry ? [...TAGS, entry.tagName] : TAGS
  const events = [...HEARD, ...CHANGES, ...('eventType' in entry ? [entry.eventType] : [])]
  const drawing: Drawing = {
    random,
    around,
    emails: [],
    waits: [],
    goals: [],
    tags,
    events,
    turnsAway: false,
  }
  if (random() < 0.4) drawing.goals.push(...goals(drawing))
  const steps: RandomStep[] = [{ id: 'start', type: 'TRIGGER', config: drawTrigger(drawing, entry) }]
  const edges: Edge[] = []
  let open = [{ from: 'start', port: 'next' }]
  const size = LEAST_STEPS + Math.floor(random() * MORE_STEPS)
  for (let number = 1; number <= size && open.length > 0; number++) {
    const type = drawType(drawing)
    const id = `${type.toLowerCase()}-${number}`
    const { config, ports } = MAKE[type](drawing)
    const conditions = random() < 0.2 ? filters(drawing) : []
    const onError = pick(random, ['FAIL', 'FAIL', 'CONTINUE', 'EXIT'])
    steps.push({ id, type, config, onError, ...(conditions.length > 0 && { conditions }) })
    const taken = new Set([pick(random, open)])
    // Sometimes two ways join at one step.
    if (random() < 0.3) taken.add(pick(random, open))
    for (const { from, port } of taken) edges.push({ from, port, to: id })
    open = [...open.filter((each) => !taken.has(each)), ...ports.map((port) => ({ from: id, port }))]
    if (type === 'EMAIL') drawing.emails.push(id)
    if (type === 'WAIT' && conditions.length === 0) drawing.waits.push(id)
  }
  const on = pick(random, HEARD)
  const rule = { id: 'made', on, ...whereOf(random, on) }
  const lateSend = {
    maxLateness: { amount: 1, unit: 'MINUTES' },
    action: pick(random, ['SEND', 'SKIP', 'EXIT']),
  }
  const settings = {
    ...(random() < 0.3 && { exitRules: [rule] }),
    // A fast-forwarded run is never late, so this setting has no effect on it.
    ...(random() < 0.5 && { lateSend }),
    ...(random() < 0.2 && { exitOnUnsubscribe: false }),
  }
  // A window that counts from the first email needs an email in the graph.
  const successGoals = drawing.goals.map((goal) =>
    drawing.emails.length > 0 ? goal : { ...goal, countFrom: 'ENTRY' },
  )
  return { entry, steps, edges, settings, successGoals }
}

function drawEntry(random: () => number, name: string): Entry {
  return pick(random, [
    { by: 'hand' },
    { by: 'event', eventType: `ENTER_${name}` },
    { by: 'tag', tagName: `Enter ${name}` },
    { by: 'untag', tagName: `Enter ${name}` },
    { by: 'field', value: name },
  ])
}

function drawTrigger(drawing: Drawing, entry: Entry): object {
  const some = drawing.random() < 0.2 ? { filters: filters(drawing) } : {}
  if (entry.by === 'hand') return { type: 'MANUAL', ...some }
  if (entry.by === 'event') return { type: 'EVENT', eventType: entry.eventType, ...some }
  if (entry.by === 'field') return { type: 'FIELD_UPDATED', field: 'came', to: entry.value, ...some }
  const type = entry.by === 'tag' ? 'TAG_ADDED' : 'TAG_REMOVED'
  return { type, tagNames: [entry.tagName.toUpperCase()], ...some }
}

/** Returns one goal reached by an event and one reached by filters. */
function goals(drawing: Drawing): Goal[] {
  const { random } = drawing
  const goal = (id: string, means: object): Goal => ({
    id,
    name: id,
    ...means,
    windowDays: 90,
    countFrom: pick(random, ['ENTRY', 'FIRST_EMAIL']),
    exitOnReach: random() < 0.5,
  })
  const event = pick(random, HEARD)
  return [
    goal('by-event', { event, ...whereOf(random, event) }),
    goal('by-filters', { filters: filters(drawing) }),
  ]
}

const next = (config: object): Made => ({ config, ports: ['next'] })
/**
 * With goals, waits are counted in hours: no way may be longer than a goal's window, because the engine's waits are
 * fast-forwarded.
 */
const days = ({ random, goals: { length } }: Drawing) => ({
  amount: 1 + Math.floor(random() * 20),
  unit: length > 0 ? 'HOURS' : 'DAYS',
})

const MAKE = {
  EMAIL: ({ random }) =>
    next({
      subject: 'Hello {{name}}',
      content: 'Hello',
      ...(random() < 0.2 && { transactional: true }),
      ...(random() < 0.2 && { sendWindow: { start: '09:00', end: '09:30' } }),
    }),
  WAIT: (drawing) => {
    const byCalendar = drawing.random() < 0.5 && drawing.goals.length === 0
    return next({ ...days(drawing), ...(byCalendar && { at: '09:00', days: ['MON', 'THU'] }) })
  },
  WAIT_UNTIL: (drawing) => ({ config: drawWaitUntil(drawing), ports: ['next', 'timeout'] }),
  BRANCH: (drawing) => {
    const paths = ['a', 'b'].map((id) => ({ id, filters: filters(drawing) }))
    return { config: { paths }, ports: ['a', 'b', 'else'] }
  },
  SPLIT: ({ random }) => {
    const variants = ['a', 'b'].map((id) => ({ id, weight: 1 + Math.floor(random() * 3) }))
    const holdout = random() < 0.4 ? { holdoutVariantId: pick(random, ['a', 'b']) } : {}
    return { config: { variants, ...holdout }, ports: ['a', 'b', 'else'] }
  },
  ADD_TAG: ({ random }) => next({ tagNames: [pick(random, TAGS)] }),
  REMOVE_TAG: ({ random }) => next({ tagNames: [pick(random, TAGS)] }),
  UPDATE_FIELD: ({ random }) =>
    next({
      increment: { passes: 1, points: Math.floor(random() * 10), ...(random() < 0.15 && { huge: HUGE }) },
      ...(random() < 0.3 && { set: { plan: pick(random, ['free', 'pro']) } }),
    }),
  CREATE_EVENT: ({ random }) => next({ eventType: pick(random, EVENTS) }),
  GOAL: ({ random, goals: drawn }) =>
    next({ goalId: pick(random, drawn).id, ifUnmet: pick(random, ['CONTINUE', 'EXIT', 'WAIT', 'WAIT']) }),
  THROTTLE: (drawing) => {
    const { random } = drawing
    const per = { amount: 1, unit: 'HOURS' }
    if (random() < 0.3) return next({ limit: pick(random, [1, AMPLE]), per })
    const limit = turnAway(drawing) ? 1 : AMPLE
    return { config: { limit, per, overflow: 'SKIP' }, ports: ['next', 'skipped'] }
  },
  JUMP: ({ random, waits }) =>
    next({ toStepId: pick(random, waits), maxTimes: 1 + Math.floor(random() * 2) }),
  SUBSCRIPTION: () => next({ action: 'UNSUBSCRIBE' }),
  NOTIFY: ({ around }) => next({ to: around.team, subject: 'See {{name}}', markdown: 'Look.' }),
  WEBHOOK: (drawing) => {
    const { random, around } = drawing
    const url = `${around.url}/${turnAway(drawing) ? 'refused' : 'taken'}`
    return { config: { url, method: pick(random, ['GET', 'POST']), retries: 0 }, ports: ['next', 'failed'] }
  },
  START_WORKFLOW: ({ around }) => next({ workflowId: around.otherWorkflowId }),
  STOP_WORKFLOW: ({ around }) => next({ workflowId: around.otherWorkflowId }),
  EXIT: () => ({ config: { reason: 'drawn' }, ports: [] }),
} as const satisfies Record<string, (drawing: Drawing) => Made>

/** Decides whether a step is to turn runs away. At most one step of a graph does. */
function turnAway(drawing: Drawing): boolean {
  if (drawing.turnsAway || drawing.random() >= 0.4) return false
  drawing.turnsAway = true
  // The simulator shows each alternative of a step once, so a run must not reach this step twice by a JUMP.
  drawing.waits = []
  return true
}

/** The relative frequencies of the types. */
const WEIGHTS: Readonly<Record<keyof typeof MAKE, number>> = {
  EMAIL: 4,
  WAIT: 4,
  WAIT_UNTIL: 4,
  BRANCH: 6,
  SPLIT: 2,
  ADD_TAG: 3,
  REMOVE_TAG: 1,
  UPDATE_FIELD: 4,
  CREATE_EVENT: 3,
  GOAL: 4,
  THROTTLE: 2,
  JUMP: 3,
  NOTIFY: 1,
  WEBHOOK: 3,
  START_WORKFLOW: 1,
  STOP_WORKFLOW: 1,
  SUBSCRIPTION: 0.5,
  EXIT: 0.5,
}
// `Object.keys` is typed `string[]`; the keys of this literal are the types.
const TYPES = (Object.keys(WEIGHTS) as (keyof typeof MAKE)[]).flatMap((type) =>
  Array.from({ length: WEIGHTS[type] * 2 }, () => type),
)

function drawType({ random, waits, goals: { length } }: Drawing): keyof typeof MAKE {
  const type = pick(random, TYPES)
  if (type === 'GOAL' && length === 0) return 'BRANCH'
  return type === 'JUMP' && waits.length === 0 ? 'WAIT' : type
}

function drawWaitUntil(drawing: Drawing): object {
  const { random } = drawing
  const timeout = days(drawing)
  const eventType = pick(random, HEARD)
  const near = [
    { mode: 'DATE', date: '2020-01-01' },
    { mode: 'TIME_WINDOW', start: '09:00', end: '09:30' },
    {
      mode: 'EVENT',
      eventType,
      ...whereOf(random, eventType),
      scope: pick(random, ['STEP', 'RUN']),
      timeout,
    },
    { mode: 'CONDITION', filters: filters(drawing), timeout },
  ]
  if (drawing.goals.length > 0) return pick(random, near)
  return pick(random, [
    ...near,
    { mode: 'DATE', date: '2030-01-01T09:00' },
    {
      mode: 'FIELD_DATE',
      offset: days(drawing),
      direction: pick(random, ['BEFORE', 'AFTER']),
      ifMissing: pick(random, ['CONTINUE', 'TIMEOUT', 'EXIT']),
      ...pick(random, [
        // `due` may still be ahead in the engine, where earlier waits are fast-forwarded, so a past date must lead the
        // same way.
        { field: 'due', ifPast: 'CONTINUE' },
        { field: 'over', ifPast: pick(random, ['CONTINUE', 'TIMEOUT', 'EXIT']) },
      ]),
    },
  ])
}

/** Returns a condition on the event's data, or none. */
function whereOf(random: () => number, event: string): object {
  if (random() < 0.5) return {}
  if (event === 'TAG_ADDED')
    return { where: [{ path: 'tag', operator: 'equals', value: pick(random, TAGS) }] }
  if (event === 'WEBHOOK_EXECUTED')
    return { where: [{ path: 'succeeded', operator: 'equals', value: random() < 0.5 }] }
  return {}
}

function filters(drawing: Drawing): object[] {
  const { random } = drawing
  const one = filter(drawing)
  if (random() < 0.15) return [{ not: one }]
  if (random() < 0.3) return [{ any: [one, filter(drawing)] }]
  return [one]
}

/** Returns a filter that does not depend on the time, so that waiting and fast-forwarding give the same result. */
function filter({ random, emails, tags, events }: Drawing): object {
  const stepId = emails.length === 0 ? null : pick(random, emails)
  return pick(random, [
    { field: 'customFields.plan', operator: 'equals', value: pick(random, ['free', 'pro']) },
    { field: 'customFields.points', operator: 'gte', value: Math.floor(random() * 12) },
    { field: 'tags', operator: pick(random, ['has_any', 'has_none']), value: [pick(random, tags)] },
    { field: pick(random, ['entry.tag', 'entry.field', 'customFields.came']), operator: 'is_set' },
    { field: 'status', operator: 'equals', value: 'SUBSCRIBED' },
    { field: 'emailCount', operator: 'gte', value: 1 + Math.floor(random() * 2) },
    { field: 'event', operator: 'performed', event: pick(random, events) },
    { field: 'random', operator: 'percent', value: 50, seed: 'drawn' },
    ...(stepId === null ? [] : [{ field: 'campaign', operator: 'received', value: { stepId } }]),
    ...(stepId === null ? [] : [{ field: 'campaign', operator: 'not_clicked', value: { stepId } }]),
  ])
}

function pick<Item>(random: () => number, items: readonly Item[]): Item {
  const item = items[Math.floor(random() * items.length)]
  if (item === undefined) throw new Error('there is nothing to pick from')
  return item
}
