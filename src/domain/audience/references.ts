import { type RawBuilder, sql } from 'kysely'

import {
  AUDIENCE_LIMITS,
  conditionsOf,
  CUSTOM_FIELD_PREFIX,
  ENTRY_PREFIX,
  FIELDS,
  type Filter,
  type Leaf,
} from '../../../schema/audience.ts'
import { isRecord } from '../../../schema/json.ts'
import type { FieldType } from '../../../schema/values.ts'
import { joinPath } from '../../catalogue/schema-faults.ts'
import type { Organization } from '../../catalogue/tool.ts'
import { array, type EntityManager, rows } from '../../database.ts'
import { idsOf } from './related.ts'

/**
 * The organization of the filters. A known `timezone` saves a look-up; without one it is read again, so that a change
 * in the same transaction counts.
 */
export type AudienceScope = { organizationId: string; timezone?: string }

/** The records that filters refer to by name or id. Missing ones are absent. */
export type References = {
  timezone: string
  /** Tag uuids by name as written. */
  tags: Map<string, string>
  /** Filters of segments by uuid. */
  segments: Map<string, readonly Filter[]>
  /** Types of custom fields by name. */
  fields: Map<string, FieldType>
  /** The uuids of existing campaigns. */
  campaigns: Set<string>
  workflows: Set<string>
}

/** A leaf with its JSON path. */
export type Place = { leaf: Leaf; path: string }

type Names = Record<'tags' | 'segments' | 'fields' | 'campaigns' | 'workflows', Set<string>>
type Found =
  | { kind: 'zone' | 'tag' | 'campaign' | 'workflow'; name: string; id: string }
  | { kind: 'segment'; name: string; data: Filter[] }
  | { kind: 'field'; name: string; id: FieldType }

/** Returns the scope of filters that compare dates in the time zone that the call has read. */
export function zonedScope({ id, timezone }: Organization): Required<AudienceScope> {
  return { organizationId: id, timezone }
}

/**
 * Loads the records that filters refer to: one query, and one more per level of nested segments. Filters without
 * references and dates need none.
 */
export async function loadReferences(
  em: EntityManager,
  scope: AudienceScope,
  filters: readonly Filter[],
): Promise<References> {
  const references: References = {
    timezone: scope.timezone ?? 'UTC',
    tags: new Map(),
    segments: new Map(),
    fields: new Map(),
    campaigns: new Set(),
    workflows: new Set(),
  }
  let open: readonly Filter[] = filters
  let zoned = scope.timezone !== undefined
  for (let level = 0; level <= AUDIENCE_LIMITS.depth + 1; level++) {
    const places = placesOf(open, '')
    const names = namesIn(places)
    for (const id of references.segments.keys()) names.segments.delete(id)
    const askZone: boolean = !zoned && places.some(needsZone)
    zoned ||= askZone
    const parts = [...(askZone ? [zoneQuery(scope)] : []), ...lookUps(scope, names)]
    if (parts.length === 0) break
    const query = sql`select * from (${sql.join(parts, sql` union all `)}) as found (kind, name, id, data)`
    open = collect(references, await rows<Found>(em, query))
  }
  return references
}

/** Returns the tag names in filters as written, for creating them on demand. */
export function tagNamesIn(filters: readonly Filter[]): string[] {
  return [...namesIn(placesOf(filters, '')).tags]
}

/** Returns the names of custom fields in filters. */
export function fieldNamesIn(filters: readonly Filter[]): string[] {
  return [...namesIn(placesOf(filters, '')).fields]
}

/** Returns the types of the organization's custom fields by name. */
export async function customFieldTypes(
  em: EntityManager,
  organizationId: string,
): Promise<Map<string, FieldType>> {
  const found = await rows<{ name: string; type: FieldType }>(
    em,
    sql`select name, type from custom_field where organization_id = ${organizationId} order by name`,
  )
  return new Map(found.map(({ name, type }) => [name, type]))
}

/** Returns all leaves of filters with their paths, in document order. */
export function placesOf(filters: readonly Filter[], path: string): Place[] {
  return filters.flatMap((filter, index) => placesIn(filter, joinPath(path, index)))
}

/** Returns the uuids of the segments in filters. */
export function segmentsIn(filters: readonly Filter[]): Set<string> {
  return namesIn(placesOf(filters, '')).segments
}

