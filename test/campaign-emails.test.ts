import test from 'ava'
import { sql } from 'kysely'
import { type ParsedMail, simpleParser } from 'mailparser'

import { execute, row, rows } from '../src/database.ts'
import { keepHouse } from '../src/domain/housekeeping.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import type { TestApi, TestOrganization } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import type { Sink } from './helpers/smtp-sink.ts'
import { type Stack, startStack } from './helpers/stack.ts'

let stack: Stack
let api: TestApi
let sink: Sink

test.before(async () => {
  stack = await startStack()
  ;({ api, sink } = stack)
})
test.after.always(() => stack?.close())

const em = () => stack.em()

async function draft(organization: TestOrganization, input: object = {}): Promise<string> {
  const written = {
    subject: 'News for {{name}}',
    contentType: 'MARKDOWN',
    content: 'Hi {{name | "you"}}, [read](https://example.com/a).',
  }
  return (await organization.data('create_campaign', { ...written, ...input })).campaign.id
}

/** Returns the email with this id once the relay has it. */
async function arrived(id: string): Promise<ParsedMail> {
  const entry = await eventually(`the email ${id}`, async () => {
    const sent = await row<{ status: string }>(
      em(),
      sql`select status from message where id = ${decodeId('eml', id)} and status = 'SENT'`,
    )
    return sent !== null && sink.accepted().find(({ messageId }) => messageId?.includes(id))
  })
  return await simpleParser(entry.raw)
}

async function countMessages(organization: TestOrganization): Promise<number> {
  const found = await rows(em(), sql`select id from message where organization_id = ${organization.id}`)
  return found.length
}

