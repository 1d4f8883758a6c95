import test from 'ava'
import { sql } from 'kysely'

import { execute, row, rows } from '../src/database.ts'
import { startLanes } from '../src/delivery/lanes.ts'
import { MessageTokens, readToken, signToken, type TrackingToken } from '../src/delivery/tracking-token.ts'
import { encodeId, newId, readId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import { mailText } from './helpers/mail-text.ts'
import { QUICK } from './helpers/mailroom.ts'
import { type Sink, startSmtpSink } from './helpers/smtp-sink.ts'

const BROWSER = {
  'user-agent': 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:140.0) Gecko/20100101 Firefox/140.0',
}

type Post = { api: TestApi; sink: Sink; organization: TestOrganization; close(): Promise<void> }

async function openPost(env: Record<string, string> = {}): Promise<Post> {
  const sink = await startSmtpSink()
  const api = await startApi({ RELAY_URL: sink.url, ...env })
  const lanes = await startLanes(api.services, { workerName: 'test', lane: QUICK, reviveMs: 50 })
  return {
    api,
    sink,
    organization: await api.organization(),
    async close() {
      await lanes.stop()
      await api.close()
      await sink.close()
    },
  }
}

/**
 * Sends an email and returns its URLs. The email is made older, because visits soon after sending count as machines'.
 */
async function delivered({ api, sink, organization }: Post, body: Record<string, unknown> = {}) {
  const answer = await api.request('POST', '/api/v1/emails', {
    token: organization.token,
    body: {
      to: `${newId().slice(-12)}@reader.example`,
      subject: 'News',
      content: '[One](https://shop.example/1?a=1&b=2) and [two](https://shop.example/2)',
      ...body,
    },
  })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  const id = readId('eml', answer.body.id) ?? ''
  const em = api.services.orm.em.fork()
  await eventually(
    'the email',
    async () =>
      (await row<{ status: string }>(em, sql`select status from message where id = ${id}`))?.status ===
      'SENT',
  )
  await execute(em, sql`update message set sent_at = now() - interval '1 minute' where id = ${id}`)
  const sent = sink.accepted().find(({ messageId }) => messageId.includes(answer.body.id))
  const raw = sent ? mailText(sent.raw) : ''
  const pathOf = (door: string) =>
    [...raw.matchAll(new RegExp(`/${door}/[A-Za-z0-9_-]{60,}(?:\\.gif)?`, 'g'))].map(([path]) => path)
  const found = await row<{ subscriberId: string }>(
    em,
    sql`select subscriber_id as "subscriberId" from message where id = ${id}`,
  )
  return {
    id,
    raw,
    subscriberId: found?.subscriberId ?? '',
    clicks: [...new Set(pathOf('c'))],
    pixel: pathOf('o')[0] ?? '',
    leave: pathOf('u')[0] ?? '',
  }
}

async function eventsOf({ api }: Post, subscriberId: string): Promise<string[]> {
  const found = await rows<{ type: string }>(
    api.services.orm.em.fork(),
    sql`select type from subscriber_event where subscriber_id = ${subscriberId} and type <> 'EMAIL_SENT' order by id`,
  )
  return found.map(({ type }) => type)
}

test.serial('a followed link leads to its frozen target and is recorded once for each link', async (t) => {
  const post = await openPost()
  t.teardown(() => post.close())
  const mail = await delivered(post)
  const [first = '', second = ''] = mail.clicks
  const answer = await post.api.request('GET', first, { headers: BROWSER })
  t.is(answer.status, 302)
  t.is(answer.headers.get('location'), 'https://shop.example/1?a=1&b=2')
  await post.api.settleVisits()
  t.deepEqual(await eventsOf(post, mail.subscriberId), ['EMAIL_CLICKED'])
  const again = await Promise.all(
    Array.from({ length: 8 }, () => post.api.request('GET', first, { headers: BROWSER })),
  )
  t.true(again.every(({ status }) => status === 302))
  await post.api.settleVisits()
  t.deepEqual(await eventsOf(post, mail.subscriberId), ['EMAIL_CLICKED'])
  await execute(
    post.api.services.orm.em.fork(),
    sql`update tracking_event set created_at = now() - interval '5 seconds' where message_id = ${mail.id}`,
  )
  await post.api.request('GET', second, { headers: BROWSER })
  await post.api.settleVisits()
  t.deepEqual(await eventsOf(post, mail.subscriberId), ['EMAIL_CLICKED', 'EMAIL_CLICKED'])
  const stat = await row(
    post.api.services.orm.em.fork(),
    sql`select open_count as opens, click_count as clicks from subscriber_stat where subscriber_id = ${mail.subscriberId}`,
  )
  t.deepEqual(stat, { opens: 0, clicks: 2 })
})

