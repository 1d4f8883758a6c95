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

/** Creates a workflow with one EMAIL step and returns the step's internal email. */
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

test('an edit changes what it is given, leaves the rest, and keeps one entry', async (t) => {
  const organization = await api.organization()
  const id = await draft(organization, { preview: 'Before', replyTo: 'a@example.com' })
  const senderId = await addSender(organization, 'second')
  const content = document(paragraph(text('Hello '), text('dear', 'bold'), text(' reader')))
  const { campaign } = await organization.data('edit_campaign', { id, subject: 'Spring', content, senderId })
  t.like(campaign, {
    name: 'Untitled',
    subject: 'Spring',
    preview: 'Before',
    replyTo: 'a@example.com',
    senderId,
  })
  t.deepEqual(campaign.content, content)

  const edited = await organization.data('edit_campaign', {
    id,
    name: 'Spring news',
    preview: null,
    replyTo: null,
    operations: [
      { type: 'replace_text', find: 'dear reader', replace: 'you' },
      { type: 'append_node', node: { type: 'footer' } },
      { type: 'replace_text', find: 'o', replace: '0', occurrence: 'first' },
    ],
  })
  t.deepEqual(
    edited.operations,
    [0, 1, 2].map((index) => ({ index, matched: 1 })),
  )
  t.like(edited.campaign, { name: 'Spring news', preview: null, replyTo: null, subject: 'Spring' })
  t.deepEqual(
    edited.campaign.content,
    document(paragraph(text('Hell0 '), text('you', 'bold')), { type: 'footer' }),
  )
  t.deepEqual((await organization.data('get_campaign', { campaignId: id })).campaign, edited.campaign)
  const { entries } = await organization.data('list_campaign_history', { campaignId: id })
  t.is(entries.length, 3)

  const markdown = 'Bye [x]({{unsubscribeUrl}})'
  const moved = await organization.data('edit_campaign', { id, contentType: 'MARKDOWN', content: markdown })
  t.like(moved.campaign, { contentType: 'MARKDOWN', content: markdown })
  t.deepEqual(moved.operations, [])
})

test('every line goes with operations, and so does the type that the content has', async (t) => {
  const organization = await api.organization()
  const id = await draft(organization, { content: document(paragraph(text('Hello'))) })
  const senderId = await addSender(organization, 'second')
  const lines = { name: 'March', subject: 'Spring', preview: 'New', replyTo: 'a@example.com', senderId }
  const operations = [{ type: 'replace_text', find: 'Hello', replace: 'Bye' }]
  const { campaign } = await organization.data('edit_campaign', {
    id,
    ...lines,
    contentType: 'MAILY',
    operations,
  })
  t.like(campaign, { ...lines, contentType: 'MAILY' })
  t.deepEqual(campaign.content, document(paragraph(text('Bye'))))
})

test('an edit that cannot be is refused by name, and nothing of it happens', async (t) => {
  const organization = await api.organization()
  const content = document(paragraph(text('Hello')))
  const id = await draft(organization, { content })
  const before = (await organization.data('get_campaign', { campaignId: id })).campaign
  const operation = { type: 'replace_text', find: 'Hello', replace: 'Bye' }
  const tooDeep = (depth: number): object =>
    depth === 0 ? { type: 'spacer' } : { type: 'section', content: [tooDeep(depth - 1)] }
  for (const [path, change] of [
    ['operations', { content, operations: [operation] }],
    ['operations', { operations: [] }],
    ['operations[1]', { operations: [operation, { ...operation, find: 'absent' }] }],
    ['operations[1].target', { operations: [operation, { type: 'remove_node', target: { path: [4] } }] }],
    ['operations[0].type', { operations: [{ type: 'rename_node' }] }],
    ['operations[0].with', { operations: [{ ...operation, with: 'x' }] }],
    ['operations[0].node', { operations: [{ type: 'append_node', node: { attrs: {} } }] }],
    ['operations[0].find', { operations: [{ ...operation, find: '' }] }],
    [
      'content.content[0].content[1].attrs.snippetId',
      { operations: [{ type: 'append_node', node: { type: 'snippet' }, parent: { path: [0] } }] },
    ],
    ['contentType', { contentType: 'PLATE' }],
    ['contentType', { contentType: 'MARKDOWN', operations: [operation] }],
    ['content', { contentType: 'MARKDOWN', content }],
    ['content', { content: null }],
    ['subject', { subject: '' }],
    ['name', { name: '' }],
    ['replyTo', { replyTo: 'x' }],
    ['preview', { preview: 'a\nb' }],
    ['senderId', { senderId: null }],
    ['id', {}],
    ['status', { status: 'SENT' }],
  ] as const) {
    const answer = await organization.call('edit_campaign', { id, ...change })
    t.is(answer.status, 400, JSON.stringify([change, answer.body]))
    t.is(answer.body.details[0].path, path)
  }
  const otherName = await organization.call('edit_campaign', { campaignId: id, subject: 'x' })
  t.regex(otherName.body.error, /"campaignId" is not known here; did you mean "id"\?/)
  const nesting = [
    { type: 'append_node', node: tooDeep(28) },
    { type: 'append_node', node: tooDeep(3), parent: { type: 'section', index: 27 } },
  ]
  const deep = await organization.call('edit_campaign', { id, operations: nesting })
  t.regex(deep.body.error, /nested deeper than 32 nodes/)
  const nobody = await organization.call('edit_campaign', { id, senderId: encodeId('snd', newId()) })
  t.is(nobody.body.code, 'NOT_FOUND')
  t.deepEqual((await organization.data('get_campaign', { campaignId: id })).campaign, before)
  t.is((await organization.data('list_campaign_history', { campaignId: id })).entries.length, 1)
})

