import test from 'ava'
import { sql } from 'kysely'

import { execute } from '../src/database.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

const text = (words: string, ...marks: string[]) => ({
  type: 'text',
  text: words,
  ...(marks.length > 0 && { marks: marks.map((type) => ({ type })) }),
})
const paragraph = (...content: unknown[]) => ({ type: 'paragraph', content })
const document = (...content: unknown[]) => ({ type: 'doc', content })

async function draft(organization: TestOrganization, input: object = {}): Promise<string> {
  return (await organization.data('create_campaign', { subject: 'News', ...input })).campaign.id
}

async function setStatus(organization: TestOrganization, campaignId: string, status: string): Promise<void> {
  await execute(
    api.services.orm.em.fork(),
    sql`update campaign set status = ${status}
      where organization_id = ${organization.id} and id = ${decodeId('cmp', campaignId)}`,
  )
}

async function addSender(organization: TestOrganization, name: string): Promise<string> {
  const { sender } = await organization.data('create_email_sender', {
    localPart: name,
    domain: organization.domain,
    name,
  })
  return sender.id
}

/** The internal email of a workflow's only EMAIL step. */
async function internalEmail(organization: TestOrganization): Promise<string> {
  const { workflow } = await organization.data('create_workflow', { name: 'Welcome' })
  const { workflow: saved } = await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    steps: [
      { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
      { id: 'hello', type: 'EMAIL', config: { subject: 'Hello', content: 'Hello **world**, hello' } },
    ],
    edges: [{ from: 'start', to: 'hello' }],
  })
  return saved.draft.steps[1].config.campaignId
}

test('a new campaign is a draft with a greeting, an unsubscribe link and the default sender', async (t) => {
  const organization = await api.organization()
  const { campaign } = await organization.data('create_campaign', { subject: 'Hi {{name}}' })
  t.like(campaign, {
    name: 'Untitled',
    subject: 'Hi {{name}}',
    preview: null,
    contentType: 'MAILY',
    senderId: organization.senderId,
    replyTo: null,
    kind: 'BROADCAST',
    status: 'DRAFT',
    workflowId: null,
  })
  t.is(campaign.sender.email, `hello@${organization.domain}`)
  t.deepEqual(campaign.recipientFilters, [])
  t.regex(JSON.stringify(campaign.content), /"variable".*"fallback".*unsubscribeUrl/)
  t.deepEqual((await organization.data('get_campaign', { campaignId: campaign.id })).campaign, campaign)

  const markdown = await organization.data('create_campaign', { subject: 'x', contentType: 'MARKDOWN' })
  const rendered = await organization.data('render_campaign', { campaignId: markdown.campaign.id })
  t.deepEqual(rendered.warnings, [])
  t.regex(rendered.text, /Hi there,/)
  const plate = await organization.data('create_campaign', { subject: 'x', contentType: 'PLATE' })
  t.regex(JSON.stringify(plate.campaign.content), /unsubscribeUrl/)
})

test('a campaign keeps what it is given, and a document may come as JSON text', async (t) => {
  const organization = await api.organization()
  const given = document(paragraph(text('Hello')))
  const { campaign } = await organization.data('create_campaign', {
    subject: 'News',
    name: ' March ',
    preview: 'What is new',
    content: JSON.stringify(given),
    senderId: await addSender(organization, 'second'),
    replyTo: 'answers@example.com',
  })
  t.like(campaign, { name: 'March', preview: 'What is new', replyTo: 'answers@example.com' })
  t.deepEqual(campaign.content, given)
  t.is(campaign.sender.name, 'second')
})

