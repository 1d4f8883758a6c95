import type { ChildProcess } from 'node:child_process'
import { randomInt, randomUUID } from 'node:crypto'

import test from 'ava'
import { sql } from 'kysely'

import { freePort } from '../scripts/services/ports.ts'
import { row } from '../src/database.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { endProcess, startProcess } from './helpers/child.ts'
import { eventually } from './helpers/eventually.ts'
import { seededRandom } from './helpers/smtp-sink.ts'

/**
 * R5: a client that repeats a request with its Idempotency-Key until it is answered gets one effect and one id,
 * whatever becomes of the API in between.
 */
const REQUESTS = 300
const CLIENTS = 6
/** A crash and an upgrade by turns. */
const ENDS: readonly NodeJS.Signals[] = ['SIGKILL', 'SIGTERM', 'SIGKILL', 'SIGTERM']
const IN_PROGRESS = /IDEMPOTENCY_IN_PROGRESS|concurrent_idempotent_requests/
const BUYER = 'buyer@reader.example'

type Keyed = { key: string; path: string; body: object; idOf: (body: Ids) => string | undefined }
/** The places where the three operations tell an id. */
type Ids = { id?: string; data?: { subscriber?: { id: string }; event?: { id: string } } }

/** Equal numbers of people, payments and emails, each with an amount or address of its own. */
function keyedRequest(_: unknown, index: number): Keyed {
  const key = randomUUID()
  const email = `r${index}@reader.example`
  if (index % 3 === 0) {
    const body = { email, tags: ['kept'] }
    return { key, path: '/api/v2/tools/add_subscriber', body, idOf: ({ data }) => data?.subscriber?.id }
  }
  if (index % 3 === 1) {
    const body = { email: BUYER, eventType: 'SUBSCRIBER_PAYMENT', amount: index }
    return { key, path: '/api/v2/tools/create_event', body, idOf: ({ data }) => data?.event?.id }
  }
  const body = { to: email, subject: 'Your code', content: 'It is 1234' }
  return { key, path: '/api/v1/emails', body, idOf: ({ id }) => id }
}

test('an API that is killed and restarted under keyed requests loses none and does none twice', async (t) => {
  const seed = randomInt(1_000_000)
  t.log(`seed ${seed}`)
  const random = seededRandom(seed)
  // Once in each part of the requests, at an answer that the seed chooses: others are under way, and more to come.
  const part = Math.floor(REQUESTS / ENDS.length)
  const endsAt = new Map(
    ENDS.map((signal, turn) => [turn * part + 1 + Math.floor((random() * part) / 2), signal]),
  )

  const api = await startApi({ TEMPORAL_TASK_QUEUE: `restarts-${process.pid}` })
  const organization = await api.organization()
  await organization.data('add_subscriber', { email: BUYER })
  const port = await freePort()
  const requests = Array.from({ length: REQUESTS }, keyedRequest)
  const answers = new Map<string, string>()
  const repeated = { unreachable: 0, unavailable: 0, running: 0, unheard: 0 }
  let server = startServer(api, port)
  let restart: Promise<void> | undefined
  const leftAtRestart: number[] = []
  const unheard = new Set(requests.filter(() => random() < 0.2).map(({ key }) => key))

  async function send({ key, path, body }: Keyed): Promise<{ status: number; body: Ids } | undefined> {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${organization.token}`,
        'content-type': 'application/json',
        'idempotency-key': key,
      },
      body: JSON.stringify(body),
    }).catch(() => undefined)
    const text = await response?.text().catch(() => undefined)
    if (!response || text === undefined) repeated.unreachable += 1
    else if (response.status === 503) repeated.unavailable += 1
    // The statement of a process that died may run on for a moment, and holds the key.
    else if (IN_PROGRESS.test(text)) repeated.running += 1
    // Some answers are lost on the way.
    else if (unheard.delete(key)) repeated.unheard += 1
    // The three operations answer this.
    else return { status: response.status, body: JSON.parse(text) as Ids }
    return undefined
  }

  async function ask(request: Keyed): Promise<string> {
    const answer = await eventually(`an answer to ${request.path}`, () => send(request), { withinMs: 60_000 })
    const id = request.idOf(answer.body)
    if (answer.status !== 200 || !id) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`)
    return id
  }

  async function startAgain(signal: NodeJS.Signals): Promise<void> {
    await endProcess(server, signal)
    server = startServer(api, port)
    leftAtRestart.push(REQUESTS - answers.size)
  }

  const waiting = [...requests]
  async function client(): Promise<void> {
    for (let request = waiting.shift(); request; request = waiting.shift()) {
      const id = await ask(request)
      t.false(answers.has(request.key))
      answers.set(request.key, id)
      const signal = endsAt.get(answers.size)
      const before = restart
      if (signal) restart = Promise.resolve(before).then(() => startAgain(signal))
    }
  }

  try {
    await Promise.all(Array.from({ length: CLIENTS }, client))
    await restart
    t.is(leftAtRestart.length, ENDS.length)
    // Who asks without a pause does not keep the API from its end.
    t.true(Math.min(...leftAtRestart) > 0)
    t.log(`repeated ${JSON.stringify(repeated)}, left at restarts ${leftAtRestart.join()}`)
    t.true(repeated.unreachable > 0)
    t.is(new Set(answers.values()).size, REQUESTS)
    // Who asks once more, after all of it, is told the same.
    for (const request of requests) t.is(await ask(request), answers.get(request.key) ?? 'never answered')
    const third = REQUESTS / 3
    t.deepEqual(await effects(api, organization), {
      people: 2 * third + 1,
      tagged: third,
      payments: third,
      amounts: third,
      revenue: (third * (REQUESTS - 1)) / 2,
      emails: third,
      recipients: third,
      queued: third,
      keys: REQUESTS,
    })
  } finally {
    await restart
    await endProcess(server, 'SIGKILL')
    await api.close()
  }
})

/** What the requests left in the database, counted as rows and as different ones. */
async function effects({ services }: TestApi, { id }: TestOrganization) {
  const counted = await row<Record<string, number> & { keys: number }>(
    services.orm.em.fork(),
    sql`select (select count(*)::int from subscriber where organization_id = ${id}) as people,
      (select count(*)::int from subscriber_event where organization_id = ${id} and type = 'TAG_ADDED') as tagged,
      count(*)::int as payments, count(distinct data ->> 'amount')::int as amounts,
      (select sum(revenue)::int from subscriber_stat where organization_id = ${id}) as revenue,
      (select count(*)::int from message where organization_id = ${id}) as emails,
      (select count(distinct recipient)::int from message where organization_id = ${id}) as recipients,
      (select count(*)::int from delivery_queue where organization_id = ${id}) as queued,
      (select count(*)::int from idempotency_record where organization_id = ${id}) as keys
      from subscriber_event where organization_id = ${id} and type = 'SUBSCRIBER_PAYMENT'`,
  )
  if (!counted) throw new Error('a count is a row')
  return counted
}

/** The API as its own process; clients find out by themselves when it answers. */
function startServer({ services }: TestApi, port: number): ChildProcess {
  return startProcess(services, 'api/main.ts', { env: { API_PORT: String(port), LOG_LEVEL: 'fatal' } })
}
