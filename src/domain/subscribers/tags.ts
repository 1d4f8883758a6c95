import { type RawBuilder, sql } from 'kysely'

import { TAG_LIMITS } from '../../../schema/tag.ts'
import { refuse } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, column, json, rows } from '../../database.ts'
import { encodeId, newId } from '../../ids.ts'
import { causeOf } from '../event-rows.ts'
import { answerEvents, type NewEvent } from '../events.ts'
import { oneLine } from '../text.ts'

/** A tag with its uuid. */
export type TagRow = { id: string; name: string }

/** A tag that a subscriber actually got or lost. */
export type TagChange = { subscriberId: string; tag: TagRow }

/** `path` names the input with the tag names in errors. */
type ChangeOptions = { triggerWorkflows?: boolean; path?: string }

/** Checks a tag name: 1 to 100 characters on one line, without surrounding blanks. Names ignore letter case. */
export function readTagName(text: string, path: string): string {
  oneLine(text, path, TAG_LIMITS.name)
  if (text === '') refuse(path, `is empty; a tag name has 1 to ${TAG_LIMITS.name} characters.`)
  if (text !== text.trim()) refuse(path, 'begins or ends with a blank; remove it.')
  return text
}

/** Checks tag names and returns them without duplicates, ignoring letter case. */
export function readTagNames(names: readonly string[], path: string): string[] {
  const byKey = new Map<string, string>()
  names.forEach((name, index) => {
    const key = readTagName(name, `${path}[${index}]`).toLowerCase()
    if (!byKey.has(key)) byKey.set(key, name)
  })
  return [...byKey.values()]
}

/**
 * Returns the tags of the names and creates missing ones. The tags stay locked against deletion until the end of the
 * transaction. The same statement gives them to `subscriberIds` without events; `added` lists the tags that were new to
 * a subscriber. Unknown subscribers are ignored.
 */
export async function ensureTags(
  { em, organization }: Call,
  names: readonly string[],
  { path = 'tagNames', subscriberIds = [] }: { path?: string; subscriberIds?: readonly string[] } = {},
): Promise<{ tags: TagRow[]; created: number; added: TagChange[] }> {
  if (names.length === 0) return { tags: [], created: 0, added: [] }
  const wanted = readTagNames(names, path)
  const found = await rows<TagRow & { made: boolean; linked: string[] }>(
    em,
    sql`select id, name, made, linked::text[] as linked from ensure_tags(${organization.id},
      ${array(wanted.map(newId), 'uuid')}, ${array(wanted, 'text')}, ${array(subscriberIds, 'uuid')})`,
  )
  return {
    tags: found.map(({ id, name }) => ({ id, name })),
    created: found.filter(({ made }) => made).length,
    added: found.flatMap(({ id, name, linked }) =>
      linked.map((subscriberId) => ({ subscriberId, tag: { id, name } })),
    ),
  }
}

/** Gives existing tags to existing subscribers, pair by pair and without events. Returns the actual changes. */
export async function linkTags(
  { em, organization }: Call,
  pairs: readonly { subscriberId: string; name: string }[],
): Promise<TagChange[]> {
  if (pairs.length === 0) return []
  const linked = await rows<ChangedRow>(
    em,
    sql`with made as (
        insert into subscriber_tag (organization_id, subscriber_id, tag_id)
        select ${organization.id}, pair.subscriber_id, tag.id from unnest(
          ${column(pairs, ({ subscriberId }) => subscriberId, 'uuid')},
          ${column(pairs, ({ name }) => name, 'text')}
        ) as pair (subscriber_id, name)
        join tag on tag.organization_id = ${organization.id} and tag.name_key = lower(pair.name)
        order by 2, 3 on conflict do nothing returning subscriber_id, tag_id
      )
      select made.subscriber_id as "subscriberId", tag.id, tag.name from made
      join tag on tag.organization_id = ${organization.id} and tag.id = made.tag_id`,
  )
  return linked.map(toChange)
}

