import Type, { type Static } from 'typebox'

import { Filters, WhereList } from './audience.ts'
import { Duration, EventType, Id, Name, SendWindow, Timezone } from './automation-parts.ts'
import type { StepConfigs, WaitUntilConfig } from './automation-steps.ts'
import type { TriggerConfig } from './automation-triggers.ts'
import { closed, defaulted, oneOf } from './define.ts'

/** The types of steps in the graph language (decisions, section 6). */
export type StepType = keyof StepConfigs | 'TRIGGER' | 'WAIT_UNTIL'
export const STEP_TYPES = [
  'TRIGGER',
  'EMAIL',
  'WAIT',
  'WAIT_UNTIL',
  'BRANCH',
  'SPLIT',
  'ADD_TAG',
  'REMOVE_TAG',
  'UPDATE_FIELD',
  'SUBSCRIPTION',
  'CREATE_EVENT',
  'NOTIFY',
  'WEBHOOK',
  'START_WORKFLOW',
  'STOP_WORKFLOW',
  'THROTTLE',
  'JUMP',
  'GOAL',
  'EXIT',
] as const satisfies readonly StepType[]

const ON_ERROR = ['CONTINUE', 'EXIT', 'FAIL'] as const
export type OnError = (typeof ON_ERROR)[number]
const LATE_ACTIONS = ['SEND', 'SKIP', 'EXIT'] as const
const RE_ENTRY_MODES = ['ONCE', 'EVERY_TIME', 'AFTER_EXIT', 'PER_KEY'] as const
/** The port of an edge that does not name one. */
export const NEXT_PORT = 'next'
/** The port by which a BRANCH is left when no path matches. */
export const ELSE_PORT = 'else'

/** The members that every step has besides `type` and `config`. The schema of `config` depends on the type. */
export const StepMembers = {
  id: Id,
  name: Type.Optional(Name),
  conditions: Type.Optional(Filters),
  onError: defaulted(oneOf(ON_ERROR), 'FAIL'),
}

type ConfigOf<Type extends StepType> = Type extends keyof StepConfigs
  ? StepConfigs[Type]
  : Type extends 'TRIGGER'
    ? TriggerConfig
    : WaitUntilConfig

/** A step of one type, with its defaults filled in. */
export type StepOf<Type extends StepType> = {
  id: string
  type: Type
  name?: string
  /** When these do not match, the step is skipped. */
  conditions?: Static<typeof Filters>
  onError: OnError
  config: ConfigOf<Type>
}
export type Step = { [Type in StepType]: StepOf<Type> }[StepType]

/** A connection from a port of one step to another step. */
export const Edge = closed({
  from: Type.String({ description: 'The id of a step.' }),
  to: Type.String({ description: 'The id of the step that follows.' }),
  port: defaulted(Type.String(), NEXT_PORT),
})
export type Edge = Static<typeof Edge>

/** A graph with its defaults filled in. */
export type Definition = { steps: Step[]; edges: Edge[] }

/** When a subscriber may enter a workflow again. */
export const ReEntry = closed({
  mode: oneOf(RE_ENTRY_MODES, {
    description:
      'ONCE: never again. AFTER_EXIT: not during an active run. EVERY_TIME: always. PER_KEY: one active run for each key.',
  }),
  keyPath: Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'Only with PER_KEY: the path of the key in the data that the run was started with.',
    }),
  ),
  cooldown: Type.Optional(Duration),
  maxEntries: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
})
export type ReEntry = Static<typeof ReEntry>

/** Ends a run immediately, at any step, when the event arrives. Email that is not sent yet is not sent any more. */
const ExitRule = closed({ id: Id, on: EventType, where: Type.Optional(WhereList) })

/** The action for an email that is overdue by more than `maxLateness`, for example because the workflow was paused. */
const LateSend = closed({ maxLateness: Duration, action: oneOf(LATE_ACTIONS) })

/** The settings of a workflow with their defaults. */
export const Settings = closed({
  timezone: Type.Optional(Timezone),
  reEntry: Type.Optional(ReEntry),
  exitRules: Type.Optional(Type.Array(ExitRule, { maxItems: 20 })),
  exitOnUnsubscribe: defaulted(Type.Boolean(), true),
  sendWindow: Type.Optional(SendWindow),
  lateSend: Type.Optional(LateSend),
  priority: defaulted(Type.Integer({ minimum: 0, maximum: 100 }), 50),
})
export type Settings = Static<typeof Settings>

/**
 * The steps as tools publish them. The schema is deliberately open, so that `readDefinition` can return the faults
 * of schema, graph and filters in one list, with the step of each. The OpenAPI document shows the full language
 * instead.
 */
export const StepList = Type.Unsafe<unknown[]>({
  type: 'array',
  description:
    'Steps {id, type, name?, config, conditions?, onError?}. The type is one of ' +
    `${STEP_TYPES.join(', ')}. \`get_skill\` with type workflow describes the config of each type.`,
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
/** The edges as tools publish them; see `StepList`. */
export const EdgeList = Type.Unsafe<unknown[]>({
  type: 'array',
  description:
    'Edges {from, to, port?}. The default port is "next". On BRANCH, the port is a path id or "else"; a wait also has "timeout".',
  examples: [
    [
      { from: 'start', to: 'welcome' },
      { from: 'fork', to: 'more', port: 'clicked' },
    ],
  ],
})
/** The settings as tools publish them; see `StepList`. */
export const SettingsInput = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  description:
    'The settings: timezone, reEntry {mode, keyPath, cooldown, maxEntries}, exitRules, exitOnUnsubscribe, sendWindow, lateSend, priority.',
})
/** A graph as tools publish it; see `StepList`. */
export const GraphInput = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  description: 'The complete graph: {steps, edges}, as in `configure_workflow_draft`.',
})
/** A graph with settings and goals as tools publish it; see `StepList`. */
export const DefinitionInput = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  description: 'A complete graph {steps, edges, settings?, successGoals?}, which need not be saved.',
})

/** The draft of a workflow as tools return it. */
export const Draft = closed({
  steps: Type.Array(Type.Unknown(), {
    description:
      'The steps with defaults filled in. An EMAIL step contains the id of its internal email, which `get_campaign` returns.',
  }),
  edges: Type.Array(Type.Unknown(), { description: 'The edges with their ports.' }),
})
