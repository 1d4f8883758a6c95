import { sql } from 'kysely'

import type { Filter } from '../../../schema/audience.ts'
import { type CountedSegment, type Segment, SEGMENT_LIMITS } from '../../../schema/segment.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call, Impact } from '../../catalogue/tool.ts'
import { execute, json, row, rows } from '../../database.ts'
import { decodeId, encodeId, missing, newId } from '../../ids.ts'
import { checkFilters } from '../audience/check.ts'
import { audiencePredicate } from '../audience/match.ts'
import { decodeCursor, encodeCursor } from '../cursor.ts'
import { keyset } from '../keyset.ts'
import { copyName, nameLine, searchPattern, timestamp } from '../text.ts'
import { lockSegments } from './lock.ts'
import { outerSegments, readNesting, refuseDeepNesting } from './nesting.ts'
import { refuseUsedSegment } from './uses.ts'
import { retakeMembers } from './watch.ts'

type SegmentRow = { id: string; name: string; filters: Filter[]; createdAt: string; updatedAt: string }

const COLUMNS = sql`id, name, filters, created_at as "createdAt", updated_at as "updatedAt"`

/** Lists segments whose name contains `query`, newest first, in keyset pages. */
export async function listSegments(
  { em, organization }: Call,
  { query, limit, cursor }: { query?: string | undefined; limit: number; cursor?: string | undefined },
): Promise<{ segments: Segment[]; nextCursor: string | null; hasMore: boolean }> {
  const pattern = searchPattern(query)
  const asked = ['segments', organization.id, pattern]
  const walk = keyset(cursor === undefined ? null : decodeCursor(asked, 'seg', cursor), limit)
  const found = await rows<SegmentRow>(
    em,
    sql`select ${COLUMNS} from segment where organization_id = ${organization.id}
      and (${pattern}::text is null or name ilike ${pattern}) ${walk.part(sql`id`)}`,
  )
  const { page, hasMore } = walk.page(found)
  const last = page.at(-1)
  return {
    segments: page.map(present),
    nextCursor: hasMore && last ? encodeCursor(asked, encodeId('seg', last.id)) : null,
    hasMore,
  }
}

/** Returns a segment and its current size. With a missing reference in its filters, the size is null. */
export async function getSegment(call: Call, segmentId: string): Promise<CountedSegment> {
  const found = await findSegment(call, segmentId)
  const counted = { ...present(found), countedAt: call.now.toISOString() }
  try {
    return { ...counted, subscriberCount: await countMatching(call, found.filters), problem: null }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { ...counted, subscriberCount: null, problem: error.message }
  }
}

/** Creates a segment from valid filters. Names need not be unique. */
export async function createSegment(call: Call, name: string, filters: unknown): Promise<Segment> {
  const line = readName(name)
  // The lock keeps a segment that these filters name from being deleted between the check and the commit.
  await lockSegments(call)
  const id = newId()
  return await insertSegment(call, id, line, await checkOwnFilters(call, id, filters))
}

/** Changes name, filters or both. Refuses cycles of segments of any length. */
export async function updateSegment(
  call: Call,
  segmentId: string,
  change: { name?: string | undefined; filters?: unknown },
): Promise<Segment> {
  const name = change.name === undefined ? undefined : readName(change.name)
  await lockSegments(call)
  const before = await findSegment(call, segmentId)
  const filters =
    change.filters === undefined ? undefined : await checkOwnFilters(call, before.id, change.filters)
  const nesting = filters && (await readNesting(call))
  if (nesting) refuseDeepNesting(nesting, before.id, filters)
  const after = await row<SegmentRow>(
    call.em,
    sql`update segment set name = ${name ?? before.name}, filters = ${json(filters ?? before.filters)}
      where organization_id = ${call.organization.id} and id = ${before.id} returning ${COLUMNS}`,
  )
  if (nesting) await retakeMembers(call, [before.id, ...outerSegments(nesting, before.id)])
  return present(after ?? missing('seg', segmentId))
}

/** Creates a segment with the same filters. */
export async function duplicateSegment(
  call: Call,
  segmentId: string,
  newName: string | undefined,
): Promise<Segment> {
  const line = newName === undefined ? undefined : readName(newName, 'newName')
  await lockSegments(call)
  const { name, filters } = await findSegment(call, segmentId)
  return await insertSegment(call, newId(), line ?? copyName(name, SEGMENT_LIMITS.name), filters)
}

/** Deletes a segment that is not in use; its subscribers do not change. */
export async function deleteSegment(call: Call, segmentId: string): Promise<void> {
  await lockSegments(call)
  const segment = await findSegment(call, segmentId)
  await refuseUsedSegment(call, segment)
  await execute(
    call.em,
    sql`delete from segment where organization_id = ${call.organization.id} and id = ${segment.id}`,
  )
}

/** Summarizes what deleting will do. Throws `WRONG_STATE` with the uses of a segment that is in use. */
export async function summarizeSegmentDeletion(call: Call, segmentId: string): Promise<Impact> {
  const segment = await findSegment(call, segmentId)
  await refuseUsedSegment(call, segment)
  return {
    target: `the segment "${segment.name}" (${segmentId})`,
    effects: [
      'The segment and its filters are deleted; this cannot be undone.',
      'No subscriber is changed, and no workflow starts because of it.',
    ],
    warnings: [],
  }
}

async function findSegment({ em, organization }: Call, segmentId: string): Promise<SegmentRow> {
  const found = await row<SegmentRow>(
    em,
    sql`select ${COLUMNS} from segment
      where organization_id = ${organization.id} and id = ${decodeId('seg', segmentId)}`,
  )
  return found ?? missing('seg', segmentId)
}

async function insertSegment(
  { em, organization }: Call,
  id: string,
  name: string,
  filters: readonly Filter[],
): Promise<Segment> {
  const made = await row<SegmentRow>(
    em,
    sql`insert into segment (id, organization_id, name, filters)
      values (${id}, ${organization.id}, ${name}, ${json(filters)}) returning ${COLUMNS}`,
  )
  if (!made) throw new Error('a new segment cannot be read back')
  return present(made)
}

/** Validates the filters of this segment and returns them. */
async function checkOwnFilters(call: Call, id: string, raw: unknown): Promise<Filter[]> {
  const scope = { organizationId: call.organization.id }
  return await checkFilters(call.em, scope, raw, 'filters', { segmentId: id })
}

async function countMatching({ em, organization }: Call, filters: readonly Filter[]): Promise<number> {
  const predicate = await audiencePredicate(em, { organizationId: organization.id }, filters)
  const found = await row<{ count: number }>(
    em,
    sql`select count(*)::int as count from subscriber s
      where s.organization_id = ${organization.id} and ${predicate}`,
  )
  return found?.count ?? 0
}

function readName(name: string, path = 'name'): string {
  return nameLine(name, path, SEGMENT_LIMITS.name, 'a name such as "Paying customers"')
}

function present({ id, name, filters, createdAt, updatedAt }: SegmentRow): Segment {
  return {
    id: encodeId('seg', id),
    name,
    filters,
    createdAt: timestamp(createdAt),
    updatedAt: timestamp(updatedAt),
  }
}