test('only drafts and internal emails of workflows are edited', async (t) => {
  const organization = await api.organization()
  const id = await draft(organization)
  for (const status of ['SCHEDULED', 'SENDING', 'SENT', 'ARCHIVED', 'FAILED']) {
    await setStatus(organization, id, status)
    for (const [tool, input] of [
      ['edit_campaign', { id, subject: 'Late' }],
      ['update_campaign_filters', { campaignId: id, filters: [] }],
    ] as const) {
      const answer = await organization.call(tool, input)
      t.is(answer.body.code, 'WRONG_STATE', `${tool} of ${status}`)
      t.regex(answer.body.error, /needs DRAFT/)
    }
  }
  const internal = await internalEmail(organization)
  const edited = await organization.data('edit_campaign', {
    id: internal,
    operations: [{ type: 'replace_text', find: 'ello', replace: 'i' }],
  })
  t.is(edited.campaign.content, 'Hi **world**, hi')
  t.deepEqual(edited.operations, [{ index: 0, matched: 2 }])
  const audience = await organization.call('update_campaign_filters', { campaignId: internal, filters: [] })
  t.is(audience.body.code, 'WRONG_STATE')
})

test('an internal email is fitted, put back and tried, but not scheduled, held or archived by itself', async (t) => {
  const organization = await api.organization()
  const campaignId = await internalEmail(organization)
  for (const tool of [
    'schedule_campaign',
    'cancel_campaign_schedule',
    'pause_campaign',
    'resume_campaign',
    'archive_campaign',
    'unarchive_campaign',
  ]) {
    const answer = await organization.call(tool, { campaignId })
    t.is(answer.body.code, 'WRONG_STATE', `${tool}: ${JSON.stringify(answer.body)}`)
    t.deepEqual(answer.body.details, { kind: 'WORKFLOW' })
    t.regex(answer.body.error, /change the workflow, or copy the email to a campaign with duplicate_campaign/)
  }
  const deletion = await api.request('DELETE', `/api/v2/campaigns/${campaignId}`, {
    token: organization.token,
  })
  t.is(deletion.status, 409)

  const { entries } = await organization.data('list_campaign_history', { campaignId })
  const image = { type: 'image', attrs: { src: 'https://example.com/{{name}}.png' } }
  await organization.data('edit_campaign', {
    id: campaignId,
    contentType: 'MAILY',
    content: document(image),
  })
  const fitted = await organization.data('auto_fit_campaign_images', { campaignId })
  t.regex(fitted.images[0].problem, /holds a variable/)
  const test = await organization.data('send_test_email', { campaignId, emails: ['a@example.com'] })
  t.is(test.emails.length, 1)
  const historyId = entries[0].id
  const { campaign } = await organization.data('restore_campaign_history', { campaignId, historyId })
  t.like(campaign, { kind: 'WORKFLOW', contentType: 'MARKDOWN', content: 'Hello **world**, hello' })
})

test('edits at the same time follow one another, and none is lost', async (t) => {
  const organization = await api.organization()
  const words = Array.from({ length: 8 }, (_, index) => `word${index}`)
  const id = await draft(organization, { content: document(...words.map((word) => paragraph(text(word)))) })
  const answers = await Promise.all(
    words.map((word) =>
      organization.call('edit_campaign', {
        id,
        operations: [{ type: 'replace_text', find: word, replace: word.toUpperCase() }],
      }),
    ),
  )
  t.true(answers.every(({ status }) => status === 200))
  const { campaign } = await organization.data('get_campaign', { campaignId: id })
  t.deepEqual(campaign.content, document(...words.map((word) => paragraph(text(word.toUpperCase())))))
  const { entries } = await organization.data('list_campaign_history', { campaignId: id })
  t.is(entries.length, 9)
})

