import { sql } from 'kysely'

import {
  type Snippet,
  SNIPPET_LIMITS,
  type SnippetContentType,
  type SnippetSummary,
  type SnippetUse,
} from '../../../schema/snippet.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call, Impact } from '../../catalogue/tool.ts'
import { column, execute, json, row, rows } from '../../database.ts'
import { decodeId, encodeId, type IdPrefix, missing, newId } from '../../ids.ts'
import { likeLiteral, nameLine, timestamp, timestampOrNull } from '../text.ts'
import { type HeldSnippet, readContent, refuseNesting } from './content.ts'

/** The input of create_email_snippet. */
export type NewSnippet = { name: string; content: unknown; contentType: SnippetContentType }

/** The input of update_email_snippet; the content must have the snippet's type. */
export type SnippetPatch = { snippetId: string; name?: string | undefined; content?: unknown }

const SNIPPET_LOCK = 7_305_103
const USES_SHOWN = 100
const SUMMARY = sql`snippet.id, snippet.name, snippet.content_type as "contentType",
  snippet.archived_at as "archivedAt", snippet.created_at as "createdAt", snippet.updated_at as "updatedAt"`
const PREFIXES = { snippet: 'snp', campaign: 'cmp', workflow: 'wf' } as const satisfies Record<
  string,
  IdPrefix
>

/** Lists active or archived snippets whose name contains `query`, in alphabetical order. */
export async function listSnippets(
  { em, organization }: Call,
  { query, archived }: { query?: string | undefined; archived: boolean },
): Promise<SnippetSummary[]> {
  const found = await rows<SnippetSummary>(
    em,
    sql`select ${SUMMARY} from snippet where organization_id = ${organization.id}
        and archived_at is ${archived ? sql`not null` : sql`null`}
        and name ilike ${`%${likeLiteral(query?.trim() ?? '')}%`}
      order by lower(name), id`,
  )
  return found.map(summarized)
}

/** Returns a snippet with its content and its uses. Throws `NOT_FOUND` when there is none. */
export async function readSnippet(call: Call, snippetId: string): Promise<Snippet> {
  const { em, organization } = call
  const found = await row<SnippetSummary & { content: unknown }>(
    em,
    sql`select ${SUMMARY}, content from snippet
      where organization_id = ${organization.id} and id = ${decodeId('snp', snippetId)}`,
  )
  if (!found) missing('snp', snippetId)
  return { ...summarized(found), content: found.content, usedIn: await findUses(call, found.id) }
}

/** Creates a snippet, up to the organization's limit. */
export async function createSnippet(
  call: Call,
  { name, content, contentType }: NewSnippet,
): Promise<Snippet> {
  const id = newId()
  const { em, organization } = call
  const title = readName(name)
  await lockSnippets(call)
  const checked = await readContent(call, contentType, content)
  await refuseNesting(call, id, checked.snippets)
  const made = await execute(
    em,
    sql`insert into snippet (id, organization_id, name, content, content_type)
      select ${id}, ${organization.id}, ${title}, ${json(checked.content)}, ${contentType}
      where (select count(*) from snippet where organization_id = ${organization.id}) < ${SNIPPET_LIMITS.perOrganization}`,
  )
  if (made === 0) {
    throw new Failure(
      'WRONG_STATE',
      `The organization has ${SNIPPET_LIMITS.perOrganization} snippets, which is the limit; change one of them instead.`,
    )
  }
  await writeUses(call, id, checked.snippets)
  return await readSnippet(call, encodeId('snp', id))
}

/** Changes the name, the content or both. */
export async function updateSnippet(
  call: Call,
  { snippetId, name, content }: SnippetPatch,
): Promise<Snippet> {
  const { em, organization } = call
  const title = name === undefined ? null : readName(name)
  const id = decodeId('snp', snippetId)
  await lockSnippets(call)
  const found = await row<{ contentType: SnippetContentType }>(
    em,
    sql`select content_type as "contentType" from snippet where organization_id = ${organization.id} and id = ${id}`,
  )
  if (!found) missing('snp', snippetId)
  const checked = content === undefined ? null : await readContent(call, found.contentType, content)
  if (checked) await refuseNesting(call, id, checked.snippets)
  await execute(
    em,
    sql`update snippet set name = coalesce(${title}, name), content = ${checked ? json(checked.content) : sql`content`}
      where organization_id = ${organization.id} and id = ${id}`,
  )
  if (checked) await writeUses(call, id, checked.snippets)
  return await readSnippet(call, snippetId)
}

