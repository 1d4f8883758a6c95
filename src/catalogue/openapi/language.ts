import Type, { type TSchema } from 'typebox'

import { SuccessGoal, SuccessGoalsInput } from '../../../schema/automation-goals.ts'
import { AUTOMATION_LIMITS } from '../../../schema/automation-parts.ts'
import { STEP_CONFIGS, WAIT_UNTIL_CONFIGS } from '../../../schema/automation-steps.ts'
import { TRIGGER_CONFIGS } from '../../../schema/automation-triggers.ts'
import {
  DefinitionInput,
  Draft,
  Edge,
  EdgeList,
  GraphInput,
  Settings,
  SettingsInput,
  STEP_TYPES,
  StepList,
  StepMembers,
  type StepType,
} from '../../../schema/automation.ts'
import { closed } from '../../../schema/define.ts'
import { isRecord } from '../../../schema/json.ts'

type Json = Record<string, unknown>

const CONFIGS: Readonly<Record<StepType, TSchema>> = {
  ...STEP_CONFIGS,
  TRIGGER: named('TriggerConfig'),
  WAIT_UNTIL: named('WaitUntilConfig'),
}

/**
 * The workflow definition language as components: every step with its configuration, from the schemas that validation
 * uses. Rules between members or between steps are checked by validation only.
 */
export const LANGUAGE: Readonly<Record<string, unknown>> = {
  ...choice('Step', 'type', Object.fromEntries(STEP_TYPES.map((type) => [type, stepOf(type)]))),
  ...choice('TriggerConfig', 'type', TRIGGER_CONFIGS),
  ...choice('WaitUntilConfig', 'mode', WAIT_UNTIL_CONFIGS),
  Edge,
  WorkflowSettings: Settings,
  SuccessGoal,
}

const steps = Type.Array(named('Step'), { maxItems: AUTOMATION_LIMITS.steps })
const edges = Type.Array(named('Edge'), { maxItems: AUTOMATION_LIMITS.edges })
const settings = named('WorkflowSettings')
const successGoals = Type.Array(named('SuccessGoal'), { maxItems: AUTOMATION_LIMITS.goals })
const whole = { steps, edges, settings: Type.Optional(settings), successGoals: Type.Optional(successGoals) }

/** The schemas that replace loose ones of the catalogue, by the JSON text of the loose schema. */
const WRITTEN = new Map(
  [
    [StepList, steps],
    [Draft.properties.steps, steps],
    [EdgeList, edges],
    [Draft.properties.edges, edges],
    [SettingsInput, settings],
    [Settings, settings],
    [SuccessGoalsInput, successGoals],
    [SuccessGoal, named('SuccessGoal')],
    [GraphInput, closed({ steps, edges })],
    [DefinitionInput, closed(whole)],
  ].map(([known, written]) => [JSON.stringify(known), written]),
)

/** Returns the document with loose lists and objects replaced by the components of the workflow language. */
export function withLanguage(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withLanguage)
  if (!isRecord(value)) return value
  const written = WRITTEN.get(JSON.stringify(value))
  if (!written) {
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withLanguage(member)]))
  }
  const { description, examples } = value
  return {
    ...written,
    ...(description !== undefined && { description }),
    ...(examples !== undefined && { examples }),
  }
}

function stepOf(type: StepType): TSchema {
  const { id, name, conditions, onError } = StepMembers
  // Only an EXIT step can omit its configuration.
  const config = type === 'EXIT' ? Type.Optional(CONFIGS[type]) : CONFIGS[type]
  return closed({ id, type: Type.Literal(type), name, config, conditions, onError })
}

/** Returns a component for a choice between kinds, told apart by a member, and one component for each kind. */
function choice(name: string, member: string, kinds: Readonly<Record<string, TSchema>>): Json {
  const kindName = (word: string) => pascal(word) + name
  const mapping = Object.keys(kinds).map((word) => [word, reference(kindName(word))] as const)
  return {
    [name]: {
      anyOf: mapping.map(([, $ref]) => ({ $ref })),
      discriminator: { propertyName: member, mapping: Object.fromEntries(mapping) },
    },
    ...Object.fromEntries(Object.entries(kinds).map(([word, schema]) => [kindName(word), schema])),
  }
}

function named(name: string): TSchema {
  return Type.Unsafe({ $ref: reference(name) })
}

function reference(name: string): string {
  return `#/components/schemas/${name}`
}

/** Converts `ADD_TAG` to `AddTag`. */
function pascal(word: string): string {
  return word.toLowerCase().replaceAll(/(?:^|_)([a-z])/g, (_match, letter: string) => letter.toUpperCase())
}