test('history is read page by page, and an entry that is gone is still a position', async (t) => {
  const organization = await api.organization()
  const campaignId = await draft(organization, { subject: 'One' })
  for (const subject of ['Two', 'Three', 'Four'])
    await organization.data('edit_campaign', { id: campaignId, subject })
  const first = await organization.data('list_campaign_history', { campaignId, limit: 2 })
  t.deepEqual(
    first.entries.map(({ subject, source }: Record<string, string>) => [subject, source]),
    [
      ['Four', 'manual'],
      ['Three', 'manual'],
    ],
  )
  t.like(first, { hasMore: true, nextCursor: first.entries[1].id })
  t.false('content' in first.entries[0])
  await execute(
    api.services.orm.em.fork(),
    sql`delete from campaign_history
      where organization_id = ${organization.id} and id = ${decodeId('hst', first.nextCursor)}`,
  )
  const second = await organization.data('list_campaign_history', { campaignId, cursor: first.nextCursor })
  t.deepEqual(
    second.entries.map(({ subject }: { subject: string }) => subject),
    ['Two', 'One'],
  )
  t.like(second, { hasMore: false, nextCursor: null })
  const malformed = await organization.call('list_campaign_history', { campaignId, cursor: 'x' })
  t.is(malformed.body.code, 'INVALID_INPUT')
  t.is((await organization.call('list_campaign_history', { campaignId, limit: 101 })).status, 400)
})

test('an entry is put back in any state, as a new entry that names it', async (t) => {
  const organization = await api.organization()
  const campaignId = await draft(organization, { subject: 'One', preview: 'First', contentType: 'MARKDOWN' })
  const { campaign: original } = await organization.data('get_campaign', { campaignId })
  const content = document(paragraph(text('Other')))
  await organization.data('edit_campaign', {
    id: campaignId,
    subject: 'Two',
    contentType: 'MAILY',
    content,
    preview: null,
  })
  await setStatus(organization, campaignId, 'SENT')
  const { entries } = await organization.data('list_campaign_history', { campaignId })
  const historyId = entries[1].id
  const { entry } = await organization.data('get_campaign_history_entry', { campaignId, historyId })
  t.like(entry, {
    id: historyId,
    subject: 'One',
    preview: 'First',
    contentType: 'MARKDOWN',
    restoredFrom: null,
  })
  t.is(entry.content, original.content)

  const { campaign } = await organization.data('restore_campaign_history', { campaignId, historyId })
  t.like(campaign, { subject: 'One', preview: 'First', contentType: 'MARKDOWN', status: 'SENT' })
  t.is(campaign.content, original.content)
  const after = await organization.data('list_campaign_history', { campaignId })
  t.is(after.entries.length, 3)
  t.like(after.entries[0], { subject: 'One', source: 'manual', restoredFrom: historyId })

  const elsewhere = await draft(organization)
  for (const tool of ['get_campaign_history_entry', 'restore_campaign_history']) {
    const answer = await organization.call(tool, { campaignId: elsewhere, historyId })
    t.is(answer.body.code, 'NOT_FOUND', `${tool} of another campaign`)
  }
})

test('the audience of a draft is set by the filter language', async (t) => {
  const organization = await api.organization()
  const campaignId = await draft(organization)
  await organization.data('add_subscriber', { email: 'ada@example.com', tags: ['vip'] })
  const filters = [{ field: 'tags', operator: 'has_any', value: ['vip'] }]
  const { campaign } = await organization.data('update_campaign_filters', { campaignId, filters })
  t.deepEqual(campaign.recipientFilters, filters)
  const copy = await organization.data('duplicate_campaign', { campaignId })
  t.deepEqual(copy.campaign.recipientFilters, filters)
  for (const [path, wrong] of [
    ['filters[0].field', [{ field: 'height', operator: 'gt', value: 1 }]],
    ['filters[0].value', [{ field: 'segment', operator: 'has_any', value: ['seg_unknown'] }]],
    ['filters', {}],
  ] as const) {
    const answer = await organization.call('update_campaign_filters', { campaignId, filters: wrong })
    t.is(answer.status, 400, JSON.stringify(answer.body))
    t.true(answer.body.details[0].path.startsWith(path), JSON.stringify(answer.body.details))
  }
  t.deepEqual((await organization.data('get_campaign', { campaignId })).campaign.recipientFilters, filters)
  t.deepEqual(
    (await organization.data('update_campaign_filters', { campaignId, filters: [] })).campaign
      .recipientFilters,
    [],
  )
})

test("another organization's campaign is as good as none", async (t) => {
  const [own, other] = [await api.organization(), await api.organization()]
  const campaignId = await draft(other)
  const historyId = (await other.data('list_campaign_history', { campaignId })).entries[0].id
  t.is((await own.call('edit_campaign', { id: campaignId, subject: 'Mine' })).body.code, 'NOT_FOUND')
  for (const [tool, more] of [
    ['get_campaign', {}],
    ['duplicate_campaign', {}],
    ['archive_campaign', {}],
    ['unarchive_campaign', {}],
    ['update_campaign_filters', { filters: [] }],
    ['list_campaign_history', {}],
    ['get_campaign_history_entry', { historyId }],
    ['restore_campaign_history', { historyId }],
  ] as const) {
    const answer = await own.call(tool, { campaignId, ...more })
    t.is(answer.body.code, 'NOT_FOUND', `${tool}: ${JSON.stringify(answer.body)}`)
  }
  const foreign = await own.call('create_campaign', { subject: 'x', senderId: other.senderId })
  t.is(foreign.body.code, 'NOT_FOUND')
  const unknown = { subject: 'x', senderId: encodeId('snd', newId()) }
  t.is((await own.call('create_campaign', unknown)).body.code, 'NOT_FOUND')
})
