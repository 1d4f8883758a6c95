import Type, { type Static, type TSchema } from 'typebox'

import { EVENT_TYPE, Filters, WhereList } from './audience.ts'
import { closed, defaulted, oneOf } from './define.ts'
import { CONTENT_TYPES, EMAIL_LINE } from './values.ts'

/** The graph language of automations (decisions, section 6): what runs today, and by name what does not run yet. */
export const AUTOMATION_LIMITS = {
  steps: 200,
  edges: 1000,
  paths: 20,
  tagNames: 20,
  /** The longest wait: five years, in seconds. */
  waitSeconds: 1830 * 86_400,
} as const

export const STEP_TYPES = [
  'TRIGGER',
  'EMAIL',
  'WAIT',
  'WAIT_UNTIL',
  'BRANCH',
  'ADD_TAG',
  'REMOVE_TAG',
  'EXIT',
] as const
export type StepType = (typeof STEP_TYPES)[number]

export const TRIGGER_TYPES = [
  'SUBSCRIBED',
  'TAG_ADDED',
  'TAG_REMOVED',
  'SEGMENT_ENTERED',
  'SEGMENT_EXITED',
  'EVENT',
  'MANUAL',
] as const
export type TriggerType = (typeof TRIGGER_TYPES)[number]

export const WAIT_MODES = ['DATE', 'EVENT'] as const
export type WaitMode = (typeof WAIT_MODES)[number]

/** Known to the language but not built: each is refused by its name, so that nothing is silently ignored. */
export const NOT_AVAILABLE = {
  steps: [
    'SPLIT',
    'UPDATE_FIELD',
    'WEBHOOK',
    'GOAL',
    'CREATE_EVENT',
    'START_WORKFLOW',
    'STOP_WORKFLOW',
    'SUBSCRIPTION',
    'NOTIFY',
    'THROTTLE',
    'JUMP',
  ],
  triggers: [
    'UNSUBSCRIBED',
    'FIELD_UPDATED',
    'WORKFLOW_EVENT',
    'DATE_FIELD',
    'SCHEDULE',
    'INACTIVITY',
    'INBOUND_WEBHOOK',
  ],
  waitModes: ['FIELD_DATE', 'TIME_WINDOW', 'CONDITION'],
  settings: ['exitRules', 'sendWindow', 'lateSend'],
  emailMembers: ['sendWindow'],
} as const satisfies Record<string, readonly string[]>

export const DURATION_UNITS = ['SECONDS', 'MINUTES', 'HOURS', 'DAYS', 'WEEKS'] as const
export type DurationUnit = (typeof DURATION_UNITS)[number]
/** ISO weekdays, Monday first. */
export const WEEKDAYS = ['MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT', 'SUN'] as const
export type Weekday = (typeof WEEKDAYS)[number]
export const ON_ERROR = ['CONTINUE', 'EXIT', 'FAIL'] as const
export type OnError = (typeof ON_ERROR)[number]
export const RE_ENTRY_MODES = ['ONCE', 'EVERY_TIME', 'AFTER_EXIT', 'PER_KEY'] as const
/** What an event wait counts: only what comes while it waits, or everything since the run was entered. */
export const EVENT_SCOPES = ['STEP', 'RUN'] as const
/** When the time is over: go on by the port `timeout` (by `next` where that leads nowhere), or end the run. */
export const ON_TIMEOUT = ['CONTINUE', 'EXIT'] as const

/** The port an edge leaves by when it names none. */
export const NEXT_PORT = 'next'
/** The port of BRANCH when no path matches. */
export const ELSE_PORT = 'else'

// Printable, without outer white space: ids stand in logs, search attributes and error paths.
const ID_PATTERN =
  '^[^\\s\\u0000-\\u001f\\u007f]([^\\u0000-\\u001f\\u007f]{0,62}[^\\s\\u0000-\\u001f\\u007f])?$'
const Id = Type.String({ pattern: ID_PATTERN, description: 'At most 64 printable characters.' })
const Name = Type.String({ maxLength: 200 })
const Timezone = Type.String({ minLength: 1, maxLength: 64, description: 'An IANA time zone, Europe/Paris.' })
const TagNames = Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
  minItems: 1,
  maxItems: AUTOMATION_LIMITS.tagNames,
})
const EventType = Type.String({
  pattern: EVENT_TYPE.source,
  description: 'Upper case, as SUBSCRIBER_PAYMENT.',
})
const Amount = Type.Integer({ minimum: 1, maximum: AUTOMATION_LIMITS.waitSeconds })

