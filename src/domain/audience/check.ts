import { AUDIENCE_LIMITS, CUSTOM_FIELD_PREFIX, type Filter } from '../../../schema/audience.ts'
import type { SuccessGoal } from '../../../schema/automation-goals.ts'
import type { Definition } from '../../../schema/automation.ts'
import { isRecord } from '../../../schema/json.ts'
import type { FieldType } from '../../../schema/values.ts'
import { type Fault, refuseFaults } from '../../catalogue/failure.ts'
import { joinPath } from '../../catalogue/schema-faults.ts'
import type { EntityManager } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import {
  type AudienceScope,
  customFieldTypes,
  fieldNamesIn,
  loadReferences,
  type Place,
  placesOf,
  type References,
  segmentsIn,
  sizeInPlace,
  tagNamesIn,
} from './references.ts'
import { idsOf } from './related.ts'
import { validateFilters } from './validate.ts'

/** How references in filters are checked, which depends on where the filters are used. */
export type ReferenceOptions = {
  /** Tags need not exist, because they are created on demand. */
  tagsOnDemand?: boolean
  /** The uuid of the segment that will contain these filters. They must not lead back to it. */
  segmentId?: string
}

/** A filter with its JSON path and, in a workflow, its step. */
export type PlacedFilter = { filter: Filter; path: string; stepId?: string }

/** Validates the filters of a tool's input and their references. Throws `INVALID_INPUT` with all faults. */
export async function checkFilters(
  em: EntityManager,
  scope: AudienceScope,
  raw: unknown,
  path: string,
  options: ReferenceOptions = {},
): Promise<Filter[]> {
  return (await readFilters(em, scope, raw, path, options)).filters
}

/** Does the same and returns the references as well, for callers that compile the filters. */
export async function readFilters(
  em: EntityManager,
  scope: AudienceScope,
  raw: unknown,
  path: string,
  options: ReferenceOptions = {},
): Promise<{ filters: Filter[]; references: References }> {
  const faults = validateFilters(raw, path)
  const isReadable = Array.isArray(raw) && !faults.some((fault) => fault.path === path)
  const list: unknown[] = isReadable ? raw : []
  const placed = list.flatMap((filter, index): PlacedFilter[] => {
    const at = joinPath(path, index)
    // A filter without faults of its own passed validateFilters, so it has the type.
    return isFaulty(faults, at) ? [] : [{ filter: filter as Filter, path: at }]
  })
  const judged = await judgeReferences(em, scope, placed, options)
  faults.push(...judged.faults)
  const together = sizeFault(
    placed.map(({ filter }) => filter),
    judged.references,
  )
  if (faults.length === 0 && together !== null) faults.push({ path, message: together })
  if (faults.length > 0) refuseFaults(faults, 'The list of filters')
  return { filters: placed.map(({ filter }) => filter), references: judged.references }
}

/**
 * Returns the faults that need a look-up, for any number of filters at once: tags, segments, campaigns and workflows
 * that do not exist, custom fields that do not exist or have another type, and segments that contain themselves.
 */
export async function referenceFaults(
  em: EntityManager,
  scope: AudienceScope,
  placed: readonly PlacedFilter[],
  options: ReferenceOptions = {},
): Promise<Fault[]> {
  return (await judgeReferences(em, scope, placed, options)).faults
}

async function judgeReferences(
  em: EntityManager,
  scope: AudienceScope,
  placed: readonly PlacedFilter[],
  options: ReferenceOptions,
): Promise<{ faults: Fault[]; references: References }> {
  const filters = placed.map(({ filter }) => filter)
  const references = await loadReferences(em, scope, filters)
  // The full list of names is needed only to suggest one for an unknown name.
  const isKnown = fieldNamesIn(filters).every((name) => references.fields.has(name))
  const fields = isKnown ? references.fields : await customFieldTypes(em, scope.organizationId)
  const faults = placed.flatMap(({ filter, path, stepId }) => {
    // placesOf writes the path of a single filter as [0]; here its path is `path`.
    const places = placesOf([filter], '').map(({ leaf, path: inner }) => ({
      leaf,
      path: path + inner.slice(3),
    }))
    const faults = places.flatMap((place) => [
      ...fieldFaults(place, fields),
      ...missingFaults(place, references, options),
      ...nestingFaults(place, references, options.segmentId),
    ])
    return stepId === undefined ? faults : faults.map((fault) => ({ stepId, ...fault }))
  })
  return { faults, references }
}

/** Returns the filters of a success goal at `path` with their paths; see filtersOf. */
export function goalFiltersOf({ filters = [] }: SuccessGoal, path: string): PlacedFilter[] {
  return filters.map((filter, index) => ({ filter, path: joinPath(`${path}.filters`, index) }))
}

