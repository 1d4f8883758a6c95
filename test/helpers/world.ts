import { sql } from 'kysely'

import { execute, row } from '../../src/database.ts'
import { decodeId, encodeId, newId } from '../../src/ids.ts'
import type { TestApi, TestOrganization } from './api.ts'
import { publishWorkflow } from './workflow.ts'

/**
 * The id of one record of every kind that an input can refer to, by prefix, and the names that identify records too.
 */
export type World = Record<
  | 'sub'
  | 'tag'
  | 'seg'
  | 'wf'
  | 'cmp'
  | 'run'
  | 'snp'
  | 'img'
  | 'snd'
  | 'dom'
  | 'imp'
  | 'hst'
  | 'grp'
  | 'whk'
  | 'evt'
  | 'eml'
  | 'tok'
  | 'org',
  string
> &
  Record<'email' | 'tagName' | 'host' | 'imageUrl' | 'address', string>

const MANUAL = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
const GREETING = {
  id: 'hello',
  type: 'EMAIL',
  config: { subject: 'Hi', content: 'Hi', contentType: 'MARKDOWN', transactional: true },
}

let made = 0

/** Creates a record of every kind in an organization. It works without an engine: the run stays at its entry. */
export async function makeWorld(api: TestApi, organization: TestOrganization): Promise<World> {
  const data: TestOrganization['data'] = (tool, input) => organization.data(tool, input)
  const label = `w${(made += 1)}x${newId().slice(-6)}`
  const email = `${label}@reader.example`
  const whk = await addWebhook(api, organization)
  const { subscriber } = await data('add_subscriber', { email, name: label, tags: [label] })
  const [tag] = (await data('get_or_create_tags', { names: [label] })).tags
  const { segment } = await data('create_segment', { name: label, filters: [] })
  const { snippet } = await data('create_email_snippet', {
    name: label,
    content: { type: 'doc', content: [] },
  })
  const { campaign } = await data('create_campaign', { subject: label })
  await data('edit_campaign', { id: campaign.id, name: label })
  const [entry] = (await data('list_campaign_history', { campaignId: campaign.id })).entries
  const workflowId = await publishWorkflow(organization, [MANUAL, GREETING], { name: label })
  const { run } = await data('add_subscriber_to_workflow', { workflowId, subscriberId: subscriber.id })
  const { group } = await data('create_workflow_group', { name: label, conflictStrategy: 'FIRST_WINS' })
  const { id: imp } = await startedImport(api, organization, label)
  const host = `${label}.example`
  const dom = await addDomain(api, organization, host)
  const { sender } = await data('create_email_sender', { localPart: 'hello', domain: host, name: label })
  const { id: img, url: imageUrl } = await addImage(api, organization)
  const sent = { from: `hello@${host}`, to: email, subject: label, markdown: label }
  const { id: eml } = await created(api, organization, '/emails', sent)
  const { id: tok } = await created(api, organization, '/tokens', { name: label })
  return {
    sub: subscriber.id,
    tag: tag.id,
    seg: segment.id,
    wf: workflowId,
    cmp: campaign.id,
    run: run.id,
    snp: snippet.id,
    img,
    snd: sender.id,
    dom,
    imp,
    hst: entry.id,
    grp: group.id,
    whk,
    evt: await oldestDelivery(api, whk),
    eml,
    tok,
    org: encodeId('org', organization.id),
    email,
    tagName: label,
    host,
    imageUrl,
    address: `hello@${host}`,
  }
}

/** Creates a world and then deletes its records. */
export async function makeLostWorld(api: TestApi, organization: TestOrganization): Promise<World> {
  const world = await makeWorld(api, organization)
  const { token } = organization
  for (const [tool, input] of [
    ['delete_tag', { tagId: world.tag }],
    ['delete_segment', { segmentId: world.seg }],
  ] as const) {
    const answer = await organization.confirmed(tool, input)
    if (answer.status !== 200) throw new Error(`${tool} answered ${answer.status}`)
  }
  const { group } = await organization.data('get_workflow_group', { groupId: world.grp })
  const removed = await organization.confirmed('delete_workflow_group', {
    groupId: world.grp,
    expectedUpdatedAt: group.updatedAt,
  })
  if (removed.status !== 200) throw new Error(`delete_workflow_group answered ${removed.status}`)
  // Erasing a subscriber also deletes their run.
  const erased = await api.request('DELETE', `/api/v2/subscribers/${world.sub}`, { token })
  if (erased.status !== 200) throw new Error(`erasing answered ${erased.status}`)
  const draft = (await organization.data('create_workflow', { name: world.tagName })).workflow.id
  const answer = await organization.confirmed('delete_workflow', { workflowId: draft })
  if (answer.status !== 200) throw new Error(`delete_workflow answered ${answer.status}`)
  // No tool deletes these; campaigns, for example, are only archived.
  for (const [table, prefix] of [
    ['campaign', 'cmp'],
    ['snippet', 'snp'],
    ['image', 'img'],
    ['sender', 'snd'],
    ['domain', 'dom'],
    ['subscriber_import', 'imp'],
    ['webhook', 'whk'],
    ['message', 'eml'],
    ['api_token', 'tok'],
  ] as const) {
    await execute(
      api.services.orm.em.fork(),
      sql`delete from ${sql.table(table)}
        where organization_id = ${organization.id} and id = ${decodeId(prefix, world[prefix])}`,
    )
  }
  await execute(
    api.services.orm.em.fork(),
    sql`delete from webhook_delivery where event_id = ${decodeId('evt', world.evt)}`,
  )
  return { ...world, wf: draft }
}

