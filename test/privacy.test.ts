import test from 'ava'
import { sql } from 'kysely'

import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { array, execute, json, row, rows } from '../src/database.ts'
import { claimCampaignMails } from '../src/delivery/claims.ts'
import { type Outcome, recordOutcomes, tick } from '../src/delivery/tick.ts'
import { signToken } from '../src/delivery/tracking-token.ts'
import { recordEvents } from '../src/domain/events.ts'
import { eraseSubscriber } from '../src/domain/subscribers/erasure.ts'
import { decodeId, encodeId, newId, readId } from '../src/ids.ts'
import type { Answer, TestApi, TestOrganization } from './helpers/api.ts'
import { campaignUnderWay } from './helpers/campaign-under-way.ts'
import { eventually } from './helpers/eventually.ts'
import type { Sink } from './helpers/smtp-sink.ts'
import { type Stack, startStack } from './helpers/stack.ts'
import { publishWorkflow } from './helpers/workflow.ts'

let stack: Stack
let api: TestApi
let sink: Sink

test.before(async () => {
  stack = await startStack()
  ;({ api, sink } = stack)
})
test.after.always(() => stack?.close())

const em = () => stack.em()

/** Words that occur only in one person's data. */
const SECRETS = ['zebulon', 'quagmire', '+33 6 99', '203.0.113.77', 'goldfish', 'zebufox']
const OLD = 'Zebulon.Old@reader.example'
const EMAIL = 'Zebulon@reader.example'
const BROWSER = { 'user-agent': 'Mozilla/5.0 Zebufox/140.0' }

function erase(organization: TestOrganization, subscriber: string): Promise<Answer> {
  return api.request('DELETE', `/api/v2/subscribers/${encodeURIComponent(subscriber)}`, {
    token: organization.token,
  })
}

function send(organization: TestOrganization, to: string, body: object = {}): Promise<Answer> {
  return api.request('POST', '/api/v1/emails', {
    token: organization.token,
    body: { to, subject: 'Receipt', content: 'Thank you.', ...body },
  })
}

/** Creates a person with data in every table that can contain personal data. */
async function known(organization: TestOrganization): Promise<string> {
  const { token } = organization
  const add = {
    email: OLD,
    name: 'Zebulon Quagmire',
    phone: '+33 6 99 88 77 66',
    fields: { pet: 'goldfish' },
  }
  const added = await api.request('POST', '/api/v2/tools/add_subscriber', {
    token,
    body: { ...add, tags: ['vip'], ipAddress: '203.0.113.77', country: 'FR' },
    headers: { 'idempotency-key': 'add' },
  })
  const { id } = added.body.data.subscriber
  const asked = await row<{ id: string }>(
    em(),
    sql`select id from message where organization_id = ${organization.id} and recipient = ${OLD}`,
  )
  const ids = {
    organizationId: organization.id,
    messageId: asked?.id ?? '',
    subscriberId: readId('sub', id) ?? '',
  }
  const { secret } = api.services.config
  const confirmed = await api.request('POST', `/s/${signToken(secret, { kind: 'confirm', ...ids })}`, {
    headers: BROWSER,
  })
  if (confirmed.status !== 200) throw new Error('not confirmed')
  await organization.data('update_subscriber', { subscriber: id, email: EMAIL })
  await organization.data('update_subscriber', { subscriber: id, fields: { pet: 'two goldfish' } })
  await organization.data('create_event', {
    email: EMAIL,
    eventType: 'SUBSCRIBER_PAYMENT',
    amount: 12.5,
    metadata: { to: 'Quagmire' },
  })
  const sent = await send(organization, EMAIL, {
    subject: 'For {{name}}',
    content: 'Dear Quagmire, [yours](https://shop.example/?who={{email}})',
    replyTo: 'zebulon.private@reader.example',
  })
  const messageId = readId('eml', sent.body.id) ?? ''
  await api.request('POST', '/api/v1/emails', {
    token,
    body: { to: EMAIL, subject: 'Receipt', content: 'Thank you.' },
    headers: { 'idempotency-key': `receipt for ${EMAIL}` },
  })
  await eventually('the email', () =>
    row(em(), sql`select from message where id = ${messageId} and status = 'SENT'`),
  )
  await execute(
    em(),
    sql`update message set sent_at = now() - interval '1 minute', response = '250 for zebulon' where id = ${messageId}`,
  )
  await execute(
    em(),
    sql`insert into email_report (id, organization_id, message_id, kind, fingerprint, diagnostic, raw)
      values (${newId()}, ${organization.id}, ${messageId}, 'REPLY', 'once', 'from zebulon', 'Quagmire’s reply')`,
  )
  for (const [kind, path] of [
    ['open', '/o/'],
    ['click', '/c/'],
  ] as const) {
    const visited = { organizationId: organization.id, messageId, position: 0 }
    const link = signToken(secret, { kind, ...visited })
    await api.request('GET', `${path}${link}${kind === 'open' ? '.gif' : ''}`, { headers: BROWSER })
  }
  await api.settleVisits()
  await organization.call('unsubscribe', { email: EMAIL, reason: 'Quagmire asked' })
  await enterWorkflow(organization, EMAIL)
  await execute(
    em(),
    sql`with import as (insert into subscriber_import (id, organization_id, settings, actor)
        values (${newId()}, ${organization.id}, '{}', '{}') returning id)
      insert into import_rejection (organization_id, import_id, row_number, cells, error)
      select ${organization.id}, id, 1, ${json([EMAIL, 'Quagmire'])}, 'no' from import`,
  )
  await execute(
    em(),
    sql`insert into suppression (id, organization_id, email_key, reason, source)
      values (${newId()}, ${organization.id}, lower(${OLD}), 'HARD_BOUNCE', 'test')`,
  )
  await execute(
    em(),
    sql`insert into message (id, organization_id, class, marketing, recipient, from_email, subject)
      values (${newId()}, ${organization.id}, 'TEST', false, ${EMAIL}, 'a@b.example', 'Test for Quagmire')`,
  )
  await campaignTo(organization, id, EMAIL)
  return id
}