/** Returns all filters of a definition with their paths, for referenceFaults and for creating tags on demand. */
export function filtersOf(definition: Definition): PlacedFilter[] {
  return definition.steps.flatMap((step, position) => {
    const at = `steps[${position}]`
    const lists = [{ filters: step.conditions ?? [], path: `${at}.conditions` }]
    if (step.type === 'TRIGGER') {
      lists.push({ filters: step.config.filters ?? [], path: `${at}.config.filters` })
    }
    if (step.type === 'WAIT_UNTIL' && step.config.mode === 'CONDITION') {
      lists.push({ filters: step.config.filters, path: `${at}.config.filters` })
    }
    if (step.type === 'BRANCH') {
      step.config.paths.forEach(({ filters }, index) =>
        lists.push({ filters, path: `${at}.config.paths[${index}].filters` }),
      )
    }
    return lists.flatMap(({ filters, path }) =>
      filters.map((filter, index) => ({ filter, path: joinPath(path, index), stepId: step.id })),
    )
  })
}

/**
 * Returns the names of all tags that a definition or its goals use, as written. Publishing creates the missing ones.
 */
export function tagNamesOf(definition: Definition, goals: readonly SuccessGoal[]): string[] {
  const named = definition.steps.flatMap((step) => {
    if (step.type === 'ADD_TAG' || step.type === 'REMOVE_TAG') return step.config.tagNames
    return step.type === 'TRIGGER' && 'tagNames' in step.config ? step.config.tagNames : []
  })
  const asked = tagNamesIn([
    ...filtersOf(definition).map(({ filter }) => filter),
    ...goals.flatMap(({ filters = [] }) => filters),
  ])
  return [...new Set([...named, ...asked])]
}

function isFaulty(faults: readonly Fault[], path: string): boolean {
  return faults.some((fault) => fault.path === path || fault.path.startsWith(`${path}.`))
}

function isCustomField({ leaf }: Place): boolean {
  return leaf.field.startsWith(CUSTOM_FIELD_PREFIX)
}

/** Validates a leaf again, now with the type of its custom field. */
function fieldFaults(place: Place, customFields: ReadonlyMap<string, FieldType>): Fault[] {
  if (!isCustomField(place)) return []
  return validateFilters([place.leaf], '', { customFields }).map((fault) => ({
    ...fault,
    path: place.path + fault.path.slice(3),
  }))
}

function missingFaults({ leaf, path }: Place, references: References, options: ReferenceOptions): Fault[] {
  const { field, value } = leaf
  if (value === undefined || isRecord(value)) return []
  const at = joinPath(path, 'value')
  const missing = (what: string, tool: string): Fault => ({
    path: at,
    message: `there is no ${what} in this organization; ${tool} lists what there is`,
  })
  if (field === 'tags' && Array.isArray(value) && !options.tagsOnDemand) {
    return value
      .filter((name) => !references.tags.has(String(name)))
      .map((name) => missing(`tag ${JSON.stringify(name)}`, 'list_tags'))
  }
  if (field === 'segment')
    return absent('seg', value, references.segments, (id) => missing(`segment ${id}`, 'list_segments'))
  if (field === 'campaign')
    return absent('cmp', value, references.campaigns, (id) => missing(`campaign ${id}`, 'list_campaigns'))
  if (field === 'workflow')
    return absent('wf', value, references.workflows, (id) => missing(`workflow ${id}`, 'list_workflows'))
  return []
}

function absent(
  prefix: 'seg' | 'cmp' | 'wf',
  value: Exclude<Place['leaf']['value'], undefined>,
  known: { has(id: string): boolean },
  fault: (id: string) => Fault,
): Fault[] {
  return idsOf(value, prefix)
    .filter((id) => !known.has(id))
    .map((id) => fault(encodeId(prefix, id)))
}

function nestingFaults({ leaf, path }: Place, references: References, self: string | undefined): Fault[] {
  if (leaf.field !== 'segment') return []
  const trail = self === undefined ? [] : [self]
  const message =
    nestingFault(segmentsIn([leaf]), references, trail, new Set()) ?? sizeFault([leaf], references)
  return message === null ? [] : [{ path: joinPath(path, 'value'), message }]
}

function sizeFault(filters: readonly Filter[], { segments }: References): string | null {
  if (segments.size === 0 || sizeInPlace(filters, segments) <= AUDIENCE_LIMITS.conditions) return null
  return `with the segments they name there are more than ${AUDIENCE_LIMITS.conditions} conditions; name fewer segments, or simplify them`
}

/** `seen` holds `depth/id` pairs found valid, so that shared segments are not walked once per path. */
function nestingFault(
  ids: ReadonlySet<string>,
  references: References,
  trail: readonly string[],
  seen: Set<string>,
): string | null {
  for (const id of ids) {
    const place = `${trail.length}/${id}`
    if (seen.has(place)) continue
    if (trail.includes(id)) {
      const circle = [...trail.slice(trail.indexOf(id)), id].map((each) => encodeId('seg', each))
      return `segments must not lead back to themselves: ${circle.join(' → ')}`
    }
    if (trail.length >= AUDIENCE_LIMITS.depth) {
      return `segments name each other more than ${AUDIENCE_LIMITS.depth} levels deep; flatten them`
    }
    const inner = segmentsIn(references.segments.get(id) ?? [])
    const deeper = nestingFault(inner, references, [...trail, id], seen)
    if (deeper !== null) return deeper
    seen.add(place)
  }
  return null
}