test('a test goes to its addresses with [Test] before the subject, a footer, and nothing that counts', async (t) => {
  const organization = await api.organization()
  const { subscriber } = await organization.data('add_subscriber', { email: 'ada@example.com', name: 'Ada' })
  await organization.confirmed('unsubscribe', { email: 'ada@example.com' })
  const campaignId = await draft(organization, { replyTo: 'answers@example.com' })
  const emails = ['ada@example.com', 'boss@example.com']
  const answer = await organization.data('send_test_email', { campaignId, emails })
  t.deepEqual(
    answer.emails.map(({ email }: { email: string }) => email),
    emails,
  )
  // A requested test email is sent unchanged even if the campaign is edited afterwards.
  await organization.data('edit_campaign', { id: campaignId, subject: 'Changed' })
  for (const { id, email } of answer.emails) {
    const mail = await arrived(id)
    t.is(mail.subject, '[Test] News for')
    t.is(Array.isArray(mail.to) ? '' : mail.to?.text, email)
    t.is(mail.from?.text, `"Sender" <hello@${organization.domain}>`)
    t.is(mail.replyTo?.text, 'answers@example.com')
    t.regex(mail.text ?? '', /Hi you,/)
    t.regex(mail.text ?? '', /https:\/\/example\.com\/a/)
    t.true(String(mail.html).includes(`${api.url}/u/preview`), 'the footer has a sample link')
    t.notRegex(String(mail.html), /\/[co]\//)
    t.false(mail.headers.has('list-unsubscribe'))
  }
  const stored = await rows<{ class: string; subscriber: string | null }>(
    em(),
    sql`select class, subscriber_id as subscriber from message where organization_id = ${organization.id}`,
  )
  t.deepEqual(stored, [
    { class: 'TEST', subscriber: null },
    { class: 'TEST', subscriber: null },
  ])
  const { events } = await organization.data('list_subscriber_events', { subscriberId: subscriber.id })
  t.false(events.some(({ type }: { type: string }) => type.startsWith('EMAIL_')))
  t.is((await organization.data('get_org_stats')).stats.emailsLast30Days.total, 0)
})

test('the personal links of a test and a preview say that they are samples', async (t) => {
  const organization = await api.organization()
  const campaignId = await draft(organization, {
    content: '[leave]({{unsubscribeUrl}}) [read]({{onlineUrl}})',
  })
  const { text } = await organization.data('render_campaign', { campaignId })
  const links = text.match(/http:\S+\/[uv]\/preview/g) ?? []
  t.is(links.length, 2)
  for (const link of links) {
    const page = await api.request('GET', new URL(link).pathname)
    t.is(page.status, 200)
    t.regex(page.body, /This link is a sample/)
  }
  t.regex((await api.request('POST', '/u/preview')).body, /This link is a sample/)
  t.is((await api.request('GET', '/u/previews')).status, 404)
})

test('a test of a document carries its snippets and shows what only some people see', async (t) => {
  const organization = await api.organization()
  const paragraph = (text: string, attrs: object = {}) => ({
    type: 'paragraph',
    attrs,
    content: [{ type: 'text', text }],
  })
  const { snippet } = await organization.data('create_email_snippet', {
    name: 'Hours',
    content: { type: 'doc', content: [paragraph('Open until nine')] },
  })
  const content = {
    type: 'doc',
    content: [
      paragraph('For members, at {{email}}', { showIfKey: 'member' }),
      { type: 'snippet', attrs: { snippetId: snippet.id } },
    ],
  }
  const campaignId = await draft(organization, { contentType: 'MAILY', content })
  const { emails } = await organization.data('send_test_email', { campaignId, emails: ['a@example.com'] })
  const mail = await arrived(emails[0].id)
  t.regex(mail.text ?? '', /For members, at a@example\.com[^]+Open until nine/)
  t.true(String(mail.html).includes(`${api.url}/u/preview`))
  const read = await api.request('GET', `/api/v2/emails/${emails[0].id}`, { token: organization.token })
  t.is(read.body.text.trim(), (mail.text ?? '').trim(), 'the same can be read again')

  const asked = {
    email: 'tip@example.com',
    subject: 'x',
    contentType: 'TIPTAP',
    content: JSON.stringify(content),
  }
  const sent = await organization.confirmed('send_email', asked)
  t.regex((await arrived(sent.body.data.email.id)).text ?? '', /Open until nine/)
})

test('a test that cannot be sent is refused by name, and nothing is', async (t) => {
  const organization = await api.organization()
  const campaignId = await draft(organization)
  const six = Array.from({ length: 6 }, (_, index) => `p${index}@example.com`)
  for (const [code, path, input] of [
    ['INVALID_INPUT', 'emails', { emails: [] }],
    ['INVALID_INPUT', 'emails', { emails: six }],
    ['INVALID_INPUT', 'emails[1]', { emails: ['a@example.com', 'nobody'] }],
    ['INVALID_INPUT', 'emails[2]', { emails: ['a@example.com', 'b@example.com', 'A@Example.com'] }],
    ['NOT_FOUND', undefined, { campaignId: encodeId('cmp', newId()), emails: ['a@example.com'] }],
  ] as const) {
    const answer = await organization.call('send_test_email', { campaignId, ...input })
    t.is(answer.body.code, code, JSON.stringify(answer.body))
    if (path) t.is(answer.body.details[0].path, path)
  }
  const other = await api.organization()
  const foreign = await other.call('send_test_email', { campaignId, emails: ['a@example.com'] })
  t.is(foreign.body.code, 'NOT_FOUND')
  const large = await draft(organization, { content: '{{name}} '.repeat(30_000) })
  const size = await organization.call('send_test_email', { campaignId: large, emails: ['a@example.com'] })
  t.is(size.body.code, 'WRONG_STATE')
  t.regex(
    size.body.error,
    /cannot be sent as a test: the email takes [\d.]+ MB .* at most 2 MB go to many; shorten it\./,
  )
  const { warnings } = await organization.data('render_campaign', { campaignId: large })
  t.true(
    warnings.some(
      ({ code, message }: Record<string, string>) => code === 'TOO_LARGE' && message?.includes('2 MB'),
    ),
  )
  await execute(em(), sql`update domain set status = 'DEGRADED' where organization_id = ${organization.id}`)
  const unverified = await organization.call('send_test_email', { campaignId, emails: ['a@example.com'] })
  t.is(unverified.body.code, 'DOMAIN_NOT_VERIFIED')
  await execute(em(), sql`delete from sender where organization_id = ${organization.id}`)
  const nobody = await organization.call('send_test_email', { campaignId, emails: ['a@example.com'] })
  t.regex(nobody.body.error, /there is no sender; make one with create_email_sender/)
  t.is(await countMessages(organization), 0)
})

test('send_email tells who gets what, and sends it once it is confirmed', async (t) => {
  const organization = await api.organization()
  const { sender } = await organization.data('create_email_sender', {
    localPart: 'billing',
    domain: organization.domain,
    name: 'Billing "Desk"',
    replyTo: 'desk@example.com',
  })
  const { subscriber } = await organization.data('add_subscriber', { email: 'ada@example.com', name: 'Ada' })
  await organization.confirmed('unsubscribe', { email: 'ada@example.com' })
  const input = {
    subscriberId: subscriber.id,
    subject: 'Receipt for {{name}}',
    content: 'Thank you, **{{name}}**.',
    senderId: sender.id,
  }
  const asked = await organization.call('send_email', input)
  t.is(asked.status, 428)
  t.like(asked.body.summary, { action: 'send_email', target: 'ada@example.com', recipients: 1 })
  t.regex(asked.body.summary.effects[0], /"Receipt for \{\{name\}\}" goes to ada@example\.com from billing@/)
  t.is(await countMessages(organization), 0)
  const sent = await organization.call('send_email', {
    ...input,
    confirmationCode: asked.body.confirmationCode,
  })
  const mail = await arrived(sent.body.data.email.id)
  t.is(mail.subject, 'Receipt for Ada')
  t.is(mail.from?.value[0]?.address, `billing@${organization.domain}`)
  t.is(mail.from?.value[0]?.name, 'Billing "Desk"')
  t.is(mail.replyTo?.text, 'desk@example.com')
  t.regex(String(mail.html), /<strong[^>]*>Ada<\/strong>/)

  const html = await organization.confirmed('send_email', {
    email: 'new@example.com',
    subject: 'Hello',
    content: '<p>Hi</p>',
    contentType: 'HTML',
    replyTo: 'me@example.com',
  })
  t.is((await arrived(html.body.data.email.id)).replyTo?.text, 'me@example.com')
  const { subscriber: newcomer } = await organization.data('get_subscriber', { email: 'new@example.com' })
  t.is(newcomer.status, 'TRANSACTIONAL')
})

test('send_email refuses before it asks for a code, and nothing is sent', async (t) => {
  const [organization, other] = [await api.organization(), await api.organization()]
  const { subscriber } = await organization.data('add_subscriber', { email: 'ada@example.com' })
  await execute(
    em(),
    sql`update subscriber set status = 'COMPLAINED' where id = ${decodeId('sub', subscriber.id)}`,
  )
  const { subscriber: foreign } = await other.data('add_subscriber', { email: 'bob@example.com' })
  const base = { subject: 'Hi', content: 'Hello' }
  for (const [code, input] of [
    ['WRONG_STATE', { email: 'ada@example.com' }],
    ['WRONG_STATE', { subscriberId: subscriber.id }],
    ['NOT_FOUND', { subscriberId: foreign.id }],
    ['NOT_FOUND', { email: 'x@example.com', senderId: other.senderId }],
    ['INVALID_INPUT', { email: 'x' }],
    ['INVALID_INPUT', {}],
    ['INVALID_INPUT', { email: 'x@example.com', subscriberId: subscriber.id }],
    ['INVALID_INPUT', { email: 'x@example.com', replyTo: 'x' }],
    ['INVALID_INPUT', { email: 'x@example.com', subject: 'a\nb' }],
    ['INVALID_INPUT', { email: 'x@example.com', contentType: 'TIPTAP' }],
    ['INVALID_INPUT', { email: 'x@example.com', contentType: 'TIPTAP', content: '{"type": "doc"}' }],
    ['INVALID_INPUT', { email: 'x@example.com', contentType: 'MAILY' }],
  ] as const) {
    const answer = await organization.call('send_email', { ...base, ...input })
    t.is(answer.body.code, code, JSON.stringify([input, answer.body]))
  }
  await execute(em(), sql`update domain set status = 'FAILED' where organization_id = ${organization.id}`)
  const unverified = await organization.call('send_email', { ...base, email: 'x@example.com' })
  t.is(unverified.body.code, 'DOMAIN_NOT_VERIFIED')
  t.is(await countMessages(organization), 0)
  const people = await organization.data('list_subscribers')
  t.is(people.subscribers.length, 1, 'judging makes nobody')
})

test('what single emails said, and who confirmed what, is forgotten when its time is over', async (t) => {
  const organization = await api.organization()
  const ages = sql`(values ('100 days'::interval), ('400 days'), ('89 days')) as old (age)`
  const add = async (statement: ReturnType<typeof sql>) => await execute(em(), statement)
  await add(
    sql`insert into message_content (organization_id, message_id, source)
      select ${organization.id}, id_floor(now() - age), to_jsonb(age::text) from ${ages}`,
  )
  await add(
    sql`insert into delivery_queue (id, organization_id, lane, state) select message_id, organization_id, 'bulk', 'held'
      from message_content where organization_id = ${organization.id} and source #>> '{}' = '400 days'`,
  )
  await add(
    sql`insert into audit_entry (organization_id, id, actor, action)
      select ${organization.id}, id_floor(now() - age - n * interval '1 second'), 'tok', action from ${ages},
        unnest('{confirmation.asked,confirmation.used,subscriber.erased}'::text[]) with ordinality as each (action, n)`,
  )
  await keepHouse(em())
  const left = await row(
    em(),
    sql`select (select array_agg(source #>> '{}' order by 1) from message_content
        where organization_id = ${organization.id}) as contents,
      (select count(*)::int from audit_entry where organization_id = ${organization.id}
        and action like 'confirmation.%') as confirmations,
      (select count(*)::int from audit_entry where organization_id = ${organization.id}
        and action = 'subscriber.erased') as erasures`,
  )
  t.deepEqual(left, { contents: ['400 days', '89 days'], confirmations: 4, erasures: 3 })
})

test.serial(
  'rows that came before their month had a partition move to it, and housekeeping goes on',
  async (t) => {
    const organization = await api.organization()
    const month = sql`date_trunc('month', now() at time zone 'utc') + interval '2 months'`
    const name = await row<{ suffix: string }>(em(), sql`select to_char(${month}, '_YYYY_MM') as suffix`)
    const inTwoMonths = sql`id_floor((${month} + interval '1 day') at time zone 'utc')`
    const written: Record<string, ReturnType<typeof sql>> = {
      decision: sql`insert into decision (id, organization_id, action, reason)
      values (${inTwoMonths}, ${organization.id}, 'SEND_EMAIL', 'PAUSED')`,
      tracking_event: sql`insert into tracking_event (id, organization_id, message_id, kind, human)
      values (${inTwoMonths}, ${organization.id}, new_id(), 'OPEN', true)`,
      message: sql`insert into message (id, organization_id, class, marketing, recipient, from_email)
      values (${inTwoMonths}, ${organization.id}, 'TEST', false, 'a@reader.example', 'b@shop.example')`,
      subscriber_event: sql`insert into subscriber_event (id, organization_id, subscriber_id, type, cause)
      values (${inTwoMonths}, ${organization.id}, new_id(), 'EMAIL_SENT', '{}')`,
    }
    for (const [table, insert] of Object.entries(written)) {
      await execute(em(), sql`drop table ${sql.table(`${table}${name?.suffix}`)}`)
      await execute(em(), insert)
    }
    await keepHouse(em())
    for (const table of Object.keys(written)) {
      const places = sql`select tableoid::regclass::text as place from ${sql.table(table)}
      where organization_id = ${organization.id} and id = ${inTwoMonths}`
      t.deepEqual(await rows(em(), places), [{ place: `${table}${name?.suffix}` }])
    }
    const indexes = sql`select count(*)::int as count, (select count(*)::int from pg_index where indrelid = 'message'::regclass)
      as wanted from pg_index where indrelid = ${`message${name?.suffix}`}::regclass`
    const found = await row<{ count: number; wanted: number }>(em(), indexes)
    t.is(found?.count, found?.wanted)
  },
)
