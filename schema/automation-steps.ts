import Type, { type Static, type TSchema } from 'typebox'

import { Filters, WhereList } from './audience.ts'
import { IF_UNMET } from './automation-goals.ts'
import {
  Amount,
  AUTOMATION_LIMITS,
  DateField,
  Days,
  DIRECTIONS,
  Duration,
  DURATION_UNITS,
  EventType,
  Id,
  Name,
  SendWindow,
  TagNames,
  TimeOfDay,
  Timezone,
} from './automation-parts.ts'
import { closed, defaulted, oneOf } from './define.ts'
import { CONTENT_TYPES, EMAIL_LINE } from './values.ts'

/** The modes of WAIT_UNTIL. `WAIT_UNTIL_CONFIGS` has their configurations. */
export const WAIT_MODES = ['DATE', 'FIELD_DATE', 'TIME_WINDOW', 'EVENT', 'CONDITION'] as const
export type WaitMode = (typeof WAIT_MODES)[number]
/** The events that an event wait counts: those that arrive while it waits, or all since the run was entered. */
const EVENT_SCOPES = ['STEP', 'RUN'] as const
/** When the time is over: leave by the port `timeout` (by `next` when `timeout` is not connected), or end the run. */
const ON_TIMEOUT = ['CONTINUE', 'EXIT'] as const
/** When the field has no date, or one in the past: leave by `next`, leave by `timeout`, or end the run. */
const IF_UNDATED = ['CONTINUE', 'TIMEOUT', 'EXIT'] as const
/** When a THROTTLE is full: the run waits for its turn, or leaves by `skipped`. */
const OVERFLOWS = ['HOLD', 'SKIP'] as const
const WEBHOOK_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const SUBSCRIPTION_ACTIONS = ['UNSUBSCRIBE'] as const

const Address = Type.String({
  maxLength: 320,
  pattern: '^[^\\s@]+@[^\\s@]+$',
  description: 'An email address.',
})

/** The longest time that a wait may last, and what follows when it is over. */
const limit = {
  timeout: Type.Optional(Duration),
  onTimeout: defaulted(oneOf(ON_TIMEOUT), 'CONTINUE'),
}

/** The configuration of each mode of WAIT_UNTIL. */
export const WAIT_UNTIL_CONFIGS = {
  DATE: closed({
    mode: Type.Literal('DATE'),
    date: Type.String({
      description:
        'A date (YYYY-MM-DD) or an ISO 8601 date and time. Without an offset, it is in the time zone of the step.',
    }),
    timezone: Type.Optional(Timezone),
    ...limit,
  }),
  FIELD_DATE: closed({
    mode: Type.Literal('FIELD_DATE'),
    field: DateField,
    offset: Type.Optional(Duration),
    direction: defaulted(oneOf(DIRECTIONS), 'AFTER'),
    anniversary: defaulted(Type.Boolean(), false),
    ifMissing: defaulted(oneOf(IF_UNDATED), 'CONTINUE'),
    ifPast: defaulted(oneOf(IF_UNDATED), 'CONTINUE'),
    timezone: Type.Optional(Timezone),
    ...limit,
  }),
  TIME_WINDOW: closed({
    mode: Type.Literal('TIME_WINDOW'),
    ...SendWindow.properties,
    ...limit,
  }),
  EVENT: closed({
    mode: Type.Literal('EVENT'),
    eventType: EventType,
    where: Type.Optional(WhereList),
    scope: defaulted(oneOf(EVENT_SCOPES), 'STEP'),
    ...limit,
  }),
  CONDITION: closed({
    mode: Type.Literal('CONDITION'),
    filters: Filters,
    ...limit,
  }),
} as const satisfies Record<WaitMode, TSchema>
export type WaitUntilConfigs = { [Mode in WaitMode]: Static<(typeof WAIT_UNTIL_CONFIGS)[Mode]> }
export type WaitUntilConfig = WaitUntilConfigs[WaitMode]

/** An internal email by id, or its content in place. When both are given, the content updates that email. */
const EmailConfig = closed({
  campaignId: Type.Optional(
    Type.String({ maxLength: 200, description: 'The id of the internal email (`cmp_…`).' }),
  ),
  subject: Type.Optional(Type.String({ maxLength: EMAIL_LINE })),
  preview: Type.Optional(Type.String({ maxLength: EMAIL_LINE })),
  content: Type.Optional(
    Type.Unknown({ description: 'Text for MARKDOWN; a document, or its JSON text, for MAILY and PLATE.' }),
  ),
  contentType: Type.Optional(oneOf(CONTENT_TYPES)),
  senderId: Type.Optional(Type.String({ maxLength: 200, description: 'The id of the sender (`snd_…`).' })),
  replyTo: Type.Optional(Address),
  transactional: defaulted(Type.Boolean(), false),
  sendWindow: Type.Optional(SendWindow),
})

/**
 * Waits `amount` of `unit` in elapsed time. With `at` or `days`, it counts calendar days or weeks in the time zone: it
 * ends at that local time (`at`), on the next allowed weekday (`days`).
 */
const WaitConfig = closed({
  amount: Amount,
  unit: oneOf(DURATION_UNITS),
  at: Type.Optional(TimeOfDay),
  days: Type.Optional(Days),
  timezone: Type.Optional(Timezone),
})

const BranchPath = closed({ id: Id, name: Type.Optional(Name), filters: Filters })
/** The port is the id of the first path whose filters match, or `else` when none match. */
const BranchConfig = closed({
  paths: Type.Array(BranchPath, { minItems: 1, maxItems: AUTOMATION_LIMITS.paths }),
})

