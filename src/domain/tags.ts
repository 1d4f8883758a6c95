import { sql } from 'kysely'

import { TAG_LIMITS } from '../../schema/tag.ts'
import { Failure } from '../catalogue/failure.ts'
import type { Call } from '../catalogue/tool.ts'
import { array, rows } from '../database.ts'
import { encodeId, newId } from '../ids.ts'
import { shareSubscribers } from './event-rows.ts'
import { type NewEvent, recordEvents } from './events.ts'
import { oneLine, refuse } from './text.ts'

/** A tag inside the database layer. */
export type TagRow = { id: string; name: string }

/** What changed for whom: one entry for each tag that a subscriber really got or lost. */
export type TagChange = { subscriberId: string; tag: TagRow }

type EventOptions = { triggerWorkflows?: boolean }

const ATTEMPTS = 5

/** A tag name: 1 to 100 characters on one line, without blanks around it; letter case does not tell tags apart. */
export function readTagName(text: string, path: string): string {
  oneLine(text, path, TAG_LIMITS.name)
  if (text === '') refuse(path, `is empty; a tag name has 1 to ${TAG_LIMITS.name} characters.`)
  if (text !== text.trim()) refuse(path, 'begins or ends with a blank; remove it.')
  return text
}

/** Tag names, checked, each once whatever its letter case. */
export function readTagNames(names: readonly string[], path: string): string[] {
  const byKey = new Map<string, string>()
  names.forEach((name, index) => {
    const key = readTagName(name, `${path}[${index}]`).toLowerCase()
    if (!byKey.has(key)) byKey.set(key, name)
  })
  return [...byKey.values()]
}

/**
 * The tags of these names, making the missing ones, and how many were made; they stay locked against deletion until the
 * end of the transaction. `subscriberIds` get them in the same statement, without events; `added` is what they really
 * got. Unknown subscribers are passed over.
 */
export async function ensureTags(
  { em, organization }: Call,
  names: readonly string[],
  { path = 'tagNames', subscriberIds = [] }: { path?: string; subscriberIds?: readonly string[] } = {},
): Promise<{ tags: TagRow[]; created: number; added: TagChange[] }> {
  if (names.length === 0) return { tags: [], created: 0, added: [] }
  const wanted = readTagNames(names, path)
  const ids = wanted.map(() => newId())
  const added: TagChange[] = []
  let created = 0
  // A tag made by another transaction at this moment is only visible to the next statement.
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const found = await rows<EnsuredRow>(
      em,
      sql`with wanted as (
          select distinct on (lower(name)) id, name, lower(name) as name_key
          from unnest(${array(ids, 'uuid')}, ${array(wanted, 'text')}) with ordinality as given (id, name, position)
          order by lower(name), position
        ), known as (
          select tag.id, tag.name, tag.name_key from tag join wanted using (name_key)
          where tag.organization_id = ${organization.id} for key share of tag
        ), made as (
          insert into tag (id, organization_id, name)
          select id, ${organization.id}, name from wanted
          where not exists (select from known where known.name_key = wanted.name_key) order by name_key
          on conflict (organization_id, name_key) do nothing returning id, name
        ), tags as (
          select id, name, false as made from known union all select id, name, true from made
        ), linked as (
          insert into subscriber_tag (organization_id, subscriber_id, tag_id)
          select ${organization.id}, subscriber.id, tags.id from subscriber cross join tags
          where subscriber.organization_id = ${organization.id}
            and subscriber.id = any(${array(subscriberIds, 'uuid')})
          order by subscriber.id, tags.id on conflict do nothing returning subscriber_id, tag_id
        )
        select id, name, made, (select count(*)::int from wanted) as wanted,
          array(select subscriber_id::text from linked where linked.tag_id = tags.id) as linked
        from tags order by lower(name)`,
    )
    created += found.filter(({ made }) => made).length
    added.push(
      ...found.flatMap((tag) => tag.linked.map((subscriberId) => toChange({ ...tag, subscriberId }))),
    )
    const [first] = found
    if (first && found.length === first.wanted) {
      return { tags: found.map(({ id, name }) => ({ id, name })), created, added }
    }
  }
  throw new Failure('UNAVAILABLE', 'The tags are being changed by many calls at once; repeat the request.')
}

type EnsuredRow = TagRow & { made: boolean; wanted: number; linked: string[] }

/**
 * Gives tags to subscribers, making missing tags; one TAG_ADDED event for each tag that somebody did not have. Ids of
 * the database layer; unknown subscribers are passed over. Answers what changed.
 */
export async function addTags(
  call: Call,
  subscriberIds: readonly string[],
  tagNames: readonly string[],
  options: EventOptions = {},
): Promise<TagChange[]> {
  if (options.triggerWorkflows !== false) await shareSubscribers(call, subscriberIds)
  const { added } = await ensureTags(call, tagNames, { subscriberIds })
  await recordEvents(call, tagEvents('TAG_ADDED', added), options)
  return added
}

/** Takes tags from subscribers; one TAG_REMOVED event for each tag that somebody had. Answers what changed. */
export async function removeTags(
  call: Call,
  subscriberIds: readonly string[],
  tagNames: readonly string[],
  options: EventOptions = {},
): Promise<TagChange[]> {
  const { em, organization } = call
  const names = readTagNames(tagNames, 'tagNames')
  if (options.triggerWorkflows !== false) await shareSubscribers(call, subscriberIds)
  // Rows are locked in one order, so that calls over the same people wait for each other instead of deadlocking.
  const removed = await rows<RemovedRow>(
    em,
    sql`with doomed as (
        select link.subscriber_id, link.tag_id, tag.name from subscriber_tag link
        join tag on tag.organization_id = link.organization_id and tag.id = link.tag_id
        where link.organization_id = ${organization.id}
          and link.subscriber_id = any(${array(subscriberIds, 'uuid')})
          and tag.name_key in (select lower(name) from unnest(${array(names, 'text')}) as given (name))
        order by link.subscriber_id, link.tag_id for update of link
      )
      delete from subscriber_tag link using doomed
      where link.organization_id = ${organization.id}
        and link.subscriber_id = doomed.subscriber_id and link.tag_id = doomed.tag_id
      returning link.subscriber_id as "subscriberId", doomed.tag_id as id, doomed.name`,
  )
  const changes = removed.map(toChange)
  await recordEvents(call, tagEvents('TAG_REMOVED', changes), options)
  return changes
}

type RemovedRow = { subscriberId: string; id: string; name: string }

/** Takes every other tag from one subscriber, without events. */
export async function unlinkOtherTags(
  { em, organization }: Call,
  subscriberId: string,
  kept: readonly TagRow[],
): Promise<TagChange[]> {
  const ids = kept.map(({ id }) => id)
  const removed = await rows<RemovedRow>(
    em,
    sql`delete from subscriber_tag link using tag
      where link.organization_id = ${organization.id} and link.subscriber_id = ${subscriberId}
        and tag.organization_id = ${organization.id} and tag.id = link.tag_id
        and link.tag_id <> all(${array(ids, 'uuid')})
      returning link.subscriber_id as "subscriberId", tag.id, tag.name`,
  )
  return removed.map(toChange)
}

/** The events of tag changes, one each. */
export function tagEvents(type: 'TAG_ADDED' | 'TAG_REMOVED', changes: readonly TagChange[]): NewEvent[] {
  return changes.map(({ subscriberId, tag }) => ({
    subscriberId,
    type,
    data: { tag: tag.name, tagId: encodeId('tag', tag.id) },
  }))
}

function toChange({ subscriberId, id, name }: RemovedRow): TagChange {
  return { subscriberId, tag: { id, name } }
}
