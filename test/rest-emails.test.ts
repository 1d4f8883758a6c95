import test from 'ava'
import { sql } from 'kysely'
import { Resend } from 'resend'

import { execute, row } from '../src/database.ts'
import { encodeId } from '../src/ids.ts'
import { type Answer, type TestOrganization } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import { openPostOffice, type PostOffice } from './helpers/reports.ts'
import { startStack } from './helpers/stack.ts'
import { publishWorkflow } from './helpers/workflow.ts'

let office: PostOffice

test.before(async () => {
  office = await openPostOffice()
})
test.after.always(async () => {
  await office?.close()
})

const DOCUMENT = {
  type: 'doc',
  content: [{ type: 'paragraph', content: [{ type: 'text', text: 'Dear reader' }] }],
}

async function post(
  { token }: { token: string },
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return await office.api.request('POST', `/api/v2${path}`, { token, body, headers })
}

async function emailOf({ token }: TestOrganization, id: string): Promise<Answer['body']> {
  const { status, body } = await office.api.request('GET', `/api/v2/emails/${id}`, { token })
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body
}

async function countEmails(organization: TestOrganization): Promise<number> {
  const found = await row<{ count: number }>(
    office.api.services.orm.em.fork(),
    sql`select count(*)::int as count from message where organization_id = ${organization.id}`,
  )
  return found?.count ?? 0
}

test('an email is written as html, tiptap or markdown, and read again with both of its bodies', async (t) => {
  const organization = await office.api.organization()
  const base = { from: `Shop <hello@${organization.domain}>`, subject: 'Your order', preview: 'It is there' }
  for (const [body, type] of [
    [{ html: '<p>Dear reader</p>' }, 'HTML'],
    [{ markdown: 'Dear reader' }, 'MARKDOWN'],
    [{ tiptap: DOCUMENT }, 'TIPTAP'],
    [{ tiptap: JSON.stringify(DOCUMENT) }, 'TIPTAP'],
  ] as const) {
    const to = `${type}${Math.random()}@reader.example`.toLowerCase()
    const sent = await post(organization, '/emails', { ...base, to, ...body, reply_to: 'help@shop.example' })
    t.is(sent.status, 200, JSON.stringify(sent.body))
    t.deepEqual(Object.keys(sent.body), ['id'])
    t.regex(sent.body.id, /^eml_[0-9a-z]{26}$/)
    const email = await emailOf(organization, sent.body.id)
    t.like(email, {
      id: sent.body.id,
      from: base.from,
      to: [to],
      reply_to: 'help@shop.example',
      subject: 'Your order',
      source: { content_type: type, preview: 'It is there' },
    })
    t.regex(email.html, /Dear reader/)
    t.regex(email.text, /Dear reader/)
    t.is(email.events[0].event, 'queued')
  }
  const listed = await office.api.request('GET', '/api/v2/emails', { token: organization.token })
  t.is(listed.body.data.length, 4)
  t.false('html' in listed.body.data[0] || 'text' in listed.body.data[0])
})

test("Resend's own client is served with only its address changed", async (t) => {
  const organization = await office.api.organization()
  const resend = new Resend(organization.token, { baseUrl: `${office.api.url}/api/v2` })
  const email = {
    from: `Acme <onboarding@${organization.domain}>`,
    to: ['delivered@reader.example'],
    replyTo: ['answers@acme.example'],
    subject: 'Hello world',
    html: '<strong>It works!</strong>',
  }
  const keyed = { idempotencyKey: 'welcome-user/123456789' }
  const sent = await resend.emails.send(email, keyed)
  t.is(sent.error, null)
  const id = sent.data?.id ?? ''
  t.is((await resend.emails.send(email, keyed)).data?.id, id)
  const batch = await resend.batch.send([email, { ...email, to: 'b@reader.example' }])
  t.is(batch.error, null)
  const ids = batch.data?.data.map((each) => each.id) ?? []
  t.is(ids.length, 2)
  t.like(await emailOf(organization, id), { to: email.to, reply_to: 'answers@acme.example' })
  const found = await resend.emails.get(id)
  t.like(found.data, { id, subject: 'Hello world' })
  const listed = await resend.emails.list({ limit: 2 })
  t.deepEqual(
    listed.data?.data.map((each) => each.id),
    ids.toReversed(),
  )
  t.true(listed.data?.has_more)
  const refused = await resend.emails.send({ ...email, from: 'hello@nowhere.example' })
  t.like(refused.error, { name: 'domain_not_verified', statusCode: 403 })
})

