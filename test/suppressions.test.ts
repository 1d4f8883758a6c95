import anyTest, { type TestFn } from 'ava'
import { sql } from 'kysely'

import { row } from '../src/database.ts'
import { encodeId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

const test = anyTest as TestFn<{ api: TestApi; organization: TestOrganization }>

test.before(async (t) => {
  const api = await startApi()
  t.context = { api, organization: await api.organization() }
})
test.after.always(async (t) => {
  await t.context.api?.close()
})

async function done(answer: Promise<{ status: number; body: { data?: unknown } }>) {
  const { status, body } = await answer
  if (status !== 200) throw new Error(JSON.stringify(body))
  // oxlint-disable-next-line typescript/no-explicit-any -- assertions reach into answers of every shape
  return body.data as any
}

test('a suppression by hand bans, blocks every email, and only its removal lifts it', async (t) => {
  const { api, organization } = t.context
  const email = 'Ada@Reader.example'
  const { subscriber } = await organization.data('add_subscriber', { email })
  const asked = await organization.call('add_suppression', { email })
  t.is(asked.status, 428)
  t.regex(asked.body.summary.effects[0], /becomes BANNED/)
  t.deepEqual(await done(organization.confirmed('add_suppression', { email })), {
    added: 1,
    known: 0,
    errors: [],
  })

  const status = async () =>
    (await organization.data('get_subscriber', { subscriberId: subscriber.id })).subscriber.status
  t.is(await status(), 'BANNED')
  const { events } = await organization.data('list_subscriber_events', { subscriberId: subscriber.id })
  t.like(events[0], { type: 'FIELD_UPDATED', data: { field: 'status', from: 'SUBSCRIBED', to: 'BANNED' } })
  const send = () =>
    api.request('POST', '/api/v1/emails', {
      token: organization.token,
      body: { to: email, subject: 'Hello', content: 'Hi' },
    })
  t.is((await send()).status, 409)
  const added = await row<{ id: string }>(
    api.services.orm.em.fork(),
    sql`select id from suppression where organization_id = ${organization.id} and email_key = ${email.toLowerCase()}`,
  )
  t.is(
    (await organization.call('reactivate_subscriber', { subscriberId: subscriber.id, force: true })).status,
    409,
  )
  t.deepEqual(await done(organization.confirmed('add_suppression', { email })), {
    added: 0,
    known: 1,
    errors: [],
  })

  const { suppressions } = await organization.data('list_suppressions', { reason: 'MANUAL' })
  t.true(suppressions.some((each: { email: string }) => each.email === 'ada@reader.example'))
  t.like(await done(organization.confirmed('remove_suppression', { email: 'ADA@reader.example' })), {
    reason: 'MANUAL',
  })
  const removed = await row<{ target: string }>(
    api.services.orm.em.fork(),
    sql`select target from audit_entry
      where organization_id = ${organization.id} and action = 'suppression.removed'`,
  )
  t.is(removed?.target, encodeId('sup', added?.id ?? ''))
  t.is(await status(), 'UNSUBSCRIBED', 'consent does not come back by itself')
  t.is((await send()).status, 200, 'transactional email goes to whoever left')
  t.is((await organization.call('remove_suppression', { email })).status, 404)
})

test('a list from elsewhere: good lines count, bad ones are told by their place, people move by the reason', async (t) => {
  const { organization } = t.context
  const { subscriber } = await organization.data('add_subscriber', { email: 'gone@reader.example' })
  const input = {
    emails: ['gone@reader.example', 'nobody', 'GONE@reader.example', 'other@reader.example'],
    reason: 'HARD_BOUNCE',
  }
  const result = await done(organization.confirmed('import_suppressions', input))
  t.like(result, { added: 2, known: 1 })
  t.deepEqual(
    result.errors.map(({ index, email }: { index: number; email: string }) => [index, email]),
    [[1, 'nobody']],
  )
  const read = await organization.data('get_subscriber', { subscriberId: subscriber.id })
  t.is(read.subscriber.status, 'BOUNCED')
  const reactivate = (force?: boolean) =>
    organization.call('reactivate_subscriber', { subscriberId: subscriber.id, ...(force && { force }) })
  t.is((await reactivate()).status, 409)
  t.is((await reactivate(true)).status, 200)

  await done(organization.confirmed('import_suppressions', { emails: ['other@reader.example'] }))
  const { suppressions } = await organization.data('list_suppressions', {})
  const other = suppressions.find((each: { email: string }) => each.email === 'other@reader.example')
  t.like(other, { reason: 'MANUAL', source: 'import' }, 'what is done by hand is told as such')
  for (const emails of [[], Array.from({ length: 1_001 }, () => 'a@b.example')]) {
    t.is((await organization.call('import_suppressions', { emails })).status, 400)
  }
  t.is((await organization.call('add_suppression', { email: 'nobody' })).status, 400)
})

test('the list goes on by its cursor and shows nothing of others; nobody lifts what is not theirs', async (t) => {
  const { api } = t.context
  const [own, foreign] = [await api.organization(), await api.organization()]
  const emails = Array.from({ length: 5 }, (_, at) => `s${at}@reader.example`)
  await done(own.confirmed('import_suppressions', { emails }))
  const first = await own.data('list_suppressions', { limit: 3 })
  t.true(first.hasMore)
  const second = await own.data('list_suppressions', { limit: 3, cursor: first.nextCursor })
  const listed = new Set([...first.suppressions, ...second.suppressions].map(({ email }) => email))
  t.true(emails.every((email) => listed.has(email)))
  t.is(first.suppressions.length + second.suppressions.length, 5)
  t.false(second.hasMore)
  t.is((await own.call('list_suppressions', { reason: 'MANUAL', cursor: first.nextCursor })).status, 400)

  t.deepEqual((await foreign.data('list_suppressions', {})).suppressions, [])
  const [theirs, nobodys] = [
    await foreign.call('remove_suppression', { email: 's0@reader.example' }),
    await foreign.call('remove_suppression', { email: 's9@reader.example' }),
  ]
  t.is(theirs.status, 404)
  t.is(theirs.body.error.replace('s0@', 's9@'), nobodys.body.error)
})

test('an address of another script is the same in capitals: for the person, the suppression and the refusal', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  await organization.data('add_subscriber', { email: 'Jürgen.ÉTÉ@reader.example' })
  const again = await organization.data('add_subscriber', { email: 'JÜRGEN.été@reader.example', name: 'J' })
  t.is(again.subscriber.email, 'Jürgen.ÉTÉ@reader.example')
  t.is((await organization.data('list_subscribers', { query: 'jürgen' })).subscribers.length, 1)
  await done(organization.confirmed('add_suppression', { email: 'JÜRGEN.ÉTÉ@READER.example' }))
  const { status, body } = await api.request('POST', '/api/v1/emails', {
    token: organization.token,
    body: { to: 'jürgen.été@reader.example', subject: 'Hi', content: 'Hello' },
  })
  t.is(status, 409, JSON.stringify(body))
})

test('an address that others answer to is ASCII before its @', async (t) => {
  const { api } = t.context
  const organization = await api.organization()
  const mail = { to: 'jürgen@reader.example', subject: 'Hi', content: 'Hello' }
  const send = (body: object) => api.request('POST', '/api/v1/emails', { token: organization.token, body })
  t.is((await send(mail)).status, 200)
  const answers = await send({ ...mail, replyTo: 'jürgen@shop.example' })
  t.is(answers.status, 422)
  t.regex(answers.body.message, /replyTo .*beyond ASCII/)
  t.is((await send({ ...mail, from: `jürgen@${organization.domain}` })).status, 422)
})