test('without a default sender the one used last is taken, and without any there is none', async (t) => {
  const organization = await api.organization()
  const [first, second] = [await addSender(organization, 'first'), await addSender(organization, 'second')]
  const em = api.services.orm.em.fork()
  await execute(em, sql`update sender set is_default = false where organization_id = ${organization.id}`)
  await draft(organization, { senderId: first })
  await draft(organization, { senderId: second })
  t.is((await organization.data('create_campaign', { subject: 'x' })).campaign.senderId, second)

  const bare = await api.organization()
  await execute(em, sql`delete from sender where organization_id = ${bare.id}`)
  t.is((await bare.data('create_campaign', { subject: 'x' })).campaign.senderId, null)
})

test('what cannot be a campaign is refused by name', async (t) => {
  const organization = await api.organization()
  const nested = (depth: number): object =>
    depth === 0 ? text('deep') : { type: 'section', content: [nested(depth - 1)] }
  for (const [path, input] of [
    ['subject', { subject: ' ' }],
    ['subject', { subject: 'a\r\nBcc: b@example.com' }],
    ['subject', { subject: 'x'.repeat(999) }],
    ['name', { name: ' ' }],
    ['name', { name: 'x'.repeat(201) }],
    ['preview', { preview: 'a\nb' }],
    ['replyTo', { replyTo: 'nobody' }],
    ['content', { content: 'no json' }],
    ['content', { content: [] }],
    ['content', { content: { children: [] } }],
    ['content.content[0]', { content: JSON.stringify({ type: 'doc', content: ['x'] }) }],
    ['content.constructor', { content: '{"type": "doc", "content": [], "constructor": {}}' }],
    ['content', { content: document(), contentType: 'MARKDOWN' }],
    ['content', { content: 'x', contentType: 'PLATE' }],
    ['content', { content: { type: 'doc', content: [] }, contentType: 'PLATE' }],
    ['content[0].children[1]', { content: [{ children: [{ text: 'x' }, {}] }], contentType: 'PLATE' }],
    ['content', { content: document(...Array.from({ length: 5_000 }, () => ({ type: 'spacer' }))) }],
    ['content.content[1].attrs.snippetId', { content: document(paragraph(), { type: 'snippet' }) }],
    ['contentType', { contentType: 'HTML' }],
    ['recipientFilters', { recipientFilters: [] }],
  ] as const) {
    const answer = await organization.call('create_campaign', { subject: 'News', ...input })
    t.is(answer.status, 400, JSON.stringify(input).slice(0, 200))
    t.is(answer.body.details[0].path, path)
  }
  const deep = await organization.call('create_campaign', { subject: 'x', content: document(nested(31)) })
  t.regex(deep.body.error, /nested deeper than 32 nodes/)
  t.is((await organization.call('create_campaign', { name: 'x' })).status, 400)
  t.is((await organization.data('list_campaigns')).total, 0)
})

test('a list leaves out archived campaigns and internal emails, and is searched by name and subject', async (t) => {
  const organization = await api.organization()
  const ids = []
  for (const name of ['One', 'Two', '50 % off']) ids.push(await draft(organization, { name }))
  const archived = await draft(organization, { name: 'Old', subject: 'Two years ago' })
  await setStatus(organization, archived, 'ARCHIVED')
  await internalEmail(organization)
  await draft(await api.organization())

  const all = await organization.data('list_campaigns')
  t.deepEqual(
    all.campaigns.map(({ id }: { id: string }) => id),
    ids.toReversed(),
  )
  t.like(all, { page: 1, pageSize: 20, total: 3, hasMore: false })
  t.false('content' in all.campaigns[0])
  const second = await organization.data('list_campaigns', { limit: 2, page: 2 })
  t.like(second, { page: 2, pageSize: 2, total: 3, hasMore: false })
  t.is(second.campaigns[0].id, ids[0])
  t.true((await organization.data('list_campaigns', { limit: 2 })).hasMore)

  const named = async (input: object) =>
    (await organization.data('list_campaigns', input)).campaigns.map(({ name }: { name: string }) => name)
  t.deepEqual(await named({ status: 'ARCHIVED' }), ['Old'])
  t.deepEqual(await named({ query: 'two' }), ['Two'])
  t.deepEqual(await named({ query: 'NEWS', status: 'DRAFT' }), ['50 % off', 'Two', 'One'])
  t.deepEqual(await named({ query: '0 %' }), ['50 % off'])
  t.deepEqual(await named({ status: 'SENT' }), [])
  t.is((await organization.call('list_campaigns', { limit: 101 })).status, 400)
})