test('what is not accepted is refused by its name', async (t) => {
  const organization = await office.api.organization()
  const email = {
    from: `hello@${organization.domain}`,
    to: 'a@reader.example',
    subject: 'Hi',
    html: '<p>Hi</p>',
  }
  const { html: _html, ...bodiless } = email
  const { subject: _subject, ...untitled } = email
  const cases: [unknown, number, string, string | null][] = [
    ...[
      'content',
      'contentType',
      'attachments',
      'template',
      'topic_id',
      'scheduled_at',
      'react',
      'tracking',
    ].map((field): [unknown, number, string, string] => [
      { ...email, [field]: 'x' },
      422,
      'validation_error',
      field,
    ]),
    ...['text', 'cc', 'bcc', 'headers', 'tags', 'replyTo'].map((field): [unknown, number, string, string] => [
      { ...email, [field]: 'x' },
      422,
      'validation_error',
      field,
    ]),
    [bodiless, 422, 'missing_required_field', 'html'],
    [untitled, 422, 'missing_required_field', 'subject'],
    [{ ...email, markdown: 'Hi' }, 422, 'validation_error', 'markdown'],
    [{ ...email, tiptap: DOCUMENT, markdown: 'Hi' }, 422, 'validation_error', 'tiptap'],
    [{ ...email, to: ['a@reader.example', 'b@reader.example'] }, 422, 'validation_error', 'to'],
    [{ ...email, to: [] }, 422, 'validation_error', 'to'],
    [{ ...email, to: 'a@reader.example, b@reader.example' }, 422, 'validation_error', 'to'],
    [{ ...email, to: 7 }, 422, 'validation_error', 'to'],
    [{ ...email, reply_to: 'nobody' }, 422, 'validation_error', 'reply_to'],
    [{ ...email, subject: 'Hi\r\nBcc: b@reader.example' }, 422, 'validation_error', 'subject'],
    [{ ...bodiless, markdown: 'a'.repeat(1_000_001) }, 422, 'validation_error', 'markdown'],
    [{ ...bodiless, tiptap: 'no JSON' }, 422, 'validation_error', 'tiptap'],
    [{ ...bodiless, tiptap: { type: 'page' } }, 422, 'validation_error', 'tiptap'],
    [{ ...email, from: 'nobody' }, 422, 'invalid_from_address', null],
    [{ ...email, from: 'hello@nowhere.example' }, 403, 'domain_not_verified', null],
  ]
  for (const [body, status, name, path] of cases) {
    const answer = await post(organization, '/emails', body)
    t.like(answer, { status, body: { name, statusCode: status } }, JSON.stringify([body, answer.body]))
    if (path === null) continue
    const paths: string[] = answer.body.details.map((fault: { path: string }) => fault.path.split('.')[0])
    t.true(paths.includes(path), JSON.stringify(answer.body))
  }
  const malformed = await office.api.request('POST', '/api/v2/emails', {
    token: organization.token,
    raw: '{"to":',
  })
  t.like(malformed, { status: 400, body: { name: 'validation_error' } })
  t.is((await post({ token: await organization.tokenWith(['subscribers']) }, '/emails', email)).status, 403)
  t.is(await countEmails(organization), 0)
})

test('what may be of several types is refused by the fault of the type that was sent', async (t) => {
  const organization = await office.api.organization()
  const { token } = organization
  const email = { from: `hello@${organization.domain}`, to: [5], subject: 'Hello', markdown: 'Hi' }
  const sent = await office.api.request('POST', '/api/v2/emails', { token, body: email })
  t.deepEqual(sent.body.details, [{ path: 'to[0]', message: 'must be text, not a number' }])
  const patch = async (fallbackPriority: unknown) => {
    const path = `/api/v2/domains/${organization.domain}`
    return (await office.api.request('PATCH', path, { token, body: { fallbackPriority } })).body.details
  }
  t.deepEqual(await patch(1_001), [{ path: 'fallbackPriority', message: 'must be at most 1000' }])
  t.deepEqual(await patch('1'), [
    { path: 'fallbackPriority', message: 'must be a whole number or null, not text' },
  ])
})

test('a batch is accepted whole or not at all, and says which of its emails is at fault', async (t) => {
  const organization = await office.api.organization()
  const email = (to: string, more: object = {}) => ({
    from: `hello@${organization.domain}`,
    to,
    subject: to,
    markdown: 'Hi',
    ...more,
  })
  await organization.confirmed('add_suppression', { email: 'blocked@reader.example' })
  const one = email('one@reader.example')
  const cases: [unknown, string, string | null][] = [
    [[one, email('two')], 'validation_error', '[1].to'],
    [[one, email('two@reader.example', { attachments: [] })], 'validation_error', '[1].attachments'],
    [[one, { ...one, markdown: undefined }], 'validation_error', '[1].html'],
    [
      [one, email('two@reader.example', { tiptap: '?', markdown: undefined })],
      'validation_error',
      '[1].tiptap',
    ],
    [[email('x'), one, email('y')], 'validation_error', '[2].to'],
    [[one, email('blocked@reader.example')], 'wrong_state', null],
    [[one, email('two@reader.example', { from: 'a@nowhere.example' })], 'domain_not_verified', null],
    [[], 'validation_error', ''],
    [{ emails: [one] }, 'validation_error', ''],
    [Array.from({ length: 101 }, () => one), 'validation_error', ''],
  ]
  for (const [body, name, path] of cases) {
    const answer = await post(organization, '/emails/batch', body)
    t.is(answer.body.name, name, JSON.stringify(answer.body))
    if (path === null) {
      t.regex(answer.body.message, /^\[1\]: /)
    } else {
      const paths: string[] = answer.body.details.map((fault: { path: string }) => fault.path)
      t.true(paths.includes(path), JSON.stringify(answer.body))
    }
  }
  t.is(await countEmails(organization), 0)

  const hundred = Array.from({ length: 100 }, (_, index) => email(`r${index % 90}@reader.example`))
  const headers = { 'idempotency-key': 'a hundred' }
  const sent = await post(organization, '/emails/batch', hundred, headers)
  t.is(sent.status, 200, JSON.stringify(sent.body))
  t.deepEqual((await post(organization, '/emails/batch', hundred, headers)).body, sent.body)
  t.is(await countEmails(organization), 100)
  t.is((await emailOf(organization, sent.body.data[57].id)).subject, 'r57@reader.example')
  const other = await post(organization, '/emails/batch', [one], headers)
  t.like(other, { status: 409, body: { name: 'invalid_idempotent_request' } })
})

