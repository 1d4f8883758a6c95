import test from 'ava'
import { sql } from 'kysely'

import { freePort } from '../scripts/services/ports.ts'
import { execute, row, rows } from '../src/database.ts'
import { newId } from '../src/ids.ts'
import { type Answer, startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { endProcess, startProcess } from './helpers/child.ts'
import { eventually } from './helpers/eventually.ts'

/** Emails of one token that arrive together share a statement and a commit. Each must have the same result as alone. */
let api: TestApi

test.before(async () => {
  api = await startApi({ LANE_RATE_TRANSACTIONAL: '0' })
})
test.after.always(() => api?.close())

const em = () => api.services.orm.em.fork()

type Email = { to: string; subject?: string; content?: string; key?: string; token?: string }

async function send({ token }: TestOrganization, { key, ...email }: Email): Promise<Answer> {
  return await api.request('POST', '/api/v1/emails', {
    token: email.token ?? token,
    body: { subject: 'Hi', content: 'Hello', to: email.to },
    headers: key === undefined ? {} : { 'idempotency-key': key },
  })
}

async function sendTogether(organization: TestOrganization, emails: readonly Email[]): Promise<Answer[]> {
  return await Promise.all(emails.map((email) => send(organization, email)))
}

const readers = (count: number): Email[] =>
  Array.from({ length: count }, (_, number) => ({ to: `reader-${number}@reader.example` }))

async function recipients({ id }: TestOrganization): Promise<string[]> {
  const found = await rows<{ recipient: string }>(
    em(),
    sql`select m.recipient from message m join delivery_queue q on q.id = m.id
      join message_content c on c.organization_id = m.organization_id and c.message_id = m.id
      where m.organization_id = ${id} order by m.recipient`,
  )
  return found.map(({ recipient }) => recipient)
}

/** Returns the number of transactions in which an organization's emails were written. */
async function commits({ id }: TestOrganization): Promise<number> {
  const found = await row<{ commits: number }>(
    em(),
    sql`select count(distinct xmin::text)::int as commits from message where organization_id = ${id}`,
  )
  return found?.commits ?? 0
}

test('emails that come together share commits, and each has its own answer', async (t) => {
  const organization = await api.organization()
  const answers = await sendTogether(organization, readers(40))
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  t.is(new Set(answers.map(({ body }) => body.id)).size, 40)
  const to = readers(40).map((email) => email.to)
  t.deepEqual(await recipients(organization), to.toSorted())
  t.true((await commits(organization)) < 40)
})

test('what is refused of them leaves the others alone, and says why as it does alone', async (t) => {
  const organization = await api.organization()
  await execute(
    em(),
    sql`insert into suppression (id, organization_id, email_key, reason, source)
      values (${newId()}, ${organization.id}, 'reader-3@reader.example', 'COMPLAINT', 'test')`,
  )
  const alone = await send(organization, { to: 'reader-3@reader.example' })
  t.is(alone.status, 409)
  const answers = await sendTogether(organization, [...readers(12), { to: 'nobody' }])
  t.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 409, ...Array.from({ length: 8 }, () => 200), 422],
  )
  t.deepEqual(answers[3]?.body, alone.body)
  t.is((await recipients(organization)).length, 11)
})

test('the same key among them makes one email, and another body under it is refused', async (t) => {
  const organization = await api.organization()
  const same = Array.from({ length: 6 }, () => ({ to: 'ada@reader.example', key: 'one' }))
  const answers = await sendTogether(organization, [...same, { to: 'bob@reader.example', key: 'two' }])
  const [first] = answers
  for (const { status, body } of answers.slice(0, 6))
    t.like({ status, body }, { status: 200, body: first?.body })
  t.deepEqual(await recipients(organization), ['ada@reader.example', 'bob@reader.example'])
  const others = await sendTogether(organization, [
    { to: 'ada@reader.example', key: 'three' },
    { to: 'cay@reader.example', key: 'three' },
    { to: 'dan@reader.example', key: 'one' },
  ])
  t.is(others.filter(({ status }) => status === 200).length, 1)
  t.is(others[2]?.status, 409)
  t.is((await recipients(organization)).length, 3)
})

test('when the emails of the month end among them, exactly as many are accepted as there are', async (t) => {
  const organization = await api.organization({ customLimits: { requestsPerMinute: 0, emailsPerMonth: 7 } })
  const answers = await sendTogether(organization, readers(20))
  t.is(answers.filter(({ status }) => status === 200).length, 7)
  t.is(answers.filter(({ status, headers }) => status === 429 && headers.has('retry-after')).length, 13)
  t.is((await recipients(organization)).length, 7)
})