/**
 * Creates a campaign that was sent to a person, with two links that are the same for everybody. Returns the email's
 * uuid.
 */
async function campaignTo(
  organization: TestOrganization,
  subscriberId: string,
  email: string,
): Promise<string> {
  const [messageId, who] = [newId(), readId('sub', subscriberId)]
  await execute(
    em(),
    sql`with sent as (insert into campaign (id, organization_id, kind, status)
        values (${newId()}, ${organization.id}, 'BROADCAST', 'SENT') returning id, organization_id
      ), send as (
        insert into campaign_send (id, organization_id, campaign_id, number, subject, content, content_type, targets,
          sender_name, sender_email, recipient_filters)
        select new_id(), organization_id, id, 0, 'News', '"[a](https://shop.example/) [b](https://shop.example/b)"',
          'MARKDOWN', array['https://shop.example/', 'https://shop.example/b'], 'News', 'a@b.example', '[]'
        from sent returning id, organization_id, campaign_id
      ), meant as (
        insert into campaign_recipient (organization_id, campaign_id, subscriber_id, message_id)
        select organization_id, campaign_id, ${who}, ${messageId} from send
      )
      insert into message (id, organization_id, class, marketing, subscriber_id, recipient, from_email, campaign_id,
        version_id, status, sent_at)
      select ${messageId}, organization_id, 'CAMPAIGN', true, ${who}, ${email}, 'a@b.example', campaign_id, id, 'SENT',
        now() from send`,
  )
  return messageId
}