/** A length of time in elapsed seconds; a day is 24 hours. */
export const Duration = closed({ amount: Amount, unit: oneOf(DURATION_UNITS) })
export type Duration = Static<typeof Duration>

const triggerFilters = { filters: Type.Optional(Filters) }
const tagTrigger = <const Name extends TriggerType>(type: Name) =>
  closed({ type: Type.Literal(type), tagNames: TagNames, ...triggerFilters })
const segmentTrigger = <const Name extends TriggerType>(type: Name) =>
  closed({
    type: Type.Literal(type),
    segmentId: Type.String({ maxLength: 200, description: 'seg_…' }),
    ...triggerFilters,
  })

/** What each type of trigger is configured with. */
export const TRIGGER_CONFIGS = {
  SUBSCRIBED: closed({ type: Type.Literal('SUBSCRIBED'), ...triggerFilters }),
  TAG_ADDED: tagTrigger('TAG_ADDED'),
  TAG_REMOVED: tagTrigger('TAG_REMOVED'),
  SEGMENT_ENTERED: segmentTrigger('SEGMENT_ENTERED'),
  SEGMENT_EXITED: segmentTrigger('SEGMENT_EXITED'),
  EVENT: closed({
    type: Type.Literal('EVENT'),
    eventType: EventType,
    where: Type.Optional(WhereList),
    ...triggerFilters,
  }),
  MANUAL: closed({ type: Type.Literal('MANUAL'), ...triggerFilters }),
} as const satisfies Record<TriggerType, TSchema>
export type TriggerConfig = { [Type in TriggerType]: Static<(typeof TRIGGER_CONFIGS)[Type]> }[TriggerType]

/** What each mode of WAIT_UNTIL is configured with. */
export const WAIT_UNTIL_CONFIGS = {
  DATE: closed({
    mode: Type.Literal('DATE'),
    date: Type.String({
      description: 'YYYY-MM-DD, or an ISO date and time; without an offset, in the time zone.',
    }),
    timezone: Type.Optional(Timezone),
  }),
  EVENT: closed({
    mode: Type.Literal('EVENT'),
    eventType: EventType,
    where: Type.Optional(WhereList),
    scope: defaulted(oneOf(EVENT_SCOPES), 'STEP'),
    timeout: Type.Optional(Duration),
    onTimeout: defaulted(oneOf(ON_TIMEOUT), 'CONTINUE'),
  }),
} as const satisfies Record<WaitMode, TSchema>
export type WaitUntilDateConfig = Static<typeof WAIT_UNTIL_CONFIGS.DATE>
export type WaitUntilEventConfig = Static<typeof WAIT_UNTIL_CONFIGS.EVENT>
export type WaitUntilConfig = WaitUntilDateConfig | WaitUntilEventConfig

/** An internal email by id, or its content in place; together they update that email. */
export const EmailConfig = closed({
  campaignId: Type.Optional(Type.String({ maxLength: 200, description: 'cmp_…' })),
  subject: Type.Optional(Type.String({ maxLength: EMAIL_LINE })),
  preview: Type.Optional(Type.String({ maxLength: EMAIL_LINE })),
  content: Type.Optional(
    Type.Unknown({ description: 'Text for MARKDOWN; a document, or its JSON text, for MAILY and PLATE.' }),
  ),
  contentType: Type.Optional(oneOf(CONTENT_TYPES)),
  senderId: Type.Optional(Type.String({ maxLength: 200, description: 'snd_…' })),
  replyTo: Type.Optional(
    Type.String({ maxLength: 320, pattern: '^[^\\s@]+@[^\\s@]+$', description: 'An address.' }),
  ),
  transactional: defaulted(Type.Boolean(), false),
})
export type EmailConfig = Static<typeof EmailConfig>

/**
 * `amount` of `unit`, elapsed. With `at` or `days`, the calendar of the time zone decides: so many days or weeks on,
 * at that local time (`at`), then the first allowed weekday (`days`).
 */