test('an email tells everything that became of it, with the report as it came', async (t) => {
  const organization = await office.api.organization()
  const email = await office.send(organization)
  const id = encodeId('eml', email.id)
  t.like(await emailOf(organization, id), { last_event: 'sent' })

  // Visits soon after sending count as a scanner's, so the email is made older.
  await execute(
    office.api.services.orm.em.fork(),
    sql`update message set sent_at = now() - interval '1 minute', created_at = now() - interval '2 minutes'
      where id = ${email.id}`,
  )
  const link = /http:\/\/127[^\s"<>]+\/c\/[\w.~=-]+/.exec(email.raw.replaceAll('=\r\n', ''))?.[0] ?? ''
  const agent = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }
  await fetch(link.replaceAll('=3D', '='), { headers: agent, redirect: 'manual' })
  await eventually('the click', async () => {
    await office.api.settleVisits()
    return (await emailOf(organization, id)).last_event === 'clicked'
  })
  await office.bring('postfix-no-such-user', email)
  await eventually('the bounce', async () => (await emailOf(organization, id)).last_event === 'bounced')

  const { events } = await emailOf(organization, id)
  const told = events.map(({ event }: { event: string }) => event)
  t.deepEqual(
    told,
    [...told].sort((one, other) => told.indexOf(one) - told.indexOf(other)),
  )
  t.deepEqual([told[0], told.includes('sent'), told.at(-1)], ['queued', true, 'bounced'])
  const click = events.find(({ event }: { event: string }) => event === 'clicked')
  t.like(click, { url: 'https://shop.example/a', machine: false })
  const bounce = events.at(-1)
  t.regex(bounce.raw, /^(?:From|To|Subject|Return-Path|Received):/im)
  t.is(told.filter((event: string) => event === 'bounced').length, 1)
})

test('an email that waits, and one of a workflow whatever its class, is read with its subject and bodies', async (t) => {
  const stack = await startStack({ queue: 'rest-emails' })
  t.teardown(() => stack.close())
  const { api, lanes } = stack
  await lanes.stop()
  const organization = await api.organization()
  const { token } = organization
  const email = 'ada@reader.example'
  await organization.data('add_subscriber', { email })
  const config = { content: 'Thank you', contentType: 'MARKDOWN' }
  const workflowId = await publishWorkflow(organization, [
    { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
    { id: 'receipt', type: 'EMAIL', config: { ...config, subject: 'Receipt', transactional: true } },
    { id: 'news', type: 'EMAIL', config: { ...config, subject: 'News' } },
  ])
  const from = `hello@${organization.domain}`
  const body = { from, to: email, subject: 'Single', markdown: 'Thank you' }
  await api.request('POST', '/api/v2/emails', { token, body })
  await organization.data('add_subscriber_to_workflow', { workflowId, email })
  const listed = (count: number) =>
    eventually(`${count} emails`, async () => {
      const { emails } = await organization.data('get_subscriber_emails', { email })
      return emails.length === count && emails.map(({ subject }: { subject: string }) => subject)
    })
  t.deepEqual(await listed(2), ['Receipt', 'Single'])
  const { data } = (await api.request('GET', '/api/v2/emails', { token })).body
  t.deepEqual(
    data.map(({ subject }: { subject: string }) => subject),
    ['Receipt', 'Single'],
  )
  await lanes.start()
  t.deepEqual(await listed(3), ['News', 'Receipt', 'Single'])
  const { emails } = await organization.data('get_subscriber_emails', { email })
  for (const { id, subject } of emails) {
    const read = (await api.request('GET', `/api/v2/emails/${id}`, { token })).body
    t.like(read, { subject, source: { content: 'Thank you' } })
    t.regex(read.html, /Thank you/, subject)
    t.regex(read.text, /Thank you/, subject)
  }
})