/** Returns ids of every kind for records that never existed. */
export function makeMissingWorld(api: TestApi, organization: TestOrganization): World {
  const id = (prefix: Parameters<typeof encodeId>[0]): string => encodeId(prefix, newId())
  const label = `never${newId().slice(-6)}`
  return {
    sub: id('sub'),
    tag: id('tag'),
    seg: id('seg'),
    wf: id('wf'),
    cmp: id('cmp'),
    run: id('run'),
    snp: id('snp'),
    img: id('img'),
    snd: id('snd'),
    dom: id('dom'),
    imp: id('imp'),
    hst: id('hst'),
    grp: id('grp'),
    whk: id('whk'),
    evt: id('evt'),
    eml: id('eml'),
    tok: id('tok'),
    org: id('org'),
    email: `${label}@reader.example`,
    tagName: label,
    host: `${label}.example`,
    address: `hello@${label}.example`,
    imageUrl: `${api.url}/i/${encodeId('org', organization.id)}/${id('img')}.png`,
  }
}

/** Bypasses the limit of webhooks per organization, because the tests need many. */
async function addWebhook({ services }: TestApi, organization: TestOrganization): Promise<string> {
  const id = newId()
  await execute(
    services.orm.em.fork(),
    sql`insert into webhook (id, organization_id, url, secret)
      values (${id}, ${organization.id}, 'https://hooks.example', '')`,
  )
  return encodeId('whk', id)
}

async function oldestDelivery({ services }: TestApi, webhookId: string): Promise<string> {
  const found = await row<{ id: string }>(
    services.orm.em.fork(),
    sql`select event_id as id from webhook_delivery where webhook_id = ${decodeId('whk', webhookId)}
      order by event_id limit 1`,
  )
  return encodeId('evt', found?.id ?? '')
}

/** The suffix of all ids in documented examples. */
const EXAMPLE_ID = '01hzy3k8v5e0qs2r7m4n6p8t9w'

/** The timestamp in documented examples. */
const EXAMPLE_TIME = '2026-01-31T09:00:00.000Z'

/**
 * Replaces the ids, the email, the tag, the domain and the time of documented examples with those of a world. The time
 * becomes an hour ago.
 */
export function inWorld<Value>(value: Value, world: World): Value {
  const prefixes = Object.entries(world).map(([key, id]) => [`${key}_${EXAMPLE_ID}`, id] as const)
  const names = [
    ...prefixes,
    ['ada@example.com', world.email],
    ['newsletter', world.tagName],
    ['shop.example', world.host],
    [EXAMPLE_TIME, new Date(Date.now() - 3_600_000).toISOString()],
  ] as const
  const text = names.reduce((all, [name, own]) => all.replaceAll(name, own), JSON.stringify(value))
  // Only text inside of strings was replaced.
  return JSON.parse(text) as Value
}

async function startedImport(
  api: TestApi,
  { token }: TestOrganization,
  label: string,
): Promise<{ id: string }> {
  const { status, body } = await api.request('POST', '/api/v2/imports', {
    token,
    raw: `email\n${label}@import.example\n`,
    headers: { 'content-type': 'text/csv' },
  })
  if (status === 202) return body
  throw new Error(`the import answered ${status}`)
}

async function created(
  api: TestApi,
  { token }: TestOrganization,
  path: string,
  body: unknown,
): Promise<{ id: string }> {
  const answer = await api.request('POST', `/api/v2${path}`, { token, body })
  if (answer.status < 300) return answer.body
  throw new Error(`${path} answered ${answer.status}`)
}

async function addDomain(api: TestApi, organization: TestOrganization, host: string): Promise<string> {
  const id = newId()
  await execute(
    api.services.orm.em.fork(),
    // A development domain, so that no DNS lookups are made for it.
    sql`insert into domain (id, organization_id, domain, status, development)
      values (${id}, ${organization.id}, ${host}, 'VERIFIED', true)`,
  )
  return encodeId('dom', id)
}

async function addImage(api: TestApi, organization: TestOrganization): Promise<{ id: string; url: string }> {
  const id = newId()
  await execute(
    api.services.orm.em.fork(),
    sql`insert into image (id, organization_id, content_type, width, height, size, content_hash)
      values (${id}, ${organization.id}, 'image/png', 1, 1, 1, ${Buffer.from(id)})`,
  )
  const img = encodeId('img', id)
  return { id: img, url: `${api.url}/i/${encodeId('org', organization.id)}/${img}.png` }
}