/**
 * Gives tags to subscribers (uuids), creates missing tags, and records a TAG_ADDED event for each actual change.
 * Unknown subscribers are ignored. Returns the changes.
 */
export async function addTags(
  call: Call,
  subscriberIds: readonly string[],
  tagNames: readonly string[],
  options: ChangeOptions = {},
): Promise<TagChange[]> {
  const names = readTagNames(tagNames, options.path ?? 'tagNames')
  const ids = array(names.map(newId), 'uuid')
  const silent = options.triggerWorkflows === false
  return await told(
    call,
    { type: 'TAG_ADDED', options },
    sql`add_tags(${call.organization.id}, ${ids}, ${array(names, 'text')}, ${array(subscriberIds, 'uuid')},
      ${json(causeOf(call, { silent }))})`,
  )
}

/** Takes tags from subscribers and records a TAG_REMOVED event for each actual change. Returns the changes. */
export async function removeTags(
  call: Call,
  subscriberIds: readonly string[],
  tagNames: readonly string[],
  options: ChangeOptions = {},
): Promise<TagChange[]> {
  const names = readTagNames(tagNames, options.path ?? 'tagNames')
  const silent = options.triggerWorkflows === false
  return await told(
    call,
    { type: 'TAG_REMOVED', options },
    sql`remove_tags(${call.organization.id}, ${array(names, 'text')}, ${array(subscriberIds, 'uuid')},
      ${json(causeOf(call, { silent }))})`,
  )
}

type ToldChange = ChangedRow & {
  eventId: string
  data: Record<string, unknown>
  isAwaited: boolean
  mayStart: boolean
}

/** Runs the statement that changes tags and writes their events, then lets automations react. */
async function told(
  call: Call,
  { type, options }: { type: 'TAG_ADDED' | 'TAG_REMOVED'; options: ChangeOptions },
  change: RawBuilder<unknown>,
): Promise<TagChange[]> {
  const changes = await rows<ToldChange>(
    call.em,
    sql`select event_id as "eventId", subscriber_id as "subscriberId", tag_id as id, name, data,
      is_awaited as "isAwaited", may_start as "mayStart" from ${change}`,
  )
  const [first] = changes
  if (!first) return []
  const { isAwaited, mayStart } = first
  const events = changes.map(({ eventId, subscriberId, data }) => ({ id: eventId, subscriberId, type, data }))
  await answerEvents(call, { events, isAwaited, mayStart }, options)
  return changes.map(toChange)
}

type ChangedRow = { subscriberId: string; id: string; name: string }

/** Takes all tags except `kept` from a subscriber, without events. */
export async function unlinkOtherTags(
  { em, organization }: Call,
  subscriberId: string,
  kept: readonly TagRow[],
): Promise<TagChange[]> {
  const ids = kept.map(({ id }) => id)
  const removed = await rows<ChangedRow>(
    em,
    sql`delete from subscriber_tag link using tag
      where link.organization_id = ${organization.id} and link.subscriber_id = ${subscriberId}
        and tag.organization_id = ${organization.id} and tag.id = link.tag_id
        and link.tag_id <> all(${array(ids, 'uuid')})
      returning link.subscriber_id as "subscriberId", tag.id, tag.name`,
  )
  return removed.map(toChange)
}

/** Returns one event per tag change. */
export function tagEvents(type: 'TAG_ADDED' | 'TAG_REMOVED', changes: readonly TagChange[]): NewEvent[] {
  const dataOf = new Map<string, Record<string, unknown>>()
  return changes.map(({ subscriberId, tag }) => {
    const data = dataOf.get(tag.id) ?? { tag: tag.name, tagId: encodeId('tag', tag.id) }
    dataOf.set(tag.id, data)
    return { subscriberId, type, data }
  })
}

function toChange({ subscriberId, id, name }: ChangedRow): TagChange {
  return { subscriberId, tag: { id, name } }
}
