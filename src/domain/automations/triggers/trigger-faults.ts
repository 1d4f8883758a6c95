import { sql } from 'kysely'

import { BUILT_IN_FIELDS } from '../../../../schema/automation-triggers.ts'
import type { Definition, Step, StepOf } from '../../../../schema/automation.ts'
import type { Fault } from '../../../catalogue/failure.ts'
import { didYouMean } from '../../../catalogue/schema-faults.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, rows } from '../../../database.ts'
import { encodeId, readId } from '../../../ids.ts'
import { customFieldTypes } from '../../audience/references.ts'

type Placed = { step: Step; path: string }
type Trigger = { step: StepOf<'TRIGGER'>; path: string }

/**
 * Returns a fault for each segment, workflow or field that a trigger names and the organization does not have, and for
 * each such workflow that a step starts or stops.
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
    step.config.type === 'FIELD_UPDATED'
      ? [{ stepId: step.id, field: step.config.field, path: `${path}.field` }]
      : [],
  )
  if (named.length === 0) return []
  const types = await customFieldTypes(call.em, call.organization.id)
  const known = [...BUILT_IN_FIELDS, ...types.keys()]
  return named
    .filter(({ field }) => !known.includes(field))
    .map(({ stepId, field, path }) => ({
      stepId,
      path,
      message: `there is no field ${JSON.stringify(field)}; ${didYouMean(field, known)}`,
    }))
}
