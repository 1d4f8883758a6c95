import type { Edge, Step } from '../../../../schema/automation.ts'
import { isRecord } from '../../../../schema/json.ts'
import type { Difference, VersionComparison } from '../../../../schema/workflow-version.ts'
import { joinPath } from '../../../catalogue/schema-faults.ts'
import type { FrozenEmail, PublishedDefinition } from './versions.ts'

/** Returns the differences between two definitions. Steps are matched by id. Pure. */
export function compareDefinitions(
  from: PublishedDefinition,
  to: PublishedDefinition,
): Omit<VersionComparison, 'from' | 'to'> {
  const before = new Map(from.steps.map((step) => [step.id, step]))
  const after = new Map(to.steps.map((step) => [step.id, step]))
  const added = to.steps.filter(({ id }) => !before.has(id)).map(named)
  const removed = from.steps.filter(({ id }) => !after.has(id)).map(named)
  const changed = to.steps.flatMap((step) => {
    const earlier = before.get(step.id)
    if (!earlier) return []
    const changes = differences(whole(earlier, from), whole(step, to), '')
    return changes.length === 0 ? [] : [{ ...named(step), changes }]
  })
  const edges = { added: without(to.edges, from.edges), removed: without(from.edges, to.edges) }
  const settings = differences(from.settings, to.settings, '')
  const goals = differences(byId(from.successGoals), byId(to.successGoals), '')
  const lists = [added, removed, changed, edges.added, edges.removed, settings, goals]
  const identical = lists.every((list) => list.length === 0)
  return { identical, added, removed, changed, edges, settings, goals }
}

function named({ id, type, name }: Step) {
  return { id, type, name: name ?? null }
}

/**
 * Returns the members of a step without its id. An EMAIL step has the content of its email in place of `campaignId`.
 */
function whole(step: Step, { emails }: PublishedDefinition): Record<string, unknown> {
  const { id: _id, ...members } = step
  if (step.type !== 'EMAIL') return members
  const { campaignId: _campaignId, ...config } = step.config
  return { ...members, config, email: readable(emails[step.id]) }
}

function readable(email: FrozenEmail | undefined): unknown {
  if (!email) return undefined
  const { subject, preview, content, contentType, sender, replyTo } = email
  return { subject, preview, content, contentType, sender: sender?.email ?? null, replyTo }
}

function byId(goals: PublishedDefinition['successGoals']): Record<string, unknown> {
  return Object.fromEntries(goals.map(({ id, ...goal }) => [id, goal]))
}

function without(edges: readonly Edge[], others: readonly Edge[]): Edge[] {
  const key = ({ from, to, port }: Edge) => JSON.stringify([from, to, port])
  const known = new Set(others.map(key))
  return edges.filter((edge) => !known.has(key(edge))).map(({ from, to, port }) => ({ from, to, port }))
}

/** Returns the members that differ. Descends into objects; a list is compared as a whole. */
function differences(before: unknown, after: unknown, path: string): Difference[] {
  if (isRecord(before) && isRecord(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
    return names.flatMap((name) => differences(before[name], after[name], joinPath(path, name)))
  }
  if (canonical(before) === canonical(after)) return []
  return [{ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) }]
}

/** Returns the JSON of a value with the members of its objects sorted, so that equal values give equal text. */
function canonical(value: unknown): string | undefined {
  return JSON.stringify(value, (_key, each: unknown) =>
    isRecord(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  )
}
