import type { Definition, Step } from '../../../../schema/automation.ts'
import type { FieldType } from '../../../../schema/values.ts'
import type { Fault } from '../../../catalogue/failure.ts'
import { didYouMean } from '../../../catalogue/schema-faults.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { customFieldTypes } from '../../audience/references.ts'
import { typeFaults } from '../../subscribers/fields.ts'

type Types = ReadonlyMap<string, FieldType>

/**
 * Returns a fault for each custom field that a DATE_FIELD trigger, FIELD_DATE wait or UPDATE_FIELD step cannot use,
 * because it has another type or, for the first two, does not exist.
 */
export async function fieldFaults(call: Call, { steps }: Definition): Promise<Fault[]> {
  if (!steps.some(namesFields)) return []
  const types = await customFieldTypes(call.em, call.organization.id)
  return steps.flatMap((step, position) =>
    faultsOf(step, types).map(({ path, message }) => ({
      stepId: step.id,
      path: `steps[${position}].config.${path}`,
      message,
    })),
  )
}

function namesFields({ type, config }: Step): boolean {
  return (
    type === 'UPDATE_FIELD' ||
    (type === 'TRIGGER' && config.type === 'DATE_FIELD') ||
    (type === 'WAIT_UNTIL' && config.mode === 'FIELD_DATE')
  )
}

function faultsOf({ type, config }: Step, types: Types): Fault[] {
  if (type === 'WAIT_UNTIL' && config.mode === 'FIELD_DATE') return dateFaults(config.field, types)
  if (type === 'TRIGGER' && config.type === 'DATE_FIELD') return dateFaults(config.field, types)
  if (type !== 'UPDATE_FIELD') return []
  const { set = {}, increment = {} } = config
  // A field that does not exist is no fault: the step creates it.
  return [
    ...typeFaults(Object.entries(set), types, 'set'),
    ...Object.keys(increment)
      .filter((name) => (types.get(name) ?? 'number') !== 'number')
      .map((name) => ({
        path: `increment.${name}`,
        message: `needs a number field, and "${name}" has the type ${types.get(name)}; set it instead`,
      })),
  ]
}

function dateFaults(field: string, types: Types): Fault[] {
  const known = types.get(field)
  if (known === 'date') return []
  const dates = [...types].filter(([, each]) => each === 'date').map(([name]) => name)
  const message =
    known === undefined
      ? `there is no custom field ${JSON.stringify(field)}; ${didYouMean(field, dates)}`
      : `needs a date field, and "${field}" has the type ${known}; ${didYouMean(field, dates)}`
  return [{ path: 'field', message }]
}
