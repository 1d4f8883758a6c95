import { sql } from 'kysely'

import type { Tag } from '../../../schema/tag.ts'
import { Failure, refuse } from '../../catalogue/failure.ts'
import type { Call, Impact } from '../../catalogue/tool.ts'
import { array, execute, row, rows } from '../../database.ts'
import { encodeId, missing, NIL_ID, readId } from '../../ids.ts'
import { refuseInUse, type Use, usesWhere } from '../audience/uses.ts'
import { recordEvents } from '../events.ts'
import { readWalk, type Walk } from '../keyset.ts'
import { lockSegments } from '../segments/lock.ts'
import { timestamp } from '../text.ts'
import { ensureTags, readTagName, tagEvents, type TagRow } from './tags.ts'

/** Names a tag: exactly one of the two members. */
export type TagChoice = { tagId?: string | undefined; name?: string | undefined }

type TagCountRow = TagRow & { subscriberCount: number; createdAt: string }

const DELETE_PAGE = 5_000

/** Lists all tags in alphabetical order, with the number of their subscribers. */
export async function listTags({ em, organization }: Call): Promise<Tag[]> {
  const found = await rows<TagCountRow>(
    em,
    sql`select tag.id, tag.name, tag.created_at as "createdAt", coalesce(links.count, 0)::int as "subscriberCount"
      from tag left join (
        select tag_id, count(*) as count from subscriber_tag
        where organization_id = ${organization.id} group by tag_id
      ) as links on links.tag_id = tag.id
      where tag.organization_id = ${organization.id} order by tag.name_key`,
  )
  return found.map(present)
}

/** Lists tags by keyset, newest first. */
export async function browseTags(call: Call, asked: Walk): Promise<{ tags: Tag[]; hasMore: boolean }> {
  const { em, organization } = call
  const walk = readWalk('tag', asked)
  const found = await rows<TagCountRow>(
    em,
    sql`${SELECT_COUNTED} where tag.organization_id = ${organization.id} ${walk.part(sql`tag.id`)}`,
  )
  const { page, hasMore } = walk.page(found)
  return { tags: page.map(present), hasMore }
}

/** Returns one tag by id or name. */
export async function getTag(call: Call, tag: string): Promise<Tag> {
  const { id } = await findTag(call, chooseTag(tag))
  return await readTag(call, id)
}

/**
 * Renames a tag; its subscribers keep it. Filters and steps refer to tags by name, so a tag in use allows only a change
 * of letter case. Throws `WRONG_STATE` that names the uses otherwise.
 */
export async function renameTag(call: Call, tag: string, name: string): Promise<Tag> {
  const { em, organization } = call
  const wanted = readTagName(name, 'name')
  // The lock keeps new filters from naming the tag meanwhile.
  await lockSegments(call)
  const found = await findTag(call, chooseTag(tag))
  const uses = (await isSameTag(call, wanted, found.name)) ? [] : await usesOfTag(call, found)
  refuseInUse(uses, `The tag "${found.name}" cannot be renamed`, 'remove it there first, or make a new tag')
  const renamed = await execute(
    em,
    sql`update tag set name = ${wanted} where organization_id = ${organization.id} and id = ${found.id}
      and not exists (select from tag other where other.organization_id = tag.organization_id
        and other.name_key = lower(${wanted}) and other.id <> tag.id)`,
  )
  if (renamed === 0) refuseTaken(wanted)
  return await readTag(call, found.id)
}

/** Creates a tag. Throws `ALREADY_EXISTS` when the name is in use, ignoring letter case. */
export async function createTag(call: Call, name: string): Promise<Tag> {
  readTagName(name, 'name')
  const { tags, created } = await ensureTags(call, [name], { path: 'name' })
  const [tag] = tags
  if (!tag || created === 0) refuseTaken(name, tag)
  return await readTag(call, tag.id)
}

/** Returns the tags of the names in order of first use, and creates missing ones. */
export async function getOrCreateTags(
  call: Call,
  names: readonly string[],
): Promise<{ tags: Tag[]; created: number }> {
  const { tags, created } = await ensureTags(call, names, { path: 'names' })
  return {
    tags: await readTags(
      call,
      tags.map(({ id }) => id),
    ),
    created,
  }
}

/** Compares names as the database does: its lower case can differ from JavaScript's. */
async function isSameTag({ em }: Call, one: string, other: string): Promise<boolean> {
  const found = await row<{ same: boolean }>(em, sql`select lower(${one}) = lower(${other}) as same`)
  return found?.same ?? false
}

function refuseTaken(name: string, tag?: TagRow): never {
  throw new Failure(
    'ALREADY_EXISTS',
    `The tag ${JSON.stringify(tag?.name ?? name)} exists already; use that one.`,
    { details: tag && { tagId: encodeId('tag', tag.id) } },
  )
}

/** Returns the choice for a text that is an id or a name. */
function chooseTag(tag: string): TagChoice {
  return readId('tag', tag) === null ? { name: tag } : { tagId: tag }
}