async function enterWorkflow(organization: TestOrganization, email: string): Promise<void> {
  const workflowId = await publishWorkflow(organization, [
    { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
    { id: 'wait', type: 'WAIT', config: { amount: 1, unit: 'DAYS' } },
  ])
  await organization.data('add_subscriber_to_workflow', {
    workflowId,
    email,
    context: { note: 'Quagmire' },
  })
}

/** Returns every row in the database in which any column contains one of the words. */
async function findings(words: readonly string[], organizationId: string): Promise<string[]> {
  const tables = await rows<{ name: string }>(
    em(),
    sql`select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  )
  const found: string[] = []
  for (const { name } of tables) {
    const hits = await rows<{ content: string }>(
      em(),
      sql`select content from (select t::text as content from ${sql.ref(name)} t) dump
        where lower(content) like any(${words.map((word) => `%${word}%`)}::text[])
          and strpos(content, ${organizationId}) > 0`,
    )
    found.push(...hits.map(({ content }) => `${name}: ${content}`))
  }
  return found
}

test('an export holds everything that is kept of a person, and nobody else gets it', async (t) => {
  const organization = await api.organization({ doubleOptIn: true })
  const id = await known(organization)
  const answer = await api.request('GET', `/api/v2/subscribers/${id}/export`, { token: organization.token })
  t.is(answer.status, 200, JSON.stringify(answer.body))
  const { body } = answer
  t.like(body.subscriber, { id, email: EMAIL, name: 'Zebulon Quagmire', phone: '+33 6 99 88 77 66' })
  t.deepEqual(body.subscriber.customFields, { pet: 'two goldfish' })
  t.is(body.ipAddress, '203.0.113.77')
  t.true(body.consent.requestedAt < body.consent.confirmedAt)
  t.is(body.consent.history[0].type, 'SUBSCRIBED')
  t.is(body.consent.history[0].data.confirmation.userAgent, BROWSER['user-agent'])
  t.like(body.consent.history[0].cause, { kind: 'public', id })
  const types = new Set(body.events.map(({ type }: { type: string }) => type))
  for (const type of [
    'SUBSCRIBED',
    'TAG_ADDED',
    'FIELD_UPDATED',
    'SUBSCRIBER_PAYMENT',
    'EMAIL_SENT',
    'EMAIL_OPENED',
    'EMAIL_CLICKED',
    'WORKFLOW_STARTED',
  ]) {
    t.true(types.has(type), type)
  }
  t.true(body.emails.some(({ content }: { content: string }) => content?.includes('Dear Quagmire')))
  t.is(body.visits.length, 2)
  t.true(body.visits[1].url.startsWith('https://shop.example/?who='))
  t.like(body.reports[0], { kind: 'REPLY', diagnostic: 'from zebulon', raw: 'Quagmire’s reply' })
  t.is(body.runs.length, 1)
  t.deepEqual(body.runs[0].entry, { note: 'Quagmire' })
  const other = await api.organization()
  t.is((await api.request('GET', `/api/v2/subscribers/${id}/export`, { token: other.token })).status, 404)
})

test('erasing leaves nothing of a person in any column of any table, and all the counts', async (t) => {
  const organization = await api.organization({ doubleOptIn: true })
  const neighbour = await api.organization()
  await neighbour.data('add_subscriber', { email: EMAIL, name: 'Zebulon Quagmire' })
  const id = await known(organization)
  const uuid = readId('sub', id) ?? ''
  await eventually('the lane to be empty', async () => {
    const [waiting] = await rows(
      em(),
      sql`select from delivery_queue where organization_id = ${organization.id}`,
    )
    return !waiting
  })
  const count = () =>
    rows(
      em(),
      sql`select type, count(*)::int as count, sum((data ->> 'amount')::numeric)::float8 as amount
        from subscriber_event where organization_id = ${organization.id} and type <> 'WORKFLOW_CANCELED'
        group by type order by type`,
    )
  const before = await count()
  const messages = () =>
    rows(
      em(),
      sql`select class, status, opened_at is not null as opened from message where organization_id = ${organization.id} order by id`,
    )
  const mailBefore = await messages()
  t.true((await findings(SECRETS, organization.id)).length > 12)

  const answer = await erase(organization, id)
  t.is(answer.status, 200, JSON.stringify(answer.body))
  t.deepEqual(answer.body, { object: 'subscriber', id, deleted: true })
  t.deepEqual(await findings(SECRETS, organization.id), [])
  const reports = await rows(em(), sql`select from email_report where organization_id = ${organization.id}`)
  t.is(reports.length, 0, 'whose raw text no search finds')
  const holders = (await findings([uuid, id], organization.id)).map((found) =>
    found.slice(0, found.indexOf(':')),
  )
  t.deepEqual([...new Set(holders)].filter((table) => table !== 'outbox').toSorted(), [
    'audit_entry',
    'erasure',
  ])
  t.deepEqual(await count(), before)
  const mailAfter = await messages()
  t.is(mailAfter.length, mailBefore.length)
  t.is((await organization.call('get_subscriber', { subscriberId: id })).status, 404)
  t.is((await organization.call('get_subscriber', { email: EMAIL })).status, 404)
  const audit = await row<object>(
    em(),
    sql`select action, target, data from audit_entry where organization_id = ${organization.id} and action = 'subscriber.erased'`,
  )
  t.deepEqual(audit, { action: 'subscriber.erased', target: id, data: {} })
  t.is((await neighbour.data('get_subscriber', { email: EMAIL })).subscriber.name, 'Zebulon Quagmire')
})

for (const email of ['ann@x-reader.example', '50%_off@x-reader.example']) {
  test(`records that mention ${email} are emptied, but not those of a person whose address contains it`, async (t) => {
    const organization = await api.organization()
    await organization.data('add_subscriber', { email })
    const own = [email.toUpperCase(), `said: '${email}'.`, `Ann,\n${email}`, `/unsubscribe?who=${email}&to=1`]
    const others = [`jo${email}`, `jo.${email}`, `mary-${email}`, `é${email}`, `${email}s`, `${email}.org`]
    await execute(
      em(),
      sql`insert into audit_entry (id, organization_id, actor, action, data)
        select new_id(), ${organization.id}, 'test', 'mentioned', jsonb_build_object('mentioned', text)
        from unnest(${array([...own, ...others], 'text')}) text`,
    )
    t.is((await erase(organization, email)).status, 200)
    const left = await rows<{ text: string }>(
      em(),
      sql`select data ->> 'mentioned' as text from audit_entry
        where organization_id = ${organization.id} and data ? 'mentioned'`,
    )
    t.deepEqual(left.map(({ text }) => text).toSorted(), others.toSorted())
  })
}

/** Returns the unsubscribe link in an email to this person. */
function unsubscribeLink({ id: organizationId }: TestOrganization, person: string): string {
  const ids = { organizationId, messageId: newId(), subscriberId: decodeId('sub', person) }
  return `/u/${signToken(api.services.config.secret, { kind: 'unsubscribe', ...ids })}`
}

test('a run ends, waiting emails are not sent, and links of old emails lead nowhere', async (t) => {
  const organization = await api.organization()
  const email = `q${newId()}@reader.example`
  const { subscriber } = await organization.data('add_subscriber', { email })
  await enterWorkflow(organization, email)
  const sent = await send(organization, email, { content: '[link](https://shop.example/)' })
  const messageId = readId('eml', sent.body.id) ?? ''
  await eventually('the email', () =>
    row(em(), sql`select from message where id = ${messageId} and status = 'SENT'`),
  )
  const held = newId()
  await execute(
    em(),
    sql`with made as (insert into message (id, organization_id, class, marketing, subscriber_id, recipient, from_email)
        values (${held}, ${organization.id}, 'CAMPAIGN', true, ${readId('sub', subscriber.id)}, ${email}, 'a@b.example'))
      insert into delivery_queue (id, organization_id, lane, state, next_attempt_at)
      values (${held}, ${organization.id}, 'bulk', 'deferred', now() + interval '1 hour')`,
  )
  const { secret } = api.services.config
  const campaignMail = await campaignTo(organization, subscriber.id, email)
  const shared = (position: number) =>
    `/c/${signToken(secret, { kind: 'click', organizationId: organization.id, messageId: campaignMail, position })}`
  t.is((await api.request('GET', shared(0), { headers: BROWSER })).status, 302)
  t.is((await erase(organization, subscriber.id)).status, 200)
  t.is((await api.request('GET', shared(1), { headers: BROWSER })).status, 404)
  const found = await row(em(), sql`select status, reason from message where id = ${held}`)
  t.deepEqual(found, { status: 'SKIPPED', reason: 'ERASED' })
  t.is(await row(em(), sql`select from delivery_queue where id = ${held}`), null)
  const [told] = await rows<{ count: number }>(
    em(),
    sql`select count(*)::int as count from outbox where organization_id = ${organization.id} and kind = 'signal'`,
  )
  t.is(told?.count, 1, 'the workflow of the run is told to look')
  const ids = { organizationId: organization.id, messageId, subscriberId: readId('sub', subscriber.id) ?? '' }
  t.is(
    (await api.request('GET', `/c/${signToken(secret, { kind: 'click', ...ids, position: 0 })}`)).status,
    404,
  )
  t.is((await api.request('GET', `/v/${signToken(secret, { kind: 'view', ...ids })}`)).status, 404)
  for (const method of ['GET', 'POST']) {
    const page = await api.request(method, unsubscribeLink(organization, subscriber.id))
    t.is(page.status, 200)
    t.regex(page.body, /You are unsubscribed/)
    t.notRegex(page.body, /@reader/)
    t.is((await api.request(method, unsubscribeLink(organization, encodeId('sub', newId())))).status, 404)
  }
  await api.request('GET', `/o/${signToken(secret, { kind: 'open', ...ids })}.gif`, { headers: BROWSER })
  await api.settleVisits()
  const event = await row(
    em(),
    sql`select from subscriber_event where organization_id = ${organization.id} and type = 'EMAIL_OPENED'`,
  )
  t.is(event, null)
})

test('an erased address stays suppressed under its hash, until it is reactivated on purpose', async (t) => {
  const organization = await api.organization()
  const email = `Hash.${newId()}@reader.example`
  const { subscriber } = await organization.data('add_subscriber', { email })
  t.is((await erase(organization, email)).status, 200)
  const stored = await rows<{ key: string; reason: string }>(
    em(),
    sql`select email_key as key, reason from suppression where organization_id = ${organization.id}`,
  )
  t.is(stored.length, 1)
  t.is(stored[0]?.reason, 'ERASED')
  t.regex(stored[0]?.key ?? '', /^sha256:[0-9a-f]{64}$/)

  const refused = await send(organization, email.toUpperCase())
  t.is(refused.status, 409)
  const imported = await organization.data('import_subscribers', { subscribers: [{ email }] })
  t.is(imported.imported, 1)
  const again = await organization.data('get_subscriber', { email })
  t.not(again.subscriber.id, subscriber.id)
  t.is((await send(organization, email)).status, 409)
  const oldLink = unsubscribeLink(organization, subscriber.id)
  t.is((await api.request('GET', oldLink)).status, 200)
  await organization.data('reactivate_subscriber', { subscriberId: again.subscriber.id })
  t.is((await send(organization, email)).status, 200)
  t.is((await api.request('GET', oldLink)).status, 404, 'it would not tell the truth')
  const other = await api.organization()
  t.is((await send(other, email)).status, 200, 'the hash is of one organization')
})

test('a suppression outlives its person: by hand, by complaint and by hard bounce', async (t) => {
  const organization = await api.organization()
  for (const [status, reason, kept] of [
    ['BANNED', 'MANUAL', 'MANUAL'],
    ['COMPLAINED', null, 'COMPLAINT'],
    ['BOUNCED', 'HARD_BOUNCE', 'HARD_BOUNCE'],
    ['SUBSCRIBED', 'SOFT_BOUNCE', 'SOFT_BOUNCE'],
  ]) {
    const email = `s${newId()}@reader.example`
    await organization.data('add_subscriber', { email })
    await execute(em(), sql`update subscriber set status = ${status} where email = ${email}`)
    if (reason !== null) {
      await execute(
        em(),
        sql`insert into suppression (id, organization_id, email_key, reason, source)
          values (${newId()}, ${organization.id}, ${email}, ${reason}, 'test')`,
      )
    }
    t.is((await erase(organization, email)).status, 200)
    const found = await rows<{ reason: string }>(
      em(),
      sql`select reason from suppression where organization_id = ${organization.id}
        and email_key = any(suppression_keys(${organization.id}, ${email}))`,
    )
    t.deepEqual(found, [{ reason: kept ?? '' }])
    const { subscriber } = await organization.data('add_subscriber', { email })
    const answer = await organization.call('reactivate_subscriber', { subscriberId: subscriber.id })
    t.is(answer.status, kept === 'COMPLAINT' || kept === 'SOFT_BOUNCE' ? 200 : 409, kept ?? '')
  }
})

test('erasing twice, or many times at once, answers the same; whoever never was, is not found', async (t) => {
  const organization = await api.organization()
  const email = `twice${newId()}@reader.example`
  const { subscriber } = await organization.data('add_subscriber', { email })
  const answers = await Promise.all(Array.from({ length: 6 }, () => erase(organization, email)))
  for (const { status, body } of [...answers, await erase(organization, subscriber.id)]) {
    t.is(status, 200)
    t.deepEqual(body, { object: 'subscriber', id: subscriber.id, deleted: true })
  }
  const audits = await rows(
    em(),
    sql`select from audit_entry where organization_id = ${organization.id} and action = 'subscriber.erased'`,
  )
  t.is(audits.length, 1)
  const other = await api.organization()
  for (const name of [subscriber.id, email, 'sub_nonsense']) {
    const answer = await erase(other, name)
    t.is(answer.status, 404)
    t.is(answer.body.name, 'not_found')
  }
  const token = await organization.tokenWith(['emails'])
  const forbidden = await api.request('DELETE', `/api/v2/subscribers/${subscriber.id}`, { token })
  t.is(forbidden.status, 403)
})

test('an erasure that fails in the middle is undone as a whole, and the next one does it', async (t) => {
  const organization = await api.organization()
  const email = `crash${newId()}@reader.example`
  const { subscriber } = await organization.data('add_subscriber', { email, tags: ['vip'] })
  await send(organization, email)
  const state = () =>
    rows(
      em(),
      sql`select id::text, type as what, data::text as rest from subscriber_event where organization_id = ${organization.id}
        union all select id::text, recipient, status in ('QUEUED', 'SUBMITTING', 'SENT')::text from message
        where organization_id = ${organization.id} and recipient = ${email}
        union all select id::text, email, status from subscriber where organization_id = ${organization.id} order by 1`,
    )
  await eventually('the email', async () =>
    row(
      em(),
      sql`select from subscriber_event where organization_id = ${organization.id} and type = 'EMAIL_SENT'`,
    ),
  )
  const before = await state()
  await em().transactional(async (blocker) => {
    // The erasure waits here for its last row but one: everything before it is done but not committed.
    await execute(
      blocker,
      sql`insert into suppression (id, organization_id, email_key, reason, source) values (${newId()},
        ${organization.id}, erased_email_key(${organization.id}, ${email}), 'ERASED', 'test')`,
    )
    const erasing = erase(organization, email)
    await eventually('the erasure to wait and its statement to be cancelled', () =>
      row(
        em(),
        sql`select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database()
          and wait_event_type = 'Lock' and query like '%erased_email_key%' and pid <> pg_backend_pid()`,
      ),
    )
    t.true((await erasing).status >= 500)
    t.deepEqual(await state(), before)
  })
  t.is((await erase(organization, email)).status, 200)
  t.is((await organization.call('get_subscriber', { subscriberId: subscriber.id })).status, 404)
  t.deepEqual(await findings([email], organization.id), [])
})

test.serial(
  'nobody is mailed once their erasure has answered: while an email is handed over, it waits',
  async (t) => {
    const organization = await api.organization()
    const email = `leaving${newId()}@reader.example`
    const { subscriber } = await organization.data('add_subscriber', { email })
    const answer = Promise.withResolvers<void>()
    sink.behaviour = {
      onRecipient: (address) => (address === email ? { after: answer.promise, reply: 'accept' } : 'accept'),
    }
    const sent = await send(organization, email)
    const messageId = readId('eml', sent.body.id) ?? ''
    await eventually('the email to be under way', () =>
      row(em(), sql`select from delivery_queue where id = ${messageId} and submitting`),
    )
    const early = await erase(organization, email)
    answer.resolve()
    t.is(early.status, 503, JSON.stringify(early.body))
    t.regex(early.body.message, /being handed to a mail server.*repeat/)
    t.is((await organization.call('get_subscriber', { email })).status, 200, 'nothing was erased')

    await eventually('the erasure', async () => (await erase(organization, email)).status === 200)
    const answered = Date.now()
    t.deepEqual(await row(em(), sql`select status, recipient from message where id = ${messageId}`), {
      status: 'SENT',
      recipient: 'erased@erased.invalid',
    })
    await send(organization, `next${newId()}@reader.example`)
    const mails = sink.journal.filter(({ recipient }) => recipient === email)
    t.is(mails.length, 1)
    t.true((mails[0]?.time ?? Infinity) <= answered)
    t.is((await organization.call('get_subscriber', { subscriberId: subscriber.id })).status, 404)
    sink.behaviour = {}
  },
)

test.serial(
  'a campaign that reads an address just before it is erased leaves nothing of it, and does not use it',
  async (t) => {
    const organization = await api.organization()
    const email = `audience${newId()}@reader.example`
    const { subscriber } = await organization.data('add_subscriber', { email })
    await stack.lanes.stop()
    const {
      messageIds: [messageId],
    } = await campaignUnderWay(em(), organization.id, {
      from: 'a@b.example',
      people: [readId('sub', subscriber.id) ?? ''],
    })
    let erasing: Promise<Answer> | undefined
    let isErased = false
    const taken = await em().transactional(async (sender) => {
      const mails = await claimCampaignMails(sender, 1, 60_000)
      erasing = erase(organization, email).finally(() => (isErased = true))
      await Promise.race([waitsFor('pg_advisory_xact_lock'), eventually('the erasure', () => isErased)])
      return mails
    })
    t.is((await erasing)?.status, 200)
    t.deepEqual(
      taken.map(({ id, recipient }) => [id, recipient]),
      [[messageId, email]],
    )
    const { withheld } = await tick(
      em(),
      [],
      taken.map((mail) => ({ ...mail, targets: [] })),
      60_000,
    )
    t.like(withheld, [{ id: messageId, verdict: 'LOST' }], 'who has the address in hand may not use it')
    await stack.lanes.start()
    t.deepEqual(await findings([email], organization.id), [])
    t.deepEqual(await row(em(), sql`select status, reason from message where id = ${messageId}`), {
      status: 'SKIPPED',
      reason: 'ERASED',
    })
    t.false(sink.journal.some(({ recipient }) => recipient === email))
  },
)

test.serial(
  'erasing and recording what became of an email wait for each other, and neither is broken off',
  async (t) => {
    const organization = await api.organization()
    const email = `delayed${newId()}@reader.example`
    const { subscriber } = await organization.data('add_subscriber', { email })
    const [id, subscriberId] = [newId(), readId('sub', subscriber.id) ?? '']
    await execute(
      em(),
      sql`with made as (insert into message (id, organization_id, class, marketing, subscriber_id, recipient, from_email)
        values (${id}, ${organization.id}, 'AUTOMATION', true, ${subscriberId}, ${email}, 'a@b.example'))
      insert into delivery_queue (id, organization_id, lane, state, submitting, attempt, lease_until)
      values (${id}, ${organization.id}, 'bulk', 'claimed', true, 1, now() + interval '1 hour')`,
    )
    const scope = {
      organizationId: organization.id,
      actor: { kind: 'system', id: 'test', name: 'test' },
    } as const
    let attempts = 0
    let erasing: Promise<unknown> | undefined
    await unitOfWork(api.services, scope, async (call) => {
      await recordOutcomes(call.em, [delayed(id, organization.id, email, subscriberId)])
      erasing = unitOfWork(api.services, scope, (own) => {
        attempts += 1
        return eraseSubscriber(own, email)
      })
      await waitsFor('delivery_queue')
      await recordEvents(call, [{ type: 'EMAIL_DELIVERY_DELAYED', subscriberId }])
    })
    t.is(await erasing, subscriber.id)
    t.is(attempts, 1)
    t.deepEqual(await findings([email], organization.id), [])
  },
)

/** Returns the outcome of an email that the relay deferred. */
function delayed(id: string, organizationId: string, recipient: string, subscriberId: string): Outcome {
  return {
    id,
    organizationId,
    recipient,
    subscriberId,
    attempt: 1,
    batchId: null,
    kind: 'soft',
    delayMs: 3_600_000,
    subject: null,
    response: null,
    reason: null,
    category: null,
    ambiguous: false,
    data: {},
  }
}

test.serial('an email that comes while its recipient is being erased waits, and is refused', async (t) => {
  const organization = await api.organization()
  const email = `meanwhile${newId()}@reader.example`
  await organization.data('add_subscriber', { email })
  let erasing: Promise<Answer> | undefined
  let sending: Promise<Answer> | undefined
  let isAnswered = false
  const holding = em().transactional(async (blocker) => {
    await execute(
      blocker,
      sql`insert into suppression (id, organization_id, email_key, reason, source) values (${newId()},
        ${organization.id}, erased_email_key(${organization.id}, ${email}), 'ERASED', 'test')`,
    )
    erasing = erase(organization, email)
    await waitsFor('erased_email_key')
    sending = send(organization, email).finally(() => (isAnswered = true))
    await Promise.race([waitsFor('accept_transactional'), eventually('the answer', () => isAnswered)])
    throw new Error('let it go on')
  })
  await t.throwsAsync(holding, { message: 'let it go on' })
  t.is((await erasing)?.status, 200)
  t.is((await sending)?.status, 409)
  t.deepEqual(await findings([email], organization.id), [])
})

/** Waits until a statement that contains `words` is blocked by a lock. */
async function waitsFor(words: string): Promise<void> {
  await eventually(`"${words}" to wait`, () =>
    row(
      em(),
      sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
        and query like ${`%${words}%`} and pid <> pg_backend_pid()`,
    ),
  )
}
