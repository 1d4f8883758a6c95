import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'

import { sql } from 'kysely'

import { freePort } from '../scripts/services/ports.ts'
import { row } from '../src/database.ts'
import { startApi, type TestApi, type TestOrganization } from '../test/helpers/api.ts'
import { endProcess, startProcess } from '../test/helpers/child.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { atOnce, type Claim, defineExperiment, is } from './experiment.ts'

const IN_PROGRESS = /IDEMPOTENCY_IN_PROGRESS|concurrent_idempotent_requests/
const BUYER = 'buyer@reader.example'
/** A crash and an upgrade alternate. */
const ENDS: readonly NodeJS.Signals[] = ['SIGKILL', 'SIGTERM']

type Keyed = { key: string; path: string; body: object; idOf: (body: Ids) => string | undefined }
/** The members in which the three operations return an id. */
type Ids = { id?: string; data?: { subscriber?: { id: string }; event?: { id: string } } }

/**
 * A client that repeats a request with its Idempotency-Key until it is answered gets one effect and one id, whatever
 * happens to the API in between.
 */
export const restartedApi = defineExperiment({
  id: 'R5',
  title: 'the API is killed and upgraded by turns under keyed requests',
  sizes: {
    small: { requests: 180, clients: 6, restarts: 4, unheard: 0.2 },
    full: { requests: 30_000, clients: 12, restarts: 20, unheard: 0.05 },
  },
  async run(lab, { requests: count, clients, restarts, unheard: unheardShare }) {
    // One restart in each part of the requests, at a random answer, while other requests are in progress and more
    // follow.
    const part = Math.floor(count / restarts)
    const endsAt = new Map(
      Array.from({ length: restarts }, (_, turn) => {
        const at = turn * part + 1 + Math.floor((lab.random() * part) / 2)
        return [at, ENDS[turn % ENDS.length] ?? 'SIGKILL'] as const
      }),
    )
    const api = await startApi({ TEMPORAL_TASK_QUEUE: `faults-${process.pid}` })
    lab.defer(() => api.close())
    const organization = await api.organization()
    await organization.data('add_subscriber', { email: BUYER })
    const port = await freePort()
    const requests = Array.from({ length: count }, keyedRequest)
    const unheard = new Set(requests.filter(() => lab.random() < unheardShare).map(({ key }) => key))
    const answers = new Map<string, string>()
    const repeated = { unreachable: 0, unavailable: 0, running: 0, unheard: 0 }
    let server = startServer(api, port)
    lab.defer(() => endProcess(server))
    let restart: Promise<void> = Promise.resolve()
    const leftAtRestart: number[] = []

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
      // The statement of a killed process may run on for a moment and still holds the key.
      else if (IN_PROGRESS.test(text)) repeated.running += 1
      // The client ignores some answers, as if they were lost.
      else if (unheard.delete(key)) repeated.unheard += 1
      // The three operations answer in this shape.
      else return { status: response.status, body: JSON.parse(text) as Ids }
      return undefined
    }

    async function ask(request: Keyed): Promise<string> {
      const answer = await eventually(`an answer to ${request.path}`, () => send(request), {
        withinMs: 120_000,
      })
      const id = request.idOf(answer.body)
      if (answer.status !== 200 || !id) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`)
      return id
    }

    async function startAgain(signal: NodeJS.Signals): Promise<void> {
      await endProcess(server, signal)
      server = startServer(api, port)
      leftAtRestart.push(count - answers.size)
      lab.say(`restart ${leftAtRestart.length} of ${restarts} after ${answers.size} of ${count} answers`)
    }

    const waiting = requests.values()
    async function client(): Promise<void> {
      for (const request of waiting) {
        answers.set(request.key, await ask(request))
        const signal = endsAt.get(answers.size)
        if (signal) restart = restart.then(() => startAgain(signal))
      }
    }
    await atOnce(clients, client)
    await restart

    // At the end, repeating a request must return the same answer.
    let changed = 0
    for (const request of requests) if ((await ask(request)) !== answers.get(request.key)) changed += 1
    return {
      injected: {
        'kills and upgrades': leftAtRestart.length,
        'answers that nobody heard': repeated.unheard,
        'requests that reached nobody': repeated.unreachable,
      },
      seen: { answers: answers.size, 'different ids': new Set(answers.values()).size },
      claims: [
        is('restarts while requests were left', leftAtRestart.filter((left) => left > 0).length, restarts),
        is('answered', answers.size, count),
        is('different ids', new Set(answers.values()).size, count),
        is('told another id when asked again', changed, 0),
        ...(await judgeEffects(api, organization, count)),
      ],
    }
  },
})

/** Returns the request with this index. The three kinds alternate; each request has an amount or address of its own. */
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

/** Counts the effects of the requests in the database, as rows and as distinct values. */
async function judgeEffects(
  { services }: TestApi,
  { id }: TestOrganization,
  requests: number,
): Promise<Claim[]> {
  const counted = await row<Record<string, number>>(
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
  const third = requests / 3
  const expected = {
    people: 2 * third + 1,
    tagged: third,
    payments: third,
    amounts: third,
    revenue: (third * (requests - 1)) / 2,
    emails: third,
    recipients: third,
    queued: third,
    keys: requests,
  }
  return Object.entries(expected).map(([name, count]) => is(`effects: ${name}`, counted?.[name] ?? -1, count))
}

/** Starts the API as a separate process. It does not wait: clients retry until it answers. */
function startServer({ services }: TestApi, port: number): ChildProcess {
  return startProcess(services, 'api/main.ts', { env: { API_PORT: String(port), LOG_LEVEL: 'fatal' } })
}
