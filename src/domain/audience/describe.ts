import { sql } from 'kysely'

import {
  type AvailableFilters,
  describeOperators,
  type FilterField,
  FILTERS_VERSION,
  filtersJsonSchema,
} from '../../../schema/audience-description.ts'
import { AUDIENCE_LIMITS, CUSTOM_FIELD_PREFIX, FIELDS, OPERATORS } from '../../../schema/audience.ts'
import type { FieldType } from '../../../schema/values.ts'
import type { Call } from '../../catalogue/tool.ts'
import { rows } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { customFieldTypes } from './references.ts'

type SourceField = 'tags' | 'segment' | 'campaign' | 'workflow'
type Source = { field: SourceField; id: string; name: string; total: number }

const SHOWN = 100
const EXAMPLES = { string: 'pro', number: 5, boolean: true, date: '2025-01-31' } as const

/** Describes the available filters of the organization, from the same tables that validate and compile filters. */
export async function describeFilters(call: Call): Promise<AvailableFilters> {
  const sources = await readSources(call)
  const customFields = await customFieldTypes(call.em, call.organization.id)
  const fields = Object.entries(FIELDS).flatMap(([key, { label, kind, values, valuesFrom, example }]) => {
    // The placeholder for custom fields is replaced by the existing fields.
    if (key.startsWith(CUSTOM_FIELD_PREFIX)) return [...customFields].map(customField)
    const field: FilterField = {
      key,
      label,
      type: kind,
      operators: [...OPERATORS[kind]],
      ...(values && { values: [...values] }),
      ...(valuesFrom !== undefined && { valuesFrom: { tool: valuesFrom, ...sourceOf(key, sources) } }),
      example: { ...example },
    }
    return [field]
  })
  return {
    version: FILTERS_VERSION,
    fields,
    operators: describeOperators(),
    limits: { ...AUDIENCE_LIMITS },
    jsonSchema: filtersJsonSchema(fields.map(({ key, type }) => ({ key, kind: type }))),
  }
}

function customField([name, type]: [string, FieldType]): FilterField {
  const key = CUSTOM_FIELD_PREFIX + name
  const example = { field: key, operator: 'equals', value: EXAMPLES[type] }
  return { key, label: name, type, operators: [...OPERATORS[type]], example }
}

function sourceOf(key: string, sources: readonly Source[]) {
  const own = sources.filter(({ field }) => field === key)
  const newest = own.map(({ field, id, name }) => ({ value: valueOf(field, id, name), label: name }))
  return { total: own[0]?.total ?? 0, newest }
}

/** Returns the filter value of a source: tags are referenced by name, everything else by id. */
function valueOf(field: SourceField, id: string, name: string): string {
  if (field === 'tags') return name
  return encodeId(({ segment: 'seg', campaign: 'cmp', workflow: 'wf' } as const)[field], id)
}

async function readSources({ em, organization }: Call): Promise<Source[]> {
  const newest = (field: SourceField, table: string, condition = sql``) => sql`(
    select ${field} as field, id, name, count(*) over ()::int as total from ${sql.table(table)}
    where organization_id = ${organization.id} ${condition} order by id desc limit ${SHOWN})`
  return await rows<Source>(
    em,
    sql`${newest('tags', 'tag')} union all ${newest('segment', 'segment')}
      union all ${newest('campaign', 'campaign', sql`and kind = 'BROADCAST'`)}
      union all ${newest('workflow', 'automation')}`,
  )
}
