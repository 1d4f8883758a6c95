import test, { type ExecutionContext } from 'ava'
import { sql } from 'kysely'
import pg from 'pg'

import { freePort } from '../scripts/services/ports.ts'
import { execute, rows } from '../src/database.ts'
import { signToken } from '../src/delivery/tracking-token.ts'
import { newId } from '../src/ids.ts'
import { createVisitWriter, type Visit } from '../src/public/visit-writer.ts'
import { startApi, type TestApi } from './helpers/api.ts'
import { endProcess, startProcess } from './helpers/child.ts'
import { eventually } from './helpers/eventually.ts'
import { services as shared } from './helpers/services.ts'

const CLIENTS = 8
const VISITS = 600
const BROWSER = { 'user-agent': 'Mozilla/5.0 Firefox/140.0' }

/** Returns an open of an email, as of now. */
function visitOf(of: Pick<Visit, 'organizationId' | 'messageId'>): Visit {
  return {
    ...of,
    id: newId(),
    position: null,
    url: null,
    isMachine: false,
    userAgent: 'Firefox',
    at: performance.now(),
  }
}

/** Creates an email that was sent a minute ago and returns its URLs. */
async function mailOf(api: TestApi) {
  const organization = await api.organization()
  const [messageId, subscriberId] = [newId(), newId()]
  const em = api.services.orm.em.fork()
  await execute(
    em,
    sql`insert into subscriber (id, organization_id, email, status)
      values (${subscriberId}, ${organization.id}, ${`${newId()}@reader.example`}, 'SUBSCRIBED')`,
  )
  await execute(
    em,
    sql`insert into message (id, organization_id, class, marketing, subscriber_id, recipient, from_email, status, sent_at)
      values (${messageId}, ${organization.id}, 'TRANSACTIONAL', false, ${subscriberId}, 'a@reader.example',
        'b@shop.example', 'SENT', now() - interval '1 minute')`,
  )
  await execute(
    em,
    sql`insert into link (organization_id, message_id, targets)
      values (${organization.id}, ${messageId}, array['https://shop.example/0', 'https://shop.example/1'])`,
  )
  const { secret } = api.services.config
  const ids = { organizationId: organization.id, messageId }
  return {
    ...ids,
    pixel: `/o/${signToken(secret, { kind: 'open', ...ids })}.gif`,
    links: [0, 1].map((position) => `/c/${signToken(secret, { kind: 'click', ...ids, position })}`),
  }
}

/**
 * Opens an email repeatedly until the API has ended. Returns how many visits were answered and how many stored, and
 * when each lost one was answered.
 */
async function visitUntilEnded(t: ExecutionContext, api: TestApi, pixel: string, signal: NodeJS.Signals) {
  const port = await freePort()
  const server = startProcess(api.services, 'api/main.ts', {
    env: { API_PORT: String(port), LOG_LEVEL: 'fatal' },
  })
  t.teardown(() => endProcess(server))
  const url = `http://127.0.0.1:${port}`
  await eventually('the API', async () => (await fetch(`${url}/healthz`)).ok, { withinMs: 60_000 })
  const answered = new Map<string, number>()
  const enough = Promise.withResolvers<void>()
  let number = 0
  async function client(): Promise<void> {
    for (;;) {
      const name = `Firefox/140.0 visit-${(number += 1)}`
      const status = await fetch(url + pixel, { headers: { 'user-agent': name } }).then(
        async (response) => {
          await response.arrayBuffer()
          return response.status
        },
        () => 0,
      )
      if (status !== 200) return
      answered.set(name, performance.now())
      if (answered.size === VISITS) enough.resolve()
    }
  }
  const clients = Array.from({ length: CLIENTS }, client)
  await enough.promise
  const endedAt = performance.now()
  await endProcess(server, signal)
  await Promise.all(clients)
  const found = await rows<{ name: string }>(
    api.services.orm.em.fork(),
    sql`select user_agent as name from pending_visit`,
  )
  const written = new Set(found.map(({ name }) => name))
  const lost = [...answered].filter(([name]) => !written.has(name))
  return { answered: answered.size, written: written.size, lost, endedAt }
}