test.serial('machines are written down and move nothing', async (t) => {
  const post = await openPost()
  t.teardown(() => post.close())
  const mail = await delivered(post)
  const [first = ''] = mail.clicks
  for (const agent of ['', 'Mozilla/5.0', 'BarracudaCentral', 'Googlebot/2.1', 'python-requests/2.31']) {
    await post.api.request('GET', mail.pixel, { headers: { 'user-agent': agent } })
    const answer = await post.api.request('GET', first, { headers: { 'user-agent': agent } })
    t.is(answer.status, 302)
  }
  t.is((await post.api.request('HEAD', first, { headers: BROWSER })).status, 302)
  await execute(
    post.api.services.orm.em.fork(),
    sql`update message set sent_at = now() where id = ${mail.id}`,
  )
  await post.api.request('GET', mail.pixel, { headers: BROWSER })
  await post.api.settleVisits()
  t.deepEqual(await eventsOf(post, mail.subscriberId), [])
  const counted = await row<{ visits: number; people: number }>(
    post.api.services.orm.em.fork(),
    sql`select count(*)::int as visits, count(*) filter (where human)::int as people from tracking_event`,
  )
  t.deepEqual(counted, { visits: 12, people: 0 })
})

test.serial('an opened email is counted once, and the pixel is never cached', async (t) => {
  const post = await openPost()
  t.teardown(() => post.close())
  const mail = await delivered(post)
  for (let visit = 0; visit < 3; visit++) {
    const answer = await post.api.request('GET', mail.pixel, { headers: BROWSER })
    t.is(answer.headers.get('content-type'), 'image/gif')
    t.regex(answer.headers.get('cache-control') ?? '', /no-store/)
    t.regex(answer.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
  }
  const pixel = await fetch(post.api.url + mail.pixel, { headers: BROWSER })
  const bytes = Buffer.from(await pixel.arrayBuffer()).toString('base64')
  t.is(bytes, 'R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7')
  const asked = await fetch(post.api.url + mail.pixel, { method: 'HEAD', headers: BROWSER })
  t.is(asked.headers.get('content-length'), '42')
  await post.api.settleVisits()
  t.deepEqual(await eventsOf(post, mail.subscriberId), ['EMAIL_OPENED'])
})

test.serial('tracking false counts nothing: no pixel, and links stand as they are', async (t) => {
  const post = await openPost()
  t.teardown(() => post.close())
  const mail = await delivered(post, { tracking: false })
  t.is(mail.pixel, '')
  t.deepEqual(mail.clicks, [])
  t.regex(mail.raw, /https:\/\/shop\.example\/2/)
})

test.serial(
  'GET never unsubscribes; POST does, in every spelling, without a redirect and as often as one likes',
  async (t) => {
    const post = await openPost()
    t.teardown(() => post.close())
    const statusOf = async (id: string) =>
      (
        await row<{ status: string }>(
          post.api.services.orm.em.fork(),
          sql`select status from subscriber where id = ${id}`,
        )
      )?.status
    const form = new FormData()
    form.set('List-Unsubscribe', 'One-Click')
    const bodies = [new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }), form, undefined]
    for (const body of bodies) {
      const mail = await delivered(post)
      const url = post.api.url + mail.leave
      await execute(
        post.api.services.orm.em.fork(),
        sql`update subscriber set status = 'SUBSCRIBED' where id = ${mail.subscriberId}`,
      )
      for (const method of ['GET', 'HEAD', 'GET']) {
        const page = await fetch(url, { method })
        t.is(page.status, 200)
        t.regex(page.headers.get('content-security-policy') ?? '', /form-action 'self'/)
      }
      t.is(await statusOf(mail.subscriberId), 'SUBSCRIBED')
      for (let time = 0; time < 2; time++) {
        const done = await fetch(url, { method: 'POST', redirect: 'manual', ...(body && { body }) })
        t.is(done.status, 200)
        t.regex(await done.text(), /You are unsubscribed/)
      }
      t.is(await statusOf(mail.subscriberId), 'UNSUBSCRIBED')
      t.deepEqual(await eventsOf(post, mail.subscriberId), ['UNSUBSCRIBED'])
    }
  },
)

