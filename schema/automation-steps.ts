import Type, { type Static, type TSchema } from 'typebox'

import { Filters, WhereList } from './audience.ts'
import { IF_UNMET } from './automation-goals.ts'
import {
  Amount,
  AUTOMATION_LIMITS,
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

/** What each type of step is configured with; triggers and the modes of WAIT_UNTIL have tables of their own. */

export const WAIT_MODES = ['DATE', 'FIELD_DATE', 'TIME_WINDOW', 'EVENT', 'CONDITION'] as const
export type WaitMode = (typeof WAIT_MODES)[number]
/** What an event wait counts: only what comes while it waits, or everything since the run was entered. */
const EVENT_SCOPES = ['STEP', 'RUN'] as const
/** When the time is over: go on by the port `timeout` (by `next` where that leads nowhere), or end the run. */
const ON_TIMEOUT = ['CONTINUE', 'EXIT'] as const
/** Where a field has no date, or one that is over: go on by `next`, by `timeout`, or end the run. */
const IF_UNDATED = ['CONTINUE', 'TIMEOUT', 'EXIT'] as const
/** Whom a THROTTLE does not let pass: waits for its turn, or leaves by `skipped`. */
const OVERFLOWS = ['HOLD', 'SKIP'] as const
const WEBHOOK_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const SUBSCRIPTION_ACTIONS = ['UNSUBSCRIBE'] as const

const Address = Type.String({ maxLength: 320, pattern: '^[^\\s@]+@[^\\s@]+$', description: 'An address.' })

/** The longest that any of these waits lasts. */
const limit = {
  timeout: Type.Optional(Duration),
  onTimeout: defaulted(oneOf(ON_TIMEOUT), 'CONTINUE'),
}

/** What each mode of WAIT_UNTIL is configured with. */
export const WAIT_UNTIL_CONFIGS = {
  DATE: closed({
    mode: Type.Literal('DATE'),
    date: Type.String({
      description: 'YYYY-MM-DD, or an ISO date and time; without an offset, in the time zone.',
    }),
    timezone: Type.Optional(Timezone),
    ...limit,
  }),
  FIELD_DATE: closed({
    mode: Type.Literal('FIELD_DATE'),
    field: Type.String({ minLength: 1, maxLength: 64, description: 'A custom field of the type date.' }),
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

/** An internal email by id, or its content in place; together they update that email. */
const EmailConfig = closed({
  campaignId: Type.Optional(Type.String({ maxLength: 200, description: 'cmp_…' })),
  subject: Type.Optional(Type.String({ maxLength: EMAIL_LINE })),
  preview: Type.Optional(Type.String({ maxLength: EMAIL_LINE })),
  content: Type.Optional(
    Type.Unknown({ description: 'Text for MARKDOWN; a document, or its JSON text, for MAILY and PLATE.' }),
  ),
  contentType: Type.Optional(oneOf(CONTENT_TYPES)),
  senderId: Type.Optional(Type.String({ maxLength: 200, description: 'snd_…' })),
  replyTo: Type.Optional(Address),
  transactional: defaulted(Type.Boolean(), false),
  sendWindow: Type.Optional(SendWindow),
})

/**
 * `amount` of `unit`, elapsed. With `at` or `days`, the calendar of the time zone decides: so many days or weeks on,
 * at that local time (`at`), then the first allowed weekday (`days`).
 */
const WaitConfig = closed({
  amount: Amount,
  unit: oneOf(DURATION_UNITS),
  at: Type.Optional(TimeOfDay),
  days: Type.Optional(Days),
  timezone: Type.Optional(Timezone),
})

const BranchPath = closed({ id: Id, name: Type.Optional(Name), filters: Filters })
/** The first path whose filters hold gives the port; none gives `else`. */
const BranchConfig = closed({
  paths: Type.Array(BranchPath, { minItems: 1, maxItems: AUTOMATION_LIMITS.paths }),
})

const Variant = closed({
  id: Id,
  name: Type.Optional(Name),
  weight: Type.Number({ minimum: 0, maximum: 1_000_000, description: 'Its share beside the others.' }),
})
/**
 * By chance, in the shares of the weights. `sticky`: who comes again, in this run or a later one, gets the same variant
 * while there is one. `holdoutVariantId` names the variant that the others are measured against.
 */
const SplitConfig = closed({
  variants: Type.Array(Variant, { minItems: 2, maxItems: AUTOMATION_LIMITS.paths }),
  sticky: defaulted(Type.Boolean(), true),
  holdoutVariantId: Type.Optional(Id),
})

const TagConfig = closed({ tagNames: TagNames })

const FieldName = Type.String({ minLength: 1, maxLength: 64 })
/** Custom fields of the subscriber: values to set, numbers to add to (a missing one counts as 0), values to clear. */
const UpdateFieldConfig = closed({
  set: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'Text, numbers, true or false by field name.',
    }),
  ),
  increment: Type.Optional(
    Type.Record(Type.String(), Type.Number(), {
      description: 'What to add, by field name; negative subtracts.',
    }),
  ),
  clear: Type.Optional(Type.Array(FieldName, { maxItems: AUTOMATION_LIMITS.fields })),
})

/** Ends the subscriber's consent; their other runs leave as their workflows say. */
const SubscriptionConfig = closed({
  action: oneOf(SUBSCRIPTION_ACTIONS),
  reason: Type.Optional(Type.String({ maxLength: 200 })),
})

/** An event of the subscriber, which other workflows may answer. */
const CreateEventConfig = closed({
  eventType: EventType,
  amount: Type.Optional(Type.Number({ description: 'In major units, such as 19.90; never negative.' })),
  currency: Type.Optional(Type.String({ description: 'ISO 4217; USD where an amount names none.' })),
  metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
})

/** An email to somebody of the organization, from its default sender. */
const NotifyConfig = closed({
  to: Address,
  subject: Type.String({ minLength: 1, maxLength: EMAIL_LINE }),
  markdown: Type.String({ minLength: 1, maxLength: 100_000 }),
})

/** Goes back, or ahead, to a step; when the run has jumped here `maxTimes`, it goes on by `next`. */
const JumpConfig = closed({
  toStepId: Id,
  maxTimes: Type.Integer({ minimum: 1, maximum: AUTOMATION_LIMITS.jumps }),
})

/**
 * A request to another system, signed and tried again. Variables may stand in the path and query of `url`, in headers and
 * in the body. `saveResponseAs` keeps the answer as `entry.<name>`.
 */
const WebhookConfig = closed({
  url: Type.String({ minLength: 1, maxLength: 2_000, description: 'http or https, on a public address.' }),
  method: defaulted(oneOf(WEBHOOK_METHODS), 'POST'),
  headers: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 2_000 }))),
  body: Type.Optional(
    Type.Unknown({ description: 'Text, or any JSON; left out, the subscriber and the run. GET has none.' }),
  ),
  timeoutSeconds: defaulted(Type.Integer({ minimum: 1, maximum: 60 }), 10),
  retries: defaulted(Type.Integer({ minimum: 0, maximum: 10 }), 3),
  saveResponseAs: Type.Optional(Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_]{0,63}$' })),
})

const WorkflowId = Type.String({ maxLength: 200, description: 'wf_…' })
/** Lets the subscriber enter another workflow, if it takes them; this run does not wait for that. */
const StartWorkflowConfig = closed({
  workflowId: WorkflowId,
  context: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), { description: 'What the other run reads as entry.<path>.' }),
  ),
})
/** Cancels the subscriber's runs of another workflow. */
const StopWorkflowConfig = closed({
  workflowId: WorkflowId,
  reason: Type.Optional(Type.String({ maxLength: 200 })),
})

/** At most `limit` runs pass `per` length of time, in the order they come; the others wait, or leave by `skipped`. */
const ThrottleConfig = closed({
  limit: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
  per: Duration,
  overflow: defaulted(oneOf(OVERFLOWS), 'HOLD'),
})

/** A run that has not reached the goal goes on, waits for it until its window closes, or ends. */
const GoalConfig = closed({ goalId: Id, ifUnmet: defaulted(oneOf(IF_UNMET), 'CONTINUE') })

const ExitConfig = closed({ reason: Type.Optional(Type.String({ maxLength: 200 })) })

/** The configuration of each type of step that has one. */
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