/** Counts the conditions of filters after segments are replaced by their filters. */
export function sizeInPlace(
  filters: readonly Filter[],
  segments: References['segments'],
  known = new Map<string, number>(),
): number {
  function sizeOf(id: string): number {
    const size = known.get(id)
    if (size !== undefined) return size
    // Other checks report cycles; this value only ends the recursion.
    known.set(id, 1)
    const found = Math.max(1, sizeInPlace(segments.get(id) ?? [], segments, known))
    known.set(id, found)
    return found
  }
  return placesOf(filters, '').reduce((size, { leaf: { field, value, where } }) => {
    if (field !== 'segment' || value === undefined) return size + conditionsOf(where)
    return idsOf(value, 'seg').reduce((sum, id) => sum + sizeOf(id), size)
  }, 0)
}

function placesIn(filter: Filter, path: string): Place[] {
  if ('all' in filter) return placesOf(filter.all, joinPath(path, 'all'))
  if ('any' in filter) return placesOf(filter.any, joinPath(path, 'any'))
  if ('not' in filter) return placesIn(filter.not, joinPath(path, 'not'))
  return [{ leaf: filter, path }]
}

function namesIn(places: readonly Place[]): Names {
  const names: Names = {
    tags: new Set(),
    segments: new Set(),
    fields: new Set(),
    campaigns: new Set(),
    workflows: new Set(),
  }
  const add = (to: Set<string>, values: readonly string[]) => values.forEach((value) => to.add(value))
  for (const { leaf } of places) {
    const { field, value } = leaf
    if (field.startsWith(CUSTOM_FIELD_PREFIX)) names.fields.add(field.slice(CUSTOM_FIELD_PREFIX.length))
    if (value === undefined || isRecord(value)) continue
    if (field === 'tags' && Array.isArray(value)) add(names.tags, value.map(String))
    if (field === 'segment') add(names.segments, idsOf(value, 'seg'))
    if (field === 'campaign') add(names.campaigns, idsOf(value, 'cmp'))
    if (field === 'workflow') add(names.workflows, idsOf(value, 'wf'))
  }
  return names
}

/** Whether a leaf may compare dates, which depend on the organization's time zone. */
function needsZone({ leaf: { field } }: Place): boolean {
  if (field === 'event' || field.startsWith(CUSTOM_FIELD_PREFIX) || field.startsWith(ENTRY_PREFIX))
    return true
  return Object.hasOwn(FIELDS, field) && FIELDS[field]?.kind === 'date'
}

function zoneQuery({ organizationId }: AudienceScope): RawBuilder<unknown> {
  return sql`select 'zone', timezone, '', null::jsonb from organization where id = ${organizationId}`
}

function lookUps({ organizationId }: AudienceScope, names: Names): RawBuilder<unknown>[] {
  const asked = (set: Set<string>, query: (list: string[]) => RawBuilder<unknown>) =>
    set.size === 0 ? [] : [query([...set])]
  return [
    ...asked(
      names.tags,
      (list) => sql`select 'tag', asked.name, tag.id::text, null::jsonb
        from unnest(${array(list, 'text')}) as asked (name)
        join tag on tag.organization_id = ${organizationId} and tag.name_key = lower(asked.name)`,
    ),
    ...asked(
      names.segments,
      (list) => sql`select 'segment', id::text, '', filters from segment
        where organization_id = ${organizationId} and id = any(${array(list, 'uuid')})`,
    ),
    ...asked(
      names.fields,
      (list) => sql`select 'field', name, type, null::jsonb from custom_field
        where organization_id = ${organizationId} and name = any(${array(list, 'text')})`,
    ),
    ...asked(
      names.campaigns,
      (list) => sql`select 'campaign', id::text, '', null::jsonb from campaign
        where organization_id = ${organizationId} and id = any(${array(list, 'uuid')})`,
    ),
    ...asked(
      names.workflows,
      (list) => sql`select 'workflow', id::text, '', null::jsonb from automation
        where organization_id = ${organizationId} and id = any(${array(list, 'uuid')})`,
    ),
  ]
}

/** Stores found references, and returns the filters of found segments, whose references are loaded next. */
function collect(references: References, found: readonly Found[]): Filter[] {
  const inside: Filter[] = []
  for (const row of found) {
    switch (row.kind) {
      case 'zone':
        references.timezone = row.name
        break
      case 'tag':
        references.tags.set(row.name, row.id)
        break
      case 'segment':
        references.segments.set(row.name, row.data)
        inside.push(...row.data)
        break
      case 'field':
        references.fields.set(row.name, row.id)
        break
      case 'campaign':
        references.campaigns.add(row.name)
        break
      case 'workflow':
        references.workflows.add(row.name)
        break
    }
  }
  return inside
}