test.serial('the online view shows the email in a sandbox', async (t) => {
  const post = await openPost()
  t.teardown(() => post.close())
  const mail = await delivered(post, { content: 'Read this [online]({{onlineUrl}}).' })
  const path = /\/v\/[A-Za-z0-9_-]{60,}/.exec(mail.raw)?.[0] ?? ''
  const page = await post.api.request('GET', path, { headers: BROWSER })
  t.is(page.status, 200)
  t.regex(page.headers.get('content-security-policy') ?? '', /^sandbox /)
  t.regex(page.body, /Read this/)
})

test.serial('a token with any letter changed opens no door, and changes nothing', async (t) => {
  const post = await openPost()
  t.teardown(() => post.close())
  const mail = await delivered(post)
  const { secret } = post.api.services.config
  const em = post.api.services.orm.em.fork()
  await execute(
    em,
    sql`update subscriber set status = 'SUBSCRIBED', confirmation_requested_at = now() where id = ${mail.subscriberId}`,
  )
  const ids = { organizationId: post.organization.id, messageId: mail.id, subscriberId: mail.subscriberId }
  const doors = [
    { door: 'c', kind: 'click', methods: ['GET', 'HEAD'] },
    { door: 'o', kind: 'open', methods: ['GET', 'HEAD'] },
    { door: 'u', kind: 'unsubscribe', methods: ['GET', 'POST'] },
    { door: 'v', kind: 'view', methods: ['GET'] },
    { door: 's', kind: 'confirm', methods: ['GET', 'POST'] },
  ] as const
  const tokens = new Map(doors.map(({ kind }) => [kind, signToken(secret, { kind, ...ids, position: 0 })]))
  const spoilt: { method: string; path: string }[] = []
  for (const { door, kind, methods } of doors) {
    const token = tokens.get(kind) ?? ''
    t.truthy(readToken(secret, kind, token))
    const others = [...tokens].filter(([other]) => other !== kind).map(([, other]) => other)
    const wrong = [
      ...others,
      `${token}A`,
      token.slice(1),
      token.slice(0, -1),
      signToken('another secret', { kind, ...ids, position: 0 }),
    ]
    for (let at = 0; at < token.length; at++) {
      const letter = LETTERS[(at * 7 + 3) % LETTERS.length]
      if (token[at] !== letter) wrong.push(token.slice(0, at) + letter + token.slice(at + 1))
    }
    for (const method of methods) {
      for (const text of wrong) spoilt.push({ method, path: `/${door}/${text}${door === 'o' ? '.gif' : ''}` })
    }
  }
  t.true(spoilt.length > 500)
  for (const { method, path } of spoilt) {
    const answer = await post.api.request(method, path, { headers: BROWSER })
    // The pixel is served for any token.
    t.is(answer.status, path.startsWith('/o/') ? 200 : 404, `${method} ${path}`)
  }
  for (const door of ['u', 's']) {
    const path = `/${door}/${tokens.get(door === 'u' ? 'unsubscribe' : 'confirm')}`
    for (const method of ['GET', 'HEAD']) await post.api.request(method, path, { headers: BROWSER })
  }
  const other = await post.api.organization()
  const crossed = { kind: 'click', organizationId: other.id, messageId: mail.id, position: 0 } as const
  t.is((await post.api.request('GET', `/c/${signToken(secret, crossed)}`, { headers: BROWSER })).status, 404)
  await post.api.settleVisits()
  t.deepEqual(await eventsOf(post, mail.subscriberId), [])
  const left = await row(
    em,
    sql`select status, confirmed_at as confirmed, (select count(*)::int from tracking_event) as visits
      from subscriber where id = ${mail.subscriberId}`,
  )
  t.deepEqual(left, { status: 'SUBSCRIBED', confirmed: null, visits: 0 })
})

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const SIGNED: TrackingToken[] = (() => {
  const ids = { organizationId: newId(), messageId: newId() }
  return [
    { kind: 'click', ...ids, position: 0 },
    { kind: 'click', ...ids, position: 15 },
    { kind: 'click', ...ids, position: 16 },
    { kind: 'click', ...ids, position: 70_000 },
    { kind: 'open', ...ids },
    { kind: 'unsubscribe', ...ids, subscriberId: newId() },
    { kind: 'view', ...ids },
    { kind: 'confirm', ...ids, subscriberId: newId() },
  ]
})()

