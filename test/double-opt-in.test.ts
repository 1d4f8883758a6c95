import { createHash } from 'node:crypto'

import test from 'ava'
import { sql } from 'kysely'

import { execute, json, row, rows } from '../src/database.ts'
import { type Lanes, startLanes } from '../src/delivery/lanes.ts'
import { signToken } from '../src/delivery/tracking-token.ts'
import { STANDARD_CONFIRMATION } from '../src/domain/subscribers/double-opt-in.ts'
import { newId, readId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import { mailText } from './helpers/mail-text.ts'
import { QUICK } from './helpers/mailroom.ts'
import { type Sink, startSmtpSink } from './helpers/smtp-sink.ts'
import { publishWorkflow } from './helpers/workflow.ts'

let api: TestApi
let sink: Sink
let lanes: Lanes
let organization: TestOrganization

test.before(async () => {
  sink = await startSmtpSink()
  api = await startApi({ RELAY_URL: sink.url, TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8' })
  lanes = await startLanes(api.services, { workerName: 'test', lane: QUICK, reviveMs: 50 })
  organization = await api.organization({ doubleOptIn: true })
})
test.after.always(async () => {
  await lanes?.stop()
  await api?.close()
  await sink?.close()
})

type Mail = { id: string; raw: string; link: string }

const em = () => api.services.orm.em.fork()

function emailOf(): string {
  return `p${newId().replaceAll('-', '')}@reader.example`
}

/** Waits for `count` emails to an address and returns them, oldest first, each with its confirmation link. */
async function mailsTo(email: string, count: number): Promise<Mail[]> {
  const found = await eventually(`${count} emails`, async () => {
    const sent = await rows<{ id: string }>(
      em(),
      sql`select id from message where recipient = ${email} and status = 'SENT' order by id`,
    )
    return sent.length >= count && sent
  })
  const mails = sink.accepted().map(({ raw }) => mailText(raw))
  return found.map(({ id }) => {
    const pattern = new RegExp(`/s/${tokenOf(id).slice(0, 40)}[A-Za-z0-9_-]+`)
    const raw = mails.find((mail) => pattern.test(mail)) ?? ''
    return { id, raw, link: pattern.exec(raw)?.[0] ?? '' }
  })
}

/** Returns the common beginning of all confirmation tokens of a message: kind, organization and message. */
function tokenOf(messageId: string): string {
  const { secret } = api.services.config
  const token = {
    kind: 'confirm',
    organizationId: organization.id,
    messageId,
    subscriberId: newId(),
  } as const
  return signToken(secret, token)
}

async function ask(email: string, input: object = {}): Promise<{ id: string; status: string }> {
  return (await organization.data('add_subscriber', { email, ...input })).subscriber
}

async function statusOf(email: string): Promise<string> {
  return (await organization.data('get_subscriber', { email })).subscriber.status
}

async function subscriptions(email: string): Promise<{ data: Record<string, unknown>; cause: object }[]> {
  return (await organization.data('list_subscriber_events', { email, eventType: 'SUBSCRIBED' })).events
}

async function pending(email = emailOf()): Promise<{ id: string; email: string; mail: Mail }> {
  const { id } = await ask(email)
  const [mail] = await mailsTo(email, 1)
  if (!mail) throw new Error('no mail')
  return { id, email, mail }
}

async function publishWelcome(): Promise<void> {
  await publishWorkflow(organization, [
    { id: 'start', type: 'TRIGGER', config: { type: 'SUBSCRIBED' } },
    { id: 'wait', type: 'WAIT', config: { amount: 1, unit: 'DAYS' } },
  ])
}

const BROWSER = { 'user-agent': 'Mozilla/5.0 Firefox/140.0' }

test('a newcomer gets an email, opening its link changes nothing, and its button subscribes them once', async (t) => {
  await publishWelcome()
  const { email, mail } = await pending()
  t.is(await statusOf(email), 'PENDING_CONFIRMATION')
  t.regex(mail.raw, /Subject: Please confirm your subscription/)
  t.notRegex(mail.raw, /\/[co]\/[A-Za-z0-9_-]{60,}/, 'nothing is counted in it')
  t.notRegex(mail.raw, /List-Unsubscribe/)

  for (const method of ['GET', 'HEAD', 'GET']) {
    const page = await api.request(method, mail.link, { headers: BROWSER })
    t.is(page.status, 200)
    if (method === 'GET') t.regex(page.body, /<form method="post" action="\/s\/[^"]+"><button/)
    t.is(page.headers.get('cache-control'), 'no-store')
    t.is(page.headers.get('referrer-policy'), 'no-referrer')
    t.false(String(page.body).includes(email), 'the page does not show the whole address')
  }
  t.is(await statusOf(email), 'PENDING_CONFIRMATION')
  t.deepEqual(await subscriptions(email), [])

  const answers = await Promise.all(
    Array.from({ length: 8 }, () =>
      api.request('POST', mail.link, {
        headers: { ...BROWSER, 'x-forwarded-for': '198.51.100.9, 203.0.113.7, 10.1.2.3' },
      }),
    ),
  )
  for (const { status, body } of answers) {
    t.is(status, 200)
    t.regex(body, /You are subscribed/)
  }
  t.regex((await api.request('GET', mail.link)).body, /You are subscribed/)
  t.is(await statusOf(email), 'SUBSCRIBED')
  const [event, ...more] = await subscriptions(email)
  t.deepEqual(more, [])
  t.like(event?.cause, { kind: 'public', name: 'Confirmation link' })
  const { subject, markdown } = STANDARD_CONFIRMATION
  t.deepEqual(event?.data, {
    from: 'PENDING_CONFIRMATION',
    confirmation: {
      emailId: (await organization.data('get_subscriber_emails', { email })).emails[0].id,
      ipAddress: '203.0.113.7',
      userAgent: BROWSER['user-agent'],
      textHash: `sha256:${createHash('sha256').update(`${subject}\n${markdown}`).digest('hex')}`,
    },
  })
  const found = await row<{ confirmed: boolean; runs: number }>(
    em(),
    sql`select confirmed_at is not null as confirmed, (select count(*)::int from automation_run run
        where run.organization_id = s.organization_id and run.subscriber_id = s.id) as runs
      from subscriber s where organization_id = ${organization.id} and email = ${email}`,
  )
  t.deepEqual(found, { confirmed: true, runs: 1 })
})

test('adding somebody again sends at most one email an hour, and every link within seven days works', async (t) => {
  const { email, mail } = await pending()
  await Promise.all([ask(email), ask(email, { name: 'Ada' }), ask(email)])
  const count = async () =>
    (
      await row<{ count: number }>(
        em(),
        sql`select count(*)::int as count from message where recipient = ${email}`,
      )
    )?.count
  t.is(await count(), 1)
  await execute(
    em(),
    sql`update subscriber set confirmation_requested_at = now() - interval '61 minutes' where email = ${email}`,
  )
  await Promise.all([ask(email), ask(email), ask(email)])
  t.is(await count(), 2)
  const [, second] = await mailsTo(email, 2)
  t.not(second?.link, mail.link)
  t.is((await api.request('POST', mail.link)).status, 200)
  t.is(await statusOf(email), 'SUBSCRIBED')
  t.regex((await api.request('GET', second?.link ?? '')).body, /You are subscribed/)
  await ask(email)
  t.is(await count(), 2)
})

test('a link older than seven days says so and subscribes nobody', async (t) => {
  const { email, mail } = await pending()
  await execute(
    em(),
    sql`update message set created_at = now() - interval '7 days 1 minute' where id = ${mail.id}`,
  )
  for (const method of ['GET', 'POST']) {
    const page = await api.request(method, mail.link)
    t.is(page.status, 410)
    t.regex(page.body, /expired/)
    t.notRegex(page.body, /<form/)
  }
  t.is(await statusOf(email), 'PENDING_CONFIRMATION')
  t.deepEqual(await subscriptions(email), [])
})

test('no changed token confirms, nor one of another kind or organization', async (t) => {
  const { id, email, mail } = await pending()
  const token = mail.link.slice('/s/'.length)
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const changed = new Set<string>([token.slice(0, -1), `${token}A`, token.toLowerCase(), ''])
  for (let index = 0; index < token.length; index++) {
    for (const offset of [1, 13, 32, 63]) {
      const letter = alphabet[(alphabet.indexOf(token.charAt(index)) + offset) % 64]
      changed.add(`${token.slice(0, index)}${letter}${token.slice(index + 1)}`)
    }
  }
  const { secret } = api.services.config
  const subscriberId = readId('sub', id) ?? ''
  const other = await api.organization({ doubleOptIn: true })
  const ids = { organizationId: organization.id, messageId: mail.id, subscriberId }
  changed.add(signToken(secret, { kind: 'unsubscribe', ...ids }))
  changed.add(signToken(secret, { kind: 'confirm', ...ids, organizationId: other.id }))
  changed.add(signToken(secret, { kind: 'confirm', ...ids, messageId: newId() }))
  changed.add(signToken(secret, { kind: 'confirm', ...ids, subscriberId: newId() }))
  changed.add(signToken('another secret', { kind: 'confirm', ...ids }))
  t.true(changed.size > 300)
  for (const wrong of changed) {
    t.is((await api.request('POST', `/s/${wrong}`)).status, 404, wrong)
  }
  t.is(await statusOf(email), 'PENDING_CONFIRMATION')
  t.is((await api.request('POST', `/u/${token}`)).status, 404, 'and it does not unsubscribe')
  t.is((await api.request('POST', mail.link)).status, 200)
})

test('a new address is asked anew, and the link that went to the old one is dead', async (t) => {
  const { id, email, mail } = await pending()
  const moved = emailOf()
  await organization.data('update_subscriber', { subscriber: id, name: 'Only a name' })
  await organization.data('update_subscriber', { subscriber: id, email: moved })
  const [second] = await mailsTo(moved, 1)
  t.is((await api.request('POST', mail.link)).status, 404)
  t.is(await statusOf(moved), 'PENDING_CONFIRMATION')
  t.is((await api.request('POST', second?.link ?? '')).status, 200)
  t.is(await statusOf(moved), 'SUBSCRIBED')
  t.not(email, moved)
})

test('who unsubscribed, bounced or was banned meanwhile is not subscribed by an old link', async (t) => {
  for (const status of ['UNSUBSCRIBED', 'BOUNCED', 'BANNED', 'COMPLAINED', 'TRANSACTIONAL']) {
    const { email, mail } = await pending()
    await execute(em(), sql`update subscriber set status = ${status} where email = ${email}`)
    t.is((await api.request('GET', mail.link)).status, 404)
    t.is((await api.request('POST', mail.link)).status, 404)
    t.is(await statusOf(email), status)
  }
})

test('a TRANSACTIONAL recipient who is added is asked too; skipDoubleOptIn asks nobody', async (t) => {
  const email = emailOf()
  const sent = await api.request('POST', '/api/v1/emails', {
    token: organization.token,
    body: { to: email, subject: 'Receipt', content: 'Thank you.' },
  })
  t.is(sent.status, 200)
  t.is((await ask(email)).status, 'PENDING_CONFIRMATION')
  await eventually('both emails', async () => {
    const found = await rows(em(), sql`select from message where recipient = ${email} and status = 'SENT'`)
    return found.length === 2
  })
  const skipped = emailOf()
  t.is((await ask(skipped, { skipDoubleOptIn: true })).status, 'SUBSCRIBED')
  const [event] = await subscriptions(skipped)
  t.deepEqual(event?.data, {}, 'no evidence is written')
  t.is((await organization.data('get_subscriber_emails', { email: skipped })).emails.length, 0)
})

test('the organization writes the email; a text without {{confirmUrl}} gets the link added', async (t) => {
  const own = await api.organization({ doubleOptIn: true })
  for (const [markdown, links] of [
    ['Bonjour **{{org-name}}**, [oui]({{ confirmUrl }})', 1],
    ['Without any link', 1],
    ["{{confirmUrl | 'x'}} and [again]({{confirmUrl}})", 2],
  ] as const) {
    const email = emailOf()
    await execute(
      em(),
      sql`update organization set confirmation_email = ${json({ subject: 'Un clic, {{name}}', markdown })} where id = ${own.id}`,
    )
    await own.data('add_subscriber', { email, name: 'Ada\u2028X' })
    const raw = await eventually('the email', () =>
      sink
        .accepted()
        .map((mail) => mailText(mail.raw))
        .find((mail) => mail.includes(`<${email}>`)),
    )
    t.regex(raw, /Subject: Un clic, Ada X/)
    t.is([...raw.matchAll(/href="[^"]*\/s\/[A-Za-z0-9_-]{60,}"/g)].length, links, markdown)
  }
})

test('without a sender on a verified domain nobody is added, and the answer says how to repair it', async (t) => {
  const own = await api.organization({ doubleOptIn: true })
  await execute(em(), sql`update domain set status = 'PENDING' where organization_id = ${own.id}`)
  const email = emailOf()
  const answer = await own.call('add_subscriber', { email })
  t.is(answer.status, 409)
  t.is(answer.body.code, 'WRONG_STATE')
  t.regex(answer.body.error, /create_email_sender.*skipDoubleOptIn/)
  t.is((await own.call('get_subscriber', { email })).status, 404)
  t.is((await own.call('add_subscriber', { email, skipDoubleOptIn: true })).status, 200)
})

test('a suppressed address is not written to, and the ledger says why', async (t) => {
  const email = emailOf()
  await execute(
    em(),
    sql`insert into suppression (id, organization_id, email_key, reason, source)
      values (${newId()}, ${organization.id}, ${email}, 'COMPLAINT', 'test')`,
  )
  t.is((await ask(email)).status, 'PENDING_CONFIRMATION')
  await eventually('the decision', async () =>
    row(
      em(),
      sql`select from decision join message on message.id = decision.message_id
        where message.recipient = ${email} and decision.reason = 'SUPPRESSED'`,
    ),
  )
  // Once the address is allowed again, a new request is sent at once, without the usual interval.
  const { id } = await ask(email)
  await organization.confirmed('reactivate_subscriber', { subscriberId: id, force: true })
  await ask(email)
  const [mail] = await mailsTo(email, 1)
  t.truthy(mail?.link)
})

test('a custom field cannot take the name of the link', async (t) => {
  const answer = await organization.call('add_subscriber', { email: emailOf(), fields: { ConfirmURL: 'x' } })
  t.is(answer.status, 400)
  t.regex(answer.body.error, /confirmUrl/)
})

test('from whom X-Forwarded-For is not trusted, it does not count', async (t) => {
  const strict = await startApi()
  t.teardown(() => strict.close())
  const own = await strict.organization({ doubleOptIn: true })
  const email = emailOf()
  const { subscriber } = await own.data('add_subscriber', { email })
  const found = await row<{ id: string }>(
    strict.services.orm.em.fork(),
    sql`select id from message where recipient = ${email}`,
  )
  const token = signToken(strict.services.config.secret, {
    kind: 'confirm',
    organizationId: own.id,
    messageId: found?.id ?? '',
    subscriberId: readId('sub', subscriber.id) ?? '',
  })
  await strict.request('POST', `/s/${token}`, { headers: { 'x-forwarded-for': '203.0.113.7' } })
  const { events } = await own.data('list_subscriber_events', { email, eventType: 'SUBSCRIBED' })
  t.is(events[0].data.confirmation.ipAddress, '127.0.0.1')
})