export const WaitConfig = closed({
  amount: Amount,
  unit: oneOf(DURATION_UNITS),
  at: Type.Optional(
    Type.String({ pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$', description: 'HH:mm, as 09:00.' }),
  ),
  days: Type.Optional(Type.Array(oneOf(WEEKDAYS), { minItems: 1, maxItems: 7 })),
  timezone: Type.Optional(Timezone),
})
export type WaitConfig = Static<typeof WaitConfig>

const BranchPath = closed({ id: Id, name: Type.Optional(Name), filters: Filters })
/** The first path whose filters hold gives the port; none gives `else`. */
export const BranchConfig = closed({
  paths: Type.Array(BranchPath, { minItems: 1, maxItems: AUTOMATION_LIMITS.paths }),
})
export type BranchConfig = Static<typeof BranchConfig>

export const TagConfig = closed({ tagNames: TagNames })
export type TagConfig = Static<typeof TagConfig>

export const ExitConfig = closed({ reason: Type.Optional(Type.String({ maxLength: 200 })) })
export type ExitConfig = Static<typeof ExitConfig>

/** The members that every step has; `config` is checked by type. */
export const StepMembers = {
  id: Id,
  name: Type.Optional(Name),
  conditions: Type.Optional(Filters),
  onError: defaulted(oneOf(ON_ERROR), 'FAIL'),
}

type StepOf<Type extends StepType, Config> = {
  id: string
  type: Type
  name?: string
  /** Where they do not hold, the step is skipped. */
  conditions?: Static<typeof Filters>
  onError: OnError
  config: Config
}
export type TriggerStep = StepOf<'TRIGGER', TriggerConfig>
export type EmailStep = StepOf<'EMAIL', EmailConfig>
export type WaitStep = StepOf<'WAIT', WaitConfig>
export type WaitUntilStep = StepOf<'WAIT_UNTIL', WaitUntilConfig>
export type BranchStep = StepOf<'BRANCH', BranchConfig>
export type TagStep = StepOf<'ADD_TAG', TagConfig> | StepOf<'REMOVE_TAG', TagConfig>
export type ExitStep = StepOf<'EXIT', ExitConfig>
export type Step = TriggerStep | EmailStep | WaitStep | WaitUntilStep | BranchStep | TagStep | ExitStep

export const Edge = closed({
  from: Type.String(),
  to: Type.String(),
  port: defaulted(Type.String(), NEXT_PORT),
})
export type Edge = Static<typeof Edge>

/** A graph with its defaults filled. */
export type Definition = { steps: Step[]; edges: Edge[] }

export const ReEntry = closed({
  mode: oneOf(RE_ENTRY_MODES),
  keyPath: Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'PER_KEY: the path of the key in what the run is started with.',
    }),
  ),
  cooldown: Type.Optional(Duration),
  maxEntries: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
})
export type ReEntry = Static<typeof ReEntry>

export const Settings = closed({
  timezone: Type.Optional(Timezone),
  reEntry: Type.Optional(ReEntry),
  exitOnUnsubscribe: defaulted(Type.Boolean(), true),
  priority: defaulted(Type.Integer({ minimum: 0, maximum: 100 }), 50),
})
export type Settings = Static<typeof Settings>

/**
 * The graph as tools publish it. It is open on purpose: the faults of schema, graph and filters come out together in
 * one list from validateDefinition, with the step each belongs to.
 */
export const StepList = Type.Unsafe<unknown[]>({
  type: 'array',
  description:
    'Steps {id, type, name?, config, conditions?, onError?}; type is one of ' +
    `${STEP_TYPES.join(', ')}. get_skill with type workflow describes each config.`,
  examples: [
    [
      { id: 'start', type: 'TRIGGER', config: { type: 'SUBSCRIBED' } },
      {
        id: 'welcome',
        type: 'EMAIL',
        config: { subject: 'Welcome', content: 'Hello {{name}}', contentType: 'MARKDOWN' },
      },
      { id: 'pause', type: 'WAIT', config: { amount: 3, unit: 'DAYS' } },
      {
        id: 'fork',
        type: 'BRANCH',
        config: {
          paths: [
            {
              id: 'clicked',
              filters: [{ field: 'campaign', operator: 'clicked', value: { stepId: 'welcome' } }],
            },
          ],
        },
      },
    ],
  ],
})
export const EdgeList = Type.Unsafe<unknown[]>({
  type: 'array',
  description:
    'Edges {from, to, port?}; port is next when omitted, a path id or else on BRANCH, timeout on a wait.',
  examples: [
    [
      { from: 'start', to: 'welcome' },
      { from: 'fork', to: 'more', port: 'clicked' },
    ],
  ],
})
export const SettingsInput = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  description: 'timezone, reEntry {mode, keyPath, cooldown, maxEntries}, exitOnUnsubscribe, priority.',
})
export const SuccessGoalsInput = Type.Unsafe<unknown[]>({
  type: 'array',
  description: 'Not available yet: [].',
})