/** Archives a snippet or restores it. Content that uses it keeps showing it. */
export async function setArchived(call: Call, snippetId: string, archived: boolean): Promise<Snippet> {
  const { em, organization } = call
  const changed = await execute(
    em,
    sql`update snippet set archived_at = ${archived ? sql`coalesce(archived_at, now())` : sql`null`}
      where organization_id = ${organization.id} and id = ${decodeId('snp', snippetId)}`,
  )
  if (changed === 0) missing('snp', snippetId)
  return await readSnippet(call, snippetId)
}

/** Summarizes what archiving does. */
export async function summarizeArchival(call: Call, snippetId: string): Promise<Impact> {
  const { name, archivedAt, usedIn } = await readSnippet(call, snippetId)
  return {
    target: `the snippet "${name}"`,
    effects: [
      archivedAt === null
        ? 'It leaves the list of snippets; unarchive_email_snippet brings it back.'
        : 'It is archived already; nothing changes.',
    ],
    warnings: usedIn.map((use) => `The ${use.kind} "${use.name}" uses it and keeps showing it.`),
  }
}

/** Serializes saves of snippets, so that the nesting check stays true until the commit. */
async function lockSnippets({ em, organization }: Call): Promise<void> {
  await execute(em, sql`select pg_advisory_xact_lock(${SNIPPET_LOCK}, hashtext(${organization.id}))`)
}

async function writeUses(
  { em, organization }: Call,
  id: string,
  held: readonly HeldSnippet[],
): Promise<void> {
  await execute(
    em,
    sql`delete from snippet_use where organization_id = ${organization.id} and snippet_id = ${id}`,
  )
  await execute(
    em,
    sql`insert into snippet_use (organization_id, snippet_id, used_id)
      select ${organization.id}, ${id}, used from unnest(${column(held, (snippet) => snippet.id, 'uuid')}) as used`,
  )
}

/** Finds uses through the snippets that are stored beside each content, without reading any. */
async function findUses({ em, organization }: Call, id: string): Promise<SnippetUse[]> {
  const holds = (content: string) =>
    sql`${sql.table(content)}.organization_id = ${organization.id}
      and ${sql.table(content)}.snippets @> array[${encodeId('snp', id)}::text]`
  const found = await rows<SnippetUse>(
    em,
    sql`select 'snippet' as kind, snippet.id, snippet.name
      from snippet_use join snippet on snippet.organization_id = snippet_use.organization_id
        and snippet.id = snippet_use.snippet_id
      where snippet_use.organization_id = ${organization.id} and snippet_use.used_id = ${id}
      union
      select 'campaign', id, name from campaign where ${holds('campaign')} and kind = 'BROADCAST'
      union
      select 'workflow', automation.id, automation.name
      from campaign join automation on automation.organization_id = campaign.organization_id
        and automation.id = campaign.automation_id
      where ${holds('campaign')} and campaign.kind = 'WORKFLOW'
      union
      select 'workflow', automation.id, automation.name
      from automation_version version join automation on automation.organization_id = version.organization_id
        and automation.published_version_id = version.id
      where ${holds('version')}
      order by kind, name, id limit ${USES_SHOWN}`,
  )
  return found.map((use) => ({ ...use, id: encodeId(PREFIXES[use.kind], use.id) }))
}

function summarized(found: SnippetSummary): SnippetSummary {
  return {
    id: encodeId('snp', found.id),
    name: found.name,
    contentType: found.contentType,
    archivedAt: timestampOrNull(found.archivedAt),
    createdAt: timestamp(found.createdAt),
    updatedAt: timestamp(found.updatedAt),
  }
}

function readName(name: string): string {
  return nameLine(name, 'name', SNIPPET_LIMITS.name, 'a name to find it by')
}