test('a copy is a draft with the content, sender and audience, whatever the original is', async (t) => {
  const organization = await api.organization()
  const content = document(paragraph(text('Hello')))
  const original = await draft(organization, {
    name: 'March',
    content,
    preview: 'p',
    replyTo: 'a@example.com',
  })
  await setStatus(organization, original, 'SENT')
  const { campaign } = await organization.data('duplicate_campaign', { campaignId: original })
  t.like(campaign, { name: 'March (copy)', preview: 'p', replyTo: 'a@example.com', status: 'DRAFT' })
  t.deepEqual(campaign.content, content)
  const named = await organization.data('duplicate_campaign', { campaignId: original, newName: 'April' })
  t.is(named.campaign.name, 'April')
  const internal = await internalEmail(organization)
  const broadcast = await organization.data('duplicate_campaign', { campaignId: internal })
  t.like(broadcast.campaign, {
    kind: 'BROADCAST',
    workflowId: null,
    contentType: 'MARKDOWN',
    subject: 'Hello',
  })
  const blank = await organization.call('duplicate_campaign', { campaignId: original, newName: ' ' })
  t.is(blank.body.details[0].path, 'newName')
})

test('only a draft is archived, after a confirmation, and comes back as a draft', async (t) => {
  const organization = await api.organization()
  const campaignId = await draft(organization, { name: 'Old' })
  const asked = await organization.call('archive_campaign', { campaignId })
  t.is(asked.status, 428)
  t.is(asked.body.summary.target, `the campaign "Old" (${campaignId})`)
  const archived = await organization.confirmed('archive_campaign', { campaignId })
  t.is(archived.body.data.campaign.status, 'ARCHIVED')
  const again = await organization.call('archive_campaign', { campaignId })
  t.is(again.body.code, 'WRONG_STATE')
  t.regex(again.body.error, /is ARCHIVED and cannot be archived, which needs DRAFT; unarchive_campaign/)
  t.is((await organization.data('unarchive_campaign', { campaignId })).campaign.status, 'DRAFT')
  t.is((await organization.call('unarchive_campaign', { campaignId })).body.code, 'WRONG_STATE')
  for (const status of ['SCHEDULED', 'SENDING', 'SENT', 'FAILED']) {
    await setStatus(organization, campaignId, status)
    for (const tool of ['archive_campaign', 'unarchive_campaign']) {
      const answer = await organization.call(tool, { campaignId })
      t.is(answer.status, 409, `${tool} of ${status}`)
      t.is(answer.body.details.status, status)
    }
  }
  const internal = await internalEmail(organization)
  t.regex(
    (await organization.call('archive_campaign', { campaignId: internal })).body.error,
    /internal email/,
  )
})

test("another organization's campaign is as good as none", async (t) => {
  const [own, other] = [await api.organization(), await api.organization()]
  const campaignId = await draft(other)
  for (const [tool, more] of [
    ['get_campaign', {}],
    ['duplicate_campaign', {}],
    ['archive_campaign', {}],
    ['unarchive_campaign', {}],
  ] as const) {
    const answer = await own.call(tool, { campaignId, ...more })
    t.is(answer.body.code, 'NOT_FOUND', `${tool}: ${JSON.stringify(answer.body)}`)
  }
  const foreign = await own.call('create_campaign', { subject: 'x', senderId: other.senderId })
  t.is(foreign.body.code, 'NOT_FOUND')
  const unknown = { subject: 'x', senderId: encodeId('snd', newId()) }
  t.is((await own.call('create_campaign', unknown)).body.code, 'NOT_FOUND')
})