test('a signed token is read back as it was signed, and not with any letter changed or under another secret', (t) => {
  for (const signed of SIGNED) {
    const token = signToken('a secret', signed)
    t.deepEqual(readToken('a secret', signed.kind, token), signed)
    t.is(readToken('another secret', signed.kind, token), null)
    const taken = [...token].flatMap((right, at) =>
      [...LETTERS].filter((letter) => {
        const mutated = token.slice(0, at) + letter + token.slice(at + 1)
        return letter !== right && readToken('a secret', signed.kind, mutated)
      }),
    )
    t.deepEqual(taken, [], signed.kind)
    for (const text of ['', token.slice(1), token.slice(0, -1), `${token}A`, `${token}=`, `${token}\n`]) {
      t.is(readToken('a secret', signed.kind, text), null)
    }
  }
})

test('a token opens the door of its own kind only, and its tag fits no other message, person or link', (t) => {
  const tokens = new Set(SIGNED.map((signed) => signToken('a secret', signed)))
  for (const signed of SIGNED) {
    const token = signToken('a secret', signed)
    for (const kind of ['click', 'open', 'unsubscribe', 'view', 'confirm'] as const) {
      if (kind !== signed.kind) t.is(readToken('a secret', kind, token), null)
    }
    const changes: Partial<Record<string, string | number>>[] = [
      { organizationId: newId() },
      { messageId: newId() },
      ...('position' in signed
        ? [{ position: signed.position + 1 }, { position: signed.position + 16 }]
        : []),
      ...('subscriberId' in signed ? [{ subscriberId: newId() }] : []),
    ]
    const tail = token.slice(-16)
    for (const change of changes) {
      const other = signToken('a secret', { ...signed, ...change })
      t.not(other.slice(-16), tail)
      t.is(readToken('a secret', signed.kind, other.slice(0, -16) + tail), null)
      tokens.add(other)
    }
  }
  t.is(new Set([...tokens].map((token) => token.slice(-16))).size, tokens.size)
})

test('tokens of two messages may be made by turns', (t) => {
  const [one, other] = [newId(), newId()].map((messageId) => ({ organizationId: newId(), messageId }))
  if (!one || !other) return t.fail()
  const [first, second] = [new MessageTokens('a secret', one), new MessageTokens('a secret', other)]
  const made = [first.click(3), second.click(3), first.open(), second.view(), first.click(20), first.click(4)]
  t.deepEqual(made, [
    signToken('a secret', { kind: 'click', ...one, position: 3 }),
    signToken('a secret', { kind: 'click', ...other, position: 3 }),
    signToken('a secret', { kind: 'open', ...one }),
    signToken('a secret', { kind: 'view', ...other }),
    signToken('a secret', { kind: 'click', ...one, position: 20 }),
    signToken('a secret', { kind: 'click', ...one, position: 4 }),
  ])
})

