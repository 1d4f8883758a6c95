import anyTest, { type TestFn } from 'ava'
import { sql } from 'kysely'

import { compileContent } from '../src/content/compile.ts'
import { fillContent } from '../src/content/fill.ts'
import { row } from '../src/database.ts'
import { startLanes } from '../src/delivery/lanes.ts'
import type { FrozenEmail } from '../src/domain/automations/definition/versions.ts'
import { decodeId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { lintEmail } from './helpers/email-lint.ts'
import { eventually } from './helpers/eventually.ts'
import { mailText } from './helpers/mail-text.ts'
import { QUICK } from './helpers/mailroom.ts'
import { type Sink, startSmtpSink } from './helpers/smtp-sink.ts'

type Json = Record<string, unknown>

const test = anyTest as TestFn<{ api: TestApi; sink: Sink; stop: () => Promise<void> }>

test.before(async (t) => {
  const sink = await startSmtpSink()
  const api = await startApi({ RELAY_URL: sink.url })
  const lanes = await startLanes(api.services, { workerName: 'test', lane: QUICK, reviveMs: 50 })
  const stop = async (): Promise<void> => {
    await lanes.stop()
    await api.close()
    await sink.close()
  }
  t.context = { api, sink, stop }
})
test.after.always(async (t) => {
  await t.context.stop()
})

const paragraph = (text: string, attrs: Json = {}): Json => ({
  type: 'paragraph',
  attrs,
  content: [{ type: 'text', text }],
})
const doc = (...content: Json[]): Json => ({ type: 'doc', content })
const holding = (snippetId: string): Json => ({ type: 'snippet', attrs: { snippetId } })

async function makeSnippet(organization: TestOrganization, name: string, content: Json): Promise<string> {
  const { snippet } = await organization.data('create_email_snippet', { name, content })
  return snippet.id
}

/** Creates a snippet that contains another one, which has the unsubscribe link. */
async function makeSignature(organization: TestOrganization): Promise<{ outer: string; inner: string }> {
  const inner = await makeSnippet(organization, 'Legal', doc({ type: 'footer', content: [] }))
  const outer = await makeSnippet(organization, 'Signature', doc(paragraph('Best, Ada'), holding(inner)))
  return { outer, inner }
}

test('a document is rendered with its snippets, for somebody or with everything that anybody sees', async (t) => {
  const organization = await t.context.api.organization()
  const { outer, inner } = await makeSignature(organization)
  const { campaign } = await organization.data('create_campaign', {
    subject: 'Hi {{name}}',
    content: doc(
      paragraph("Hello {{name | 'friend'}}"),
      paragraph('Only for members.', { showIfKey: 'member' }),
      { type: 'button', attrs: { text: 'Read', url: 'https://shop.example/{{city}}' } },
      holding(outer),
    ),
  })
  const { subscriber } = await organization.data('add_subscriber', {
    email: 'ada@reader.example',
    name: 'Ada',
    fields: { city: 'Paris', member: false },
  })
  const render = async (input: Json = {}) =>
    await organization.data('render_campaign', { campaignId: campaign.id, ...input })

  const anybody = await render()
  t.true(
    anybody.text.startsWith(
      'Hello friend\n\nOnly for members.\n\nRead: https://shop.example/\n\nBest, Ada\n',
    ),
  )
  t.deepEqual(anybody.warnings, [])
  t.deepEqual(lintEmail(anybody.html), [])
  const ada = await render({ subscriberId: subscriber.id })
  t.is(ada.subject, 'Hi Ada')
  t.true(
    ada.text.startsWith('Hello Ada\n\nRead: https://shop.example/Paris\n\nBest, Ada\n\nUnsubscribe: http'),
  )

  await organization.confirmed('archive_email_snippet', { snippetId: inner })
  const { warnings } = await render()
  t.deepEqual(
    warnings.map(({ code }: { code: string }) => code),
    ['ARCHIVED_SNIPPET'],
  )
  const other = await t.context.api.organization()
  t.is((await other.call('render_campaign', { campaignId: campaign.id })).status, 404)
})

test('a Slate document is rendered', async (t) => {
  const organization = await t.context.api.organization()
  const { campaign } = await organization.data('create_campaign', {
    subject: 'Hi',
    contentType: 'PLATE',
    content: [
      { type: 'h1', children: [{ text: 'Hello {{name}}' }] },
      { type: 'p', children: [{ text: 'Text', bold: true }] },
    ],
  })
  const rendered = await organization.data('render_campaign', { campaignId: campaign.id })
  t.regex(rendered.html, /<p style="[^"]*"><strong>Text<\/strong><\/p>/)
  t.deepEqual(lintEmail(rendered.html), [])
  t.deepEqual(
    rendered.warnings.map(({ code }: { code: string }) => code),
    ['UNSUBSCRIBE_LINK_ADDED'],
  )
})

test('a TipTap document is sent as transactional email, with an unsubscribe link', async (t) => {
  const { api, sink } = t.context
  const organization = await api.organization()
  const snippetId = await makeSnippet(organization, 'Closing', doc(paragraph('See you soon')))
  const send = async (content: unknown) =>
    await api.request('POST', '/api/v1/emails', {
      token: organization.token,
      body: { to: 'lin@reader.example', subject: 'Receipt', contentType: 'TIPTAP', content },
    })
  const accepted = await send(JSON.stringify(doc(paragraph('Thank you {{email}}'), holding(snippetId))))
  t.is(accepted.status, 200, JSON.stringify(accepted.body))
  const [mail] = await eventually('the email', () => sink.accepted().length > 0 && sink.accepted())
  const raw = mail ? mailText(mail.raw) : ''
  t.regex(raw, /Thank you lin@reader\.example/)
  t.regex(raw, /See you soon/)
  t.regex(raw, /Unsubscribe/)
  t.regex(raw, /<p style="margin:0 0 16px">Thank you/)

  const refused = async (content: string, message: RegExp) => {
    const answer = await send(content)
    t.is(answer.status, 422)
    t.regex(answer.body.message, message)
  }
  await refused('Hello', /content is text that is not JSON/)
  await refused('{"type":"paragraph"}', /content.*must be a document/)
  await refused('{"type":"doc","content":[{"type":7}]}', /content\.content\[0\]/)
  await refused(JSON.stringify(doc(holding('snp_00000000000000000000000000'))), /there is no snippet/)
})

const series = (config: Json) => ({
  steps: [
    { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
    { id: 'welcome', type: 'EMAIL', config },
  ],
  edges: [{ from: 'start', to: 'welcome' }],
})

test('a workflow sends documents as they and their snippets were when it was published', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const { outer } = await makeSignature(organization)
  const { workflow } = await organization.data('create_workflow', { name: 'Series' })
  const configure = async (config: Json, expectedUpdatedAt: string) =>
    await organization.call('configure_workflow_draft', {
      workflowId: workflow.id,
      expectedUpdatedAt,
      ...series({ subject: 'Welcome', ...config }),
    })
  const wrong = await configure(
    {
      content: { type: 'doc', content: [{ type: 'paragraph', marks: 7 }, holding('snp_x')] },
      contentType: 'MAILY',
    },
    workflow.updatedAt,
  )
  t.is(wrong.status, 400)
  t.is(wrong.body.details[0].path, 'steps[1].config.content.content[0].marks')
  t.is(wrong.body.details[0].stepId, 'welcome')

  const content = doc(paragraph('Hello {{name}}'), holding(outer))
  const saved = await configure(
    { content: JSON.stringify(content), contentType: 'MAILY' },
    workflow.updatedAt,
  )
  t.is(saved.status, 200, JSON.stringify(saved.body))
  const { campaignId } = saved.body.data.workflow.draft.steps[1].config
  const { campaign } = await organization.data('get_campaign', { campaignId })
  t.like(campaign, { contentType: 'MAILY', content })

  const published = await organization.confirmed('publish_workflow', { workflowId: workflow.id })
  t.is(published.status, 200, JSON.stringify(published.body))
  await organization.data('update_email_snippet', { snippetId: outer, content: doc(paragraph('Changed')) })
  const frozen = await row<{ email: FrozenEmail }>(
    api.services.orm.em.fork(),
    sql`select definition -> 'emails' -> 'welcome' as email from automation_version
      where automation_id = ${decodeId('wf', workflow.id)}`,
  )
  const compiled = compileContent({
    contentType: frozen?.email.contentType ?? 'MARKDOWN',
    source: frozen?.email.content,
    subject: 'x',
    kind: 'marketing',
  })
  const { text } = fillContent(compiled, {
    variables: { name: 'Ada' },
    urls: { unsubscribe: 'https://mail.test/u/1', online: '' },
  })
  t.true(text.startsWith('Hello Ada\n\nBest, Ada\n\nUnsubscribe: https://mail.test/u/1\n'))

  const copied = await organization.data('create_workflow', { name: 'Copy' })
  const copy = await organization.data('configure_workflow_draft', {
    workflowId: copied.workflow.id,
    expectedUpdatedAt: copied.workflow.updatedAt,
    ...series({ campaignId }),
  })
  const { campaign: copiedEmail } = await organization.data('get_campaign', {
    campaignId: copy.workflow.draft.steps[1].config.campaignId,
  })
  t.like(copiedEmail, { contentType: 'MAILY', content })
})

test('an empty document cannot be published', async (t) => {
  const organization = await t.context.api.organization()
  const { workflow } = await organization.data('create_workflow', { name: 'Empty' })
  await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    ...series({ subject: 'Welcome', content: doc() }),
  })
  const answer = await organization.call('publish_workflow', { workflowId: workflow.id })
  t.is(answer.status, 400)
  t.regex(JSON.stringify(answer.body), /the email has no content/)
})

test('an email that is too large to go to many cannot be published', async (t) => {
  const organization = await t.context.api.organization()
  const { workflow } = await organization.data('create_workflow', { name: 'Large' })
  const content = doc({ type: 'paragraph', content: [{ type: 'text', text: '{{name}} '.repeat(30_000) }] })
  await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    ...series({ subject: 'Welcome', content }),
  })
  const answer = await organization.call('publish_workflow', { workflowId: workflow.id })
  t.is(answer.status, 400)
  t.regex(
    JSON.stringify(answer.body),
    /config\.content.*takes [\d.]+ MB .*at most 2 MB go to many; shorten it/,
  )
})