/** Returns the tag that a caller names. Throws `NOT_FOUND` when there is none. `lock` locks the row. */
export async function findTag(
  { em, organization }: Call,
  { tagId, name }: TagChoice,
  options: { lock?: boolean } = {},
): Promise<TagRow> {
  if ((tagId === undefined) === (name === undefined)) {
    refuse('tagId', 'and name stand for the same tag: send exactly one of them.')
  }
  const condition =
    tagId === undefined ? sql`name_key = lower(${name})` : sql`id = ${readId('tag', tagId)}::uuid`
  const found = await row<TagRow>(
    em,
    sql`select id, name from tag where organization_id = ${organization.id} and ${condition}
      ${options.lock ? sql`for update` : sql``}`,
  )
  if (found) return found
  throw new Failure(
    'NOT_FOUND',
    `There is no tag ${JSON.stringify((tagId ?? name ?? '').slice(0, 120))} in this organization; list_tags shows them all.`,
  )
}

/**
 * Deletes a tag and records a TAG_REMOVED event for each subscriber who had it. No workflow reacts, because the
 * subscribers did nothing. Returns how many had it.
 */
export async function deleteTag(call: Call, choice: TagChoice): Promise<{ tag: TagRow; removed: number }> {
  const { em, organization } = call
  // New links take a share lock on the tag row, so nobody can get the tag while it is deleted.
  const tag = await findTag(call, choice, { lock: true })
  let removed = 0
  let reached = NIL_ID
  for (;;) {
    // Each page begins where the last one ended: until the commit, index entries of deleted rows are read again.
    const page = await rows<{ subscriberId: string; isGone: boolean }>(
      em,
      sql`with page as materialized (
          select subscriber_id from subscriber_tag
          where organization_id = ${organization.id} and tag_id = ${tag.id} and subscriber_id > ${reached}
          order by subscriber_id limit ${DELETE_PAGE}
        ), gone as (
          delete from subscriber_tag where organization_id = ${organization.id} and tag_id = ${tag.id}
            and subscriber_id = any(array(select subscriber_id from page))
          returning subscriber_id
        )
        select page.subscriber_id as "subscriberId", gone.subscriber_id is not null as "isGone"
        from page left join gone using (subscriber_id) order by page.subscriber_id`,
    )
    // Another call may have taken the tag from somebody meanwhile.
    const changes = page.flatMap(({ subscriberId, isGone }) => (isGone ? [{ subscriberId, tag }] : []))
    if (changes.length > 0)
      await recordEvents(call, tagEvents('TAG_REMOVED', changes), { triggerWorkflows: false })
    removed += changes.length
    const last = page.at(-1)
    if (page.length < DELETE_PAGE || !last) break
    reached = last.subscriberId
  }
  await execute(em, sql`delete from tag where organization_id = ${organization.id} and id = ${tag.id}`)
  return { tag, removed }
}

/** Summarizes what deleting a tag will do: how many lose it, and which workflows, segments and campaigns name it. */
export async function summarizeTagDeletion(call: Call, choice: TagChoice): Promise<Impact> {
  const { em, organization } = call
  const tag = await findTag(call, choice)
  const [people, uses] = [await countCarriers(call, tag), await usesOfTag(call, tag)]
  const audience = await row<{ count: number }>(
    em,
    sql`select count(*)::int as count from subscriber where organization_id = ${organization.id}`,
  )
  return {
    target: `the tag "${tag.name}"`,
    effects: [
      `The tag is taken from ${people} of ${audience?.count ?? 0} subscribers and deleted; this cannot be undone.`,
      'No workflow starts because of it.',
    ],
    warnings: uses.map(({ kind, name }) => `The ${kind} "${name}" names this tag and can no longer use it.`),
  }
}

async function countCarriers({ em, organization }: Call, tag: TagRow): Promise<number> {
  const found = await row<{ count: number }>(
    em,
    sql`select count(*)::int as count from subscriber_tag
      where organization_id = ${organization.id} and tag_id = ${tag.id}`,
  )
  return found?.count ?? 0
}

/** Returns the workflows, segments and unfinished campaigns that name the tag. */
async function usesOfTag(call: Call, tag: TagRow): Promise<Use[]> {
  return await usesWhere(
    call,
    sql`lower(${tag.name}) = any(select lower(value #>> '{}') from (
      select jsonb_path_query(document, '$.**.tagNames[*]') as value
      union all select jsonb_path_query(document, '$.** ? (@.field == "tags").value[*]')) as named)`,
  )
}

async function readTag(call: Call, id: string): Promise<Tag> {
  const [tag] = await readTags(call, [id])
  return tag ?? missing('tag', encodeId('tag', id))
}

const SELECT_COUNTED = sql`select tag.id, tag.name, tag.created_at as "createdAt", (
    select count(*)::int from subscriber_tag link
    where link.organization_id = tag.organization_id and link.tag_id = tag.id) as "subscriberCount"
  from tag`

async function readTags({ em, organization }: Call, ids: readonly string[]): Promise<Tag[]> {
  const found = await rows<TagCountRow>(
    em,
    sql`${SELECT_COUNTED} where tag.organization_id = ${organization.id} and tag.id = any(${array(ids, 'uuid')})
      order by array_position(${array(ids, 'uuid')}, tag.id)`,
  )
  return found.map(present)
}

function present({ id, name, subscriberCount, createdAt }: TagCountRow): Tag {
  return { id: encodeId('tag', id), name, subscriberCount, createdAt: timestamp(createdAt) }
}
