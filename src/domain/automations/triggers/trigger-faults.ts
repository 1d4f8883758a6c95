import { sql } from 'kysely'

import { BUILT_IN_FIELDS } from '../../../../schema/automation-triggers.ts'
import type { Definition, Step, StepOf } from '../../../../schema/automation.ts'
import type { FieldType } from '../../../../schema/values.ts'
import type { Fault } from '../../../catalogue/failure.ts'
import { didYouMean } from '../../../catalogue/schema-faults.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, rows } from '../../../database.ts'
import { encodeId, readId } from '../../../ids.ts'
import { customFieldTypes } from '../../audience/references.ts'
import { COUNTRIES } from '../../countries.ts'
import { type FieldScalar, storedFault } from '../../subscribers/fields.ts'
import { readUpdatedField } from './updated-field.ts'

type Placed = { step: Step; path: string }
type Trigger = { step: StepOf<'TRIGGER'>; path: string }

/**
 * Returns a fault for each segment, workflow or field that a trigger names and the organization does not have, for each
 * value that a field of FIELD_UPDATED cannot have, and for each missing workflow that a step starts or stops.
 */
export async function triggerFaults(call: Call, { steps }: Definition): Promise<Fault[]> {
  const placed = steps.map((step, position): Placed => ({ step, path: `steps[${position}].config` }))
  const triggers = placed.filter((each): each is Trigger => each.step.type === 'TRIGGER')
  return [
    ...(await recordFaults(call, placed, 'segmentId', 'seg')),
    ...(await recordFaults(call, placed, 'workflowId', 'wf')),
    ...(await fieldFaults(call, triggers)),
  ]
}

const RECORDS = {
  seg: { table: 'segment', what: 'segment', tool: 'list_segments' },
  wf: { table: 'automation', what: 'workflow', tool: 'list_workflows' },
} as const

async function recordFaults(
  { em, organization }: Call,
  steps: readonly Placed[],
  member: 'segmentId' | 'workflowId',
  prefix: keyof typeof RECORDS,
): Promise<Fault[]> {
  const named = steps.flatMap(({ step, path }) => {
    const id: unknown = Reflect.get(step.config, member)
    return typeof id === 'string' ? [{ stepId: step.id, id, path: `${path}.${member}` }] : []
  })
  if (named.length === 0) return []
  const { table, what, tool } = RECORDS[prefix]
  const ids = named.map(({ id }) => readId(prefix, id)).filter((id) => id !== null)
  const found = await rows<{ id: string }>(
    em,
    sql`select id from ${sql.table(table)}
      where organization_id = ${organization.id} and id = any(${array(ids, 'uuid')})`,
  )
  const known = new Set(found.map(({ id }) => encodeId(prefix, id)))
  return named
    .filter(({ id }) => !known.has(id))
    .map(({ stepId, id, path }) => ({
      stepId,
      path,
      message: `there is no ${what} ${JSON.stringify(id)} in this organization; ${tool} lists what there is`,
    }))
}

async function fieldFaults(call: Call, triggers: readonly Trigger[]): Promise<Fault[]> {
  const named = triggers.flatMap(({ step, path }) =>
    step.config.type === 'FIELD_UPDATED' ? [{ stepId: step.id, config: step.config, path }] : [],
  )
  if (named.length === 0) return []
  const { id: organizationId, timezone } = call.organization
  const types = await customFieldTypes(call.em, organizationId)
  return named.flatMap(({ stepId, config, path }): Fault[] => {
    const { field, custom } = readUpdatedField(config.field)
    const type = custom ? types.get(field) : undefined
    if (custom && !type) {
      const known = [...BUILT_IN_FIELDS, ...types.keys()]
      const message = `there is no field ${JSON.stringify(config.field)}; ${didYouMean(field, known)}`
      return [{ stepId, path: `${path}.field`, message }]
    }
    return (['from', 'to'] as const).flatMap((member) => {
      const message = valueFault(config[member] ?? null, field, type, timezone)
      return message === null ? [] : [{ stepId, path: `${path}.${member}`, message }]
    })
  })
}

/** Returns why a field never has a value, so that the trigger would never fire, or null if it can. */
function valueFault(
  value: FieldScalar | null,
  field: string,
  type: FieldType | undefined,
  timezone: string,
): string | null {
  if (value === null) return null
  if (type) return storedFault(value, type, timezone)
  if (typeof value !== 'string' || value === '')
    return `must be text, or null for none, because ${field} is text`
  if (field !== 'country' || COUNTRIES.has(value)) return null
  return 'is not a country; write its ISO 3166-1 alpha-2 code in capitals, such as "FR"'
}