const Variant = closed({
  id: Id,
  name: Type.Optional(Name),
  weight: Type.Number({
    minimum: 0,
    maximum: 1_000_000,
    description: 'The share of this variant relative to the weights of the others.',
  }),
})
/**
 * Chooses a variant at random, in proportion to the weights. `sticky`: the same subscriber gets the same variant again,
 * in this run or a later one, as long as the variant exists. `holdoutVariantId` names the variant that the others are
 * compared with.
 */
const SplitConfig = closed({
  variants: Type.Array(Variant, { minItems: 2, maxItems: AUTOMATION_LIMITS.paths }),
  sticky: defaulted(Type.Boolean(), true),
  holdoutVariantId: Type.Optional(Id),
})

const TagConfig = closed({ tagNames: TagNames })

const FieldName = Type.String({ minLength: 1, maxLength: 64 })
/**
 * Custom fields of the subscriber: values to set, numbers to add (a missing field counts as 0), and fields to clear.
 */
const UpdateFieldConfig = closed({
  set: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'Values to set, by field name: text, numbers, true or false.',
    }),
  ),
  increment: Type.Optional(
    Type.Record(Type.String(), Type.Number(), {
      description: 'Numbers to add, by field name. A negative number subtracts.',
    }),
  ),
  clear: Type.Optional(Type.Array(FieldName, { maxItems: AUTOMATION_LIMITS.fields })),
})

/** Unsubscribes the subscriber. Their runs end in all workflows with `exitOnUnsubscribe`. */
const SubscriptionConfig = closed({
  action: oneOf(SUBSCRIPTION_ACTIONS),
  reason: Type.Optional(Type.String({ maxLength: 200 })),
})

/** Records an event of the subscriber, which can trigger other workflows. */
const CreateEventConfig = closed({
  eventType: EventType,
  amount: Type.Optional(
    Type.Number({ description: 'The amount in major currency units, such as 19.90. Never negative.' }),
  ),
  currency: Type.Optional(
    Type.String({ description: 'The ISO 4217 currency code. Defaults to USD if there is an amount.' }),
  ),
  metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
})

/** An email from the organization's default sender to a fixed address, such as a colleague's. */
const NotifyConfig = closed({
  to: Address,
  subject: Type.String({ minLength: 1, maxLength: EMAIL_LINE }),
  markdown: Type.String({ minLength: 1, maxLength: 100_000 }),
})

/** Moves the run back, or ahead, to a step. After `maxTimes` jumps the run leaves by `next` instead. */
const JumpConfig = closed({
  toStepId: Id,
  maxTimes: Type.Integer({ minimum: 1, maximum: AUTOMATION_LIMITS.jumps }),
})

/**
 * A signed request to another system, which is retried. The path and query of `url`, the headers and the body may
 * contain variables. `saveResponseAs` stores the answer as `entry.<name>`.
 */
const WebhookConfig = closed({
  url: Type.String({
    minLength: 1,
    maxLength: 2_000,
    description: 'An http or https URL on a public address.',
  }),
  method: defaulted(oneOf(WEBHOOK_METHODS), 'POST'),
  headers: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 2_000 }))),
  body: Type.Optional(
    Type.Unknown({
      description:
        'The body: text, or any JSON. Defaults to the subscriber and the run. GET requests have no body.',
    }),
  ),
  timeoutSeconds: defaulted(Type.Integer({ minimum: 1, maximum: 60 }), 10),
  retries: defaulted(Type.Integer({ minimum: 0, maximum: 10 }), 3),
  saveResponseAs: Type.Optional(Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_]{0,63}$' })),
})

const WorkflowId = Type.String({ maxLength: 200, description: 'The id of the workflow (`wf_…`).' })
/** Enters the subscriber into another workflow if it accepts them. This run does not wait for the other one. */
const StartWorkflowConfig = closed({
  workflowId: WorkflowId,
  context: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'Data for the other run, which reads it as `entry.<path>`.',
    }),
  ),
})
/** Cancels the subscriber's runs of another workflow. */
const StopWorkflowConfig = closed({
  workflowId: WorkflowId,
  reason: Type.Optional(Type.String({ maxLength: 200 })),
})

/** At most `limit` runs pass in each period `per`, in the order they arrive. The others wait, or leave by `skipped`. */
const ThrottleConfig = closed({
  limit: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
  per: Duration,
  overflow: defaulted(oneOf(OVERFLOWS), 'HOLD'),
})

/** A run that has not reached the goal continues, waits until the goal's window closes, or ends. */
const GoalConfig = closed({ goalId: Id, ifUnmet: defaulted(oneOf(IF_UNMET), 'CONTINUE') })

const ExitConfig = closed({ reason: Type.Optional(Type.String({ maxLength: 200 })) })

/** The configuration of each type of step except TRIGGER and WAIT_UNTIL, which have tables of their own. */
export const STEP_CONFIGS = {
  EMAIL: EmailConfig,
  WAIT: WaitConfig,
  BRANCH: BranchConfig,
  SPLIT: SplitConfig,
  ADD_TAG: TagConfig,
  REMOVE_TAG: TagConfig,
  UPDATE_FIELD: UpdateFieldConfig,
  SUBSCRIPTION: SubscriptionConfig,
  CREATE_EVENT: CreateEventConfig,
  NOTIFY: NotifyConfig,
  WEBHOOK: WebhookConfig,
  START_WORKFLOW: StartWorkflowConfig,
  STOP_WORKFLOW: StopWorkflowConfig,
  THROTTLE: ThrottleConfig,
  JUMP: JumpConfig,
  GOAL: GoalConfig,
  EXIT: ExitConfig,
} as const satisfies Record<string, TSchema>
export type StepConfigs = { [Type in keyof typeof STEP_CONFIGS]: Static<(typeof STEP_CONFIGS)[Type]> }