test.serial(
  'v1 accepts from a verified domain or the default sender, and refuses everything else by name',
  async (t) => {
    const post = await openPost()
    t.teardown(() => post.close())
    const { api, organization } = post
    const send = (body: Record<string, unknown>) =>
      api.request('POST', '/api/v1/emails', {
        token: organization.token,
        body: { to: 'lin@reader.example', subject: 'Hi', content: 'Hello', ...body },
      })
    const accepted = await send({
      from: `"Shop, Ltd" <shop@${organization.domain.toUpperCase()}>`,
      replyTo: 'a@b.example',
    })
    t.is(accepted.status, 200)
    t.like(accepted.body, { success: true })
    t.regex(accepted.body.id, /^eml_/)
    t.deepEqual(Object.keys(accepted.body).toSorted(), ['id', 'message', 'success'])
    t.is((await send({})).status, 200)
    t.is((await send({ from: 'a@elsewhere.example' })).status, 403)
    t.is((await send({ from: 'nobody' })).status, 422)
    t.is((await send({ to: 'nobody' })).status, 422)
    t.is((await send({ subject: 'a\nb' })).status, 422)
    t.regex((await send({ contentType: 'TIPTAP' })).body.message, /content is text that is not JSON/)
    t.is((await send({ attachments: [] })).status, 422)

    const em = api.services.orm.em.fork()
    const person = await row<{ status: string }>(
      em,
      sql`select status from subscriber where email_key = 'lin@reader.example'`,
    )
    t.is(person?.status, 'TRANSACTIONAL')
    for (const status of ['BANNED', 'COMPLAINED']) {
      await execute(em, sql`update subscriber set status = ${status}`)
      t.is((await send({})).status, 409)
    }
    await execute(em, sql`update subscriber set status = 'BOUNCED', bounce_category = 'NO_SUCH_USER'`)
    t.is((await send({})).status, 409)
    await execute(em, sql`update subscriber set status = 'SUBSCRIBED', bounce_category = null`)
    await execute(
      em,
      sql`insert into suppression (id, organization_id, email_key, reason, source)
      values (${newId()}, ${organization.id}, 'lin@reader.example', 'MANUAL', 'test')`,
    )
    t.is((await send({})).status, 409)
    await execute(em, sql`update domain set status = 'DEGRADED'`)
    t.is((await send({ to: 'new@reader.example' })).status, 403)
    const nobody = await row(em, sql`select id from subscriber where email_key = 'new@reader.example'`)
    t.is(nobody, null)
  },
)

test.serial('a repeated Idempotency-Key sends one email, and a minute of backlog is refused', async (t) => {
  const sink = await startSmtpSink()
  const api = await startApi({ RELAY_URL: sink.url, LANE_RATE_TRANSACTIONAL: '1' })
  t.teardown(async () => {
    await api.close()
    await sink.close()
  })
  const organization = await api.organization()
  const send = (key: string) =>
    api.request('POST', '/api/v1/emails', {
      token: organization.token,
      headers: { 'idempotency-key': key },
      body: { to: 'lin@reader.example', subject: 'Hi', content: 'Hello' },
    })
  const [one, two] = [await send('a'), await send('a')]
  t.is(one.body.id, two.body.id)
  await execute(
    api.services.orm.em.fork(),
    sql`insert into delivery_queue (id, organization_id, lane)
      select new_id(), ${organization.id}, 'transactional' from generate_series(1, 61)`,
  )
  const refused = await eventually('the backlog to be seen', async () => {
    const answer = await send(encodeId('evt', newId()))
    return answer.status === 429 && answer
  })
  t.truthy(refused.headers.get('retry-after'))
  const again = await send('a')
  t.deepEqual([again.status, again.body.id], [200, one.body.id], 'what was accepted is not refused later')
})

test.serial(
  'of a minute of backlog only those are refused who have more than their part in it',
  async (t) => {
    const sink = await startSmtpSink()
    const api = await startApi({ RELAY_URL: sink.url, LANE_RATE_TRANSACTIONAL: '1' })
    t.teardown(async () => {
      await api.close()
      await sink.close()
    })
    const [flooding, second, quiet] = await Promise.all([
      api.organization(),
      api.organization(),
      api.organization(),
    ])
    const send = async ({ token }: { token: string }) => {
      const body = { to: 'lin@reader.example', subject: 'Hi', content: 'Hello' }
      return (await api.request('POST', '/api/v1/emails', { token, body })).status
    }
    const enqueue = (id: string, emails: number) =>
      execute(
        api.services.orm.em.fork(),
        sql`insert into delivery_queue (id, organization_id, lane)
        select new_id(), ${id}, 'transactional' from generate_series(1, ${emails}::int)`,
      )
    await enqueue(flooding.id, 500)
    await eventually('the flood to be refused', async () => (await send(flooding)) === 429)
    t.is(await send(second), 200)
    t.is(await send(quiet), 200)
    // Three organizations share the sixty emails per minute, so each may have twenty waiting.
    await enqueue(second.id, 20)
    await eventually('who has more than a third to be refused', async () => (await send(second)) === 429)
    t.is(await send(quiet), 200)
    await execute(
      api.services.orm.em.fork(),
      sql`delete from delivery_queue where organization_id = ${flooding.id}`,
    )
    await eventually('all to be taken again', async () => (await send(second)) === 200)
    t.is(await send(flooding), 200)
  },
)
