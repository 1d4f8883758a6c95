import { sql } from 'kysely'

import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import type { Definition, Settings } from '../../../../schema/automation.ts'
import type { ContentType } from '../../../../schema/values.ts'
import { type Graph, indexGraph } from '../../../../temporal/graph.ts'
import { array, type EntityManager, rows } from '../../../database.ts'
import { bytesOf, createByteCache } from '../../byte-cache.ts'

/** An email as publishing froze it. Ids are UUIDs. */
export type FrozenEmail = {
  campaignId: string
  subject: string
  preview: string | null
  content: unknown
  contentType: ContentType
  sender: { id: string; name: string; email: string } | null
  replyTo: string | null
  transactional: boolean
}

/** The JSON of `automation_version.definition`: the graph, settings and goals, and the emails by step id. */
export type PublishedDefinition = Definition & {
  settings: Settings
  successGoals: SuccessGoal[]
  emails: Record<string, FrozenEmail>
}

/** Returns the emails of a version by step id, in the order of its steps: the database keeps no order of members. */
export function emailsInOrder({ steps, emails }: PublishedDefinition): [string, FrozenEmail][] {
  return steps.flatMap(({ id }): [string, FrozenEmail][] => {
    const email = emails[id]
    return email ? [[id, email]] : []
  })
}

/** A published version with its graph indexed. Ids are UUIDs. */
export type Version = {
  id: string
  automationId: string
  number: number
  definition: PublishedDefinition
  graph: Graph
}

/** The size of the cache in bytes: room for dozens of versions with emails of 1 MB, or thousands of ordinary ones. */
const CACHED_BYTES = 32 << 20
/** The most recently used versions. They never change, so no entry is ever stale. */
const cache = createByteCache<Version>(CACHED_BYTES)

/** Returns the versions with these ids, from the cache where possible. Ids that do not exist are left out. */
export async function loadVersions(
  em: EntityManager,
  organizationId: string,
  versionIds: readonly string[],
): Promise<Map<string, Version>> {
  const found = new Map<string, Version>()
  const unknown: string[] = []
  for (const id of new Set(versionIds)) {
    const version = cache.get(`${organizationId}/${id}`)
    if (version) found.set(id, version)
    else unknown.push(id)
  }
  for (const version of await readVersions(em, organizationId, unknown)) {
    found.set(version.id, version)
    // Only the definition is counted: the graph shares its objects.
    cache.set(`${organizationId}/${version.id}`, version, bytesOf(version.definition))
  }
  return found
}

/** Returns the version with this id. Throws an error if it does not exist. */
export async function loadVersion(
  em: EntityManager,
  organizationId: string,
  versionId: string,
): Promise<Version> {
  const version = (await loadVersions(em, organizationId, [versionId])).get(versionId)
  if (!version) throw new Error('a run is pinned to a version that does not exist')
  return version
}

async function readVersions(
  em: EntityManager,
  organizationId: string,
  ids: readonly string[],
): Promise<Version[]> {
  if (ids.length === 0) return []
  const found = await rows<Omit<Version, 'graph'>>(
    em,
    sql`select id, automation_id as "automationId", number, definition from automation_version
      where organization_id = ${organizationId} and id = any(${array(ids, 'uuid')})`,
  )
  return found.map((version) => ({ ...version, graph: indexGraph(version.definition) }))
}