test('an API that is killed with -9 loses no visit that was answered a second before', async (t) => {
  const api = await startApi()
  t.teardown(() => api.close())
  const { pixel, messageId } = await mailOf(api)
  const { answered, written, lost, endedAt } = await visitUntilEnded(t, api, pixel, 'SIGKILL')
  t.log(`${lost.length} of ${answered} were lost`)
  t.true(written > 0)
  for (const [name, at] of lost)
    t.true(at > endedAt - 1_000, `${name} was answered ${endedAt - at} ms before`)
  await api.settleVisits()
  const counted = await rows(
    api.services.orm.em.fork(),
    sql`select kind, people, machines from engagement where message_id = ${messageId}`,
  )
  t.deepEqual(counted, [{ kind: 'OPEN', people: written, machines: 0 }])
})

test('an API that is stopped in order loses none', async (t) => {
  const api = await startApi()
  t.teardown(() => api.close())
  const { lost } = await visitUntilEnded(t, api, (await mailOf(api)).pixel, 'SIGTERM')
  t.deepEqual(lost, [])
})

/** Returns functions that make this database unavailable, as if its server were down, and available again. */
async function createSwitch({ services }: TestApi) {
  const admin = new pg.Client({ connectionString: (await shared()).databaseUrl })
  await admin.connect()
  const name = new URL(services.databaseUrl).pathname.slice(1)
  return {
    async off() {
      await admin.query(`alter database ${name} with allow_connections false`)
      await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
    },
    async on() {
      await admin.query(`alter database ${name} with allow_connections true`)
    },
    close: () => admin.end(),
  }
}

test('while the database is away readers are answered, and what they did is written when it is back', async (t) => {
  const api = await startApi({ LOG_LEVEL: 'silent' })
  const database = await createSwitch(api)
  t.teardown(async () => {
    await api.close()
    await database.close()
  })
  const { pixel, links, messageId } = await mailOf(api)
  const visit = (path = '') => api.request('GET', path, { headers: BROWSER })
  t.is((await visit(links[0])).status, 302)
  await database.off()
  t.is((await visit(pixel)).status, 200)
  t.is((await visit(links[0])).headers.get('location'), 'https://shop.example/0')
  t.true((await visit(links[1])).status >= 500, 'nobody knows where it leads')
  await database.on()
  t.is((await visit(links[0])).status, 302)
  await api.settleVisits()
  const counted = await rows(
    api.services.orm.em.fork(),
    sql`select kind, people from engagement where message_id = ${messageId} order by kind`,
  )
  t.deepEqual(counted, [
    { kind: 'CLICK', people: 3 },
    { kind: 'LINK', people: 3 },
    { kind: 'OPEN', people: 1 },
  ])
})

test('a visit that the database rejects is dropped alone: the others of its batch are written, and counted once', async (t) => {
  const api = await startApi({ LOG_LEVEL: 'silent' })
  t.teardown(async () => await api.close())
  const { organizationId, messageId } = await mailOf(api)
  const writer = createVisitWriter(api.services)
  for (const id of [newId(), newId(), 'no uuid', newId(), newId()]) {
    await writer.add({ ...visitOf({ organizationId, messageId }), id })
  }
  await writer.stop()
  t.deepEqual(writer.counts(), { written: 4, dropped: 1, waiting: 0 })
})

test('a database that stays away costs bounded memory: 20,000 visits are kept, later ones dropped and counted', async (t) => {
  const api = await startApi({ LOG_LEVEL: 'silent' })
  const database = await createSwitch(api)
  t.teardown(async () => {
    await api.close()
    await database.close()
  })
  const { organizationId, messageId } = await mailOf(api)
  const writer = createVisitWriter(api.services)
  await database.off()
  const adding = Array.from({ length: 20_010 }, () => writer.add(visitOf({ organizationId, messageId })))
  t.like(writer.counts(), { waiting: 20_000, dropped: 10, written: 0 })
  await Promise.all(adding)
  await database.on()
  await eventually('all that were kept', () => writer.counts().written === 20_000)
  t.like(writer.counts(), { waiting: 0, dropped: 10 })
  await writer.stop()
})