test('each token and each organization is judged by itself', async (t) => {
  const [one, other] = [await api.organization(), await api.organization()]
  const revoked = await one.tokenWith(['emails'])
  t.is((await send(one, { to: 'before@reader.example', token: revoked })).status, 200)
  await execute(
    em(),
    sql`update api_token set revoked_at = now()
      where organization_id = ${one.id} and cardinality(permissions) = 1`,
  )
  const [ofOne, ofOther, ofRevoked] = await Promise.all([
    sendTogether(one, readers(10)),
    sendTogether(
      other,
      readers(10).map((email) => ({ ...email, key: 'one and the same' })),
    ),
    sendTogether(
      one,
      readers(5).map((email) => ({ ...email, token: revoked })),
    ),
  ])
  t.deepEqual([...new Set(ofOne.map(({ status }) => status))], [200])
  t.is(ofOther.filter(({ status }) => status === 200).length, 1)
  t.deepEqual([...new Set(ofRevoked.map(({ status }) => status))], [401])
  t.is((await recipients(one)).length, 11)
  t.is((await recipients(other)).length, 1)
})

test('what the database rejects of them fails alone', async (t) => {
  const organization = await api.organization()
  await execute(
    em(),
    sql`create or replace function reject_poison() returns trigger language plpgsql as $$
      begin
        if new.recipient = 'poison@reader.example' then raise exception 'rejected'; end if;
        return new;
      end $$`,
  )
  await execute(
    em(),
    sql`create trigger poison before insert on message for each row execute function reject_poison()`,
  )
  const emails = [...readers(5), { to: 'poison@reader.example' }, ...readers(10).slice(5)]
  const answers = await sendTogether(organization, emails)
  t.deepEqual(
    answers.map(({ status }) => status),
    emails.map(({ to }) => (to.startsWith('poison') ? 500 : 200)),
  )
  t.is((await recipients(organization)).length, 10)
})

test('one that waits for what others hold keeps nobody waiting', async (t) => {
  const organization = await api.organization()
  t.is((await send(organization, { to: 'held@reader.example' })).status, 200)
  let held: Promise<Answer> | undefined
  let isAnswered = false
  await em().transactional(async (holder) => {
    await execute(
      holder,
      sql`select from subscriber where organization_id = ${organization.id} and email_key = 'held@reader.example'
        for update`,
    )
    const answers = sendTogether(organization, readers(10))
    held = send(organization, { to: 'held@reader.example' }).finally(() => (isAnswered = true))
    t.deepEqual([...new Set((await answers).map(({ status }) => status))], [200])
    t.deepEqual(
      [...new Set((await sendTogether(organization, readers(10))).map(({ status }) => status))],
      [200],
    )
    t.false(isAnswered)
  })
  t.is((await held)?.status, 200)
  t.is((await recipients(organization)).length, 22)
})

test('kill -9 in the middle of many neither loses what was answered nor doubles what is repeated', async (t) => {
  const organization = await api.organization()
  const port = await freePort()
  const server = startProcess(api.services, 'api/main.ts', {
    env: { API_PORT: String(port), LOG_LEVEL: 'fatal' },
  })
  t.teardown(() => endProcess(server))
  const url = `http://127.0.0.1:${port}/api/v1/emails`
  await eventually('the API', async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok, {
    withinMs: 60_000,
  })
  const emails = readers(150).map((email, number) => ({ ...email, key: `email ${number}` }))
  const answered = new Map<string, string>()
  await Promise.all(
    emails.map(async ({ to, key }) => {
      try {
        const answer = await fetch(url, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${organization.token}`,
            'content-type': 'application/json',
            'idempotency-key': key,
          },
          body: JSON.stringify({ to, subject: 'Hi', content: 'Hello' }),
        })
        answered.set(key, Object(await answer.json()).id)
      } catch {
        return
      }
      await endProcess(server)
    }),
  )
  t.true(answered.size > 0)
  // The database aborts what the killed process began, which frees the idempotency keys after a moment.
  const answers = await eventually('no key to be in use', async () => {
    const found = await sendTogether(organization, emails)
    return found.every(({ status }) => status === 200) ? found : null
  })
  for (const [place, { key }] of emails.entries()) {
    t.is(answers[place]?.body.id, answered.get(key) ?? answers[place]?.body.id)
  }
  t.deepEqual(await recipients(organization), emails.map(({ to }) => to).toSorted())
})
