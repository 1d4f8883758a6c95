import Type, { type Static, type TSchema } from 'typebox'

import { CUSTOM_FIELD_PREFIX, Filters, WhereList } from './audience.ts'
import { DateField, DIRECTIONS, Duration, EventType, TagNames, TimeOfDay } from './automation-parts.ts'
import { closed, defaulted, nullable, oneOf } from './define.ts'

/** The types of triggers. */
export const TRIGGER_TYPES = [
  'SUBSCRIBED',
  'UNSUBSCRIBED',
  'TAG_ADDED',
  'TAG_REMOVED',
  'FIELD_UPDATED',
  'SEGMENT_ENTERED',
  'SEGMENT_EXITED',
  'EVENT',
  'WORKFLOW_EVENT',
  'DATE_FIELD',
  'SCHEDULE',
  'INACTIVITY',
  'INBOUND_WEBHOOK',
  'MANUAL',
] as const
export type TriggerType = (typeof TRIGGER_TYPES)[number]

/** Triggers that fire at a time instead of on an event. */
export const TIMED_TRIGGERS = ['DATE_FIELD', 'SCHEDULE', 'INACTIVITY'] as const
export type TimedTriggerType = (typeof TIMED_TRIGGERS)[number]

/** Fields that every subscriber has; any other name refers to a custom field, also without its prefix. */
export const BUILT_IN_FIELDS = ['email', 'name', 'phone', 'country'] as const

/** The events that runs of a workflow emit. */
export const RUN_EVENTS = ['WORKFLOW_STARTED', 'WORKFLOW_COMPLETED', 'WORKFLOW_CANCELED'] as const

const filtered = { filters: Type.Optional(Filters) }
const FieldValue = nullable(Type.Union([Type.String({ maxLength: 1000 }), Type.Number(), Type.Boolean()]))
const plainTrigger = <const Name extends TriggerType>(type: Name) =>
  closed({ type: Type.Literal(type), ...filtered })
const tagTrigger = <const Name extends TriggerType>(type: Name) =>
  closed({ type: Type.Literal(type), tagNames: TagNames, ...filtered })
const segmentTrigger = <const Name extends TriggerType>(type: Name) =>
  closed({
    type: Type.Literal(type),
    segmentId: Type.String({ maxLength: 200, description: 'The id of the segment (`seg_…`).' }),
    ...filtered,
  })

/** The configuration of each type of trigger. */
export const TRIGGER_CONFIGS = {
  SUBSCRIBED: plainTrigger('SUBSCRIBED'),
  UNSUBSCRIBED: plainTrigger('UNSUBSCRIBED'),
  TAG_ADDED: tagTrigger('TAG_ADDED'),
  TAG_REMOVED: tagTrigger('TAG_REMOVED'),
  FIELD_UPDATED: closed({
    type: Type.Literal('FIELD_UPDATED'),
    field: Type.String({
      minLength: 1,
      maxLength: CUSTOM_FIELD_PREFIX.length + 64,
      description: `The field: ${BUILT_IN_FIELDS.join(', ')}, or the name of a custom field, as \`customFields.<name>\` if it has the name of one of these.`,
    }),
    from: Type.Optional(FieldValue),
    to: Type.Optional(FieldValue),
    ...filtered,
  }),
  SEGMENT_ENTERED: segmentTrigger('SEGMENT_ENTERED'),
  SEGMENT_EXITED: segmentTrigger('SEGMENT_EXITED'),
  EVENT: closed({
    type: Type.Literal('EVENT'),
    eventType: EventType,
    where: Type.Optional(WhereList),
    ...filtered,
  }),
  WORKFLOW_EVENT: closed({
    type: Type.Literal('WORKFLOW_EVENT'),
    workflowId: Type.String({ maxLength: 200, description: 'The id of the workflow (`wf_…`).' }),
    event: oneOf(RUN_EVENTS),
    ...filtered,
  }),
  DATE_FIELD: closed({
    type: Type.Literal('DATE_FIELD'),
    field: DateField,
    offset: Type.Optional(Duration),
    direction: defaulted(oneOf(DIRECTIONS), 'AFTER'),
    anniversary: defaulted(Type.Boolean(), false),
    at: Type.Optional(TimeOfDay),
    ...filtered,
  }),
  SCHEDULE: closed({
    type: Type.Literal('SCHEDULE'),
    cron: Type.String({
      minLength: 1,
      maxLength: 100,
      description:
        'A cron expression of five fields (minute, hour, day of month, month, day of week), in the time zone of the workflow.',
    }),
    ...filtered,
  }),
  INACTIVITY: closed({
    type: Type.Literal('INACTIVITY'),
    eventType: EventType,
    inactiveFor: Duration,
    ...filtered,
  }),
  INBOUND_WEBHOOK: plainTrigger('INBOUND_WEBHOOK'),
  MANUAL: plainTrigger('MANUAL'),
} as const satisfies Record<TriggerType, TSchema>
export type TriggerConfigs = { [Type in TriggerType]: Static<(typeof TRIGGER_CONFIGS)[Type]> }
export type TriggerConfig = TriggerConfigs[TriggerType]
/** The configuration of a timed trigger. */
export type TimedTrigger = TriggerConfigs[TimedTriggerType]
