import { sql } from 'kysely'

import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import type { Definition, Settings } from '../../../../schema/automation.ts'
import type { ContentType } from '../../../../schema/values.ts'
import { type Graph, indexGraph } from '../../../../temporal/graph.ts'
import { array, type EntityManager, rows } from '../../../database.ts'
import { bytesOf, createByteCache } from '../../byte-cache.ts'

/** An email as publishing froze it. Ids are uuids. */
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

/** What automation_version.definition holds: the graph with its settings, and the emails by step id. */
export type PublishedDefinition = Definition & {
  settings: Settings
  successGoals: SuccessGoal[]
  emails: Record<string, FrozenEmail>
}

/** A published version, ready to walk. */
export type Version = {
  id: string
  automationId: string
  number: number
  definition: PublishedDefinition
  graph: Graph
}

/** Versions with emails of 1 MB by the dozen, or ordinary ones by the thousand. */
const CACHED_BYTES = 32 << 20
/** Versions never change, so a process keeps the most recently used ones. */
const cache = createByteCache<Version>(CACHED_BYTES)

/** The versions of these ids; each is read once by a process. */
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
    // The graph is made of the parts of its definition.
    cache.set(`${organizationId}/${version.id}`, version, bytesOf(version.definition))
  }
  return found
}

/** One version; every run has the one it entered on. */
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
