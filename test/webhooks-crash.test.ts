import test, { type ExecutionContext } from 'ava'
import { sql } from 'kysely'

import { execute, row } from '../src/database.ts'
import { decodeId, newId } from '../src/ids.ts'
import { startWebhookTurns } from '../worker/webhook-turns.ts'
import { startApi } from './helpers/api.ts'
import { endProcess, startProcess } from './helpers/child.ts'
import { startEndpoints } from './helpers/endpoint.ts'
import { eventually } from './helpers/eventually.ts'

const EVENTS = 300

/** Creates a webhook with `EVENTS` pending events and no worker. */
async function makeWaiting(t: ExecutionContext) {
  const endpoints = await startEndpoints()
  t.teardown(() => endpoints.close())
  const api = await startApi(endpoints.allow)
  t.teardown(() => api.close())
  const organization = await api.organization()
  const em = api.services.orm.em.fork()
  const { body: hook } = await api.request('POST', '/api/v2/webhooks', {
    token: organization.token,
    body: { url: `${endpoints.url}/events`, eventTypes: ['EMAIL_SENT'] },
  })
  const id = decodeId('whk', hook.id)
  const { subscriber } = await organization.data('add_subscriber', { email: `${newId()}@reader.example` })
  await execute(
    em,
    sql`insert into subscriber_event (id, organization_id, subscriber_id, type)
      select new_id(), ${organization.id}, ${decodeId('sub', subscriber.id)}, 'EMAIL_SENT'
      from generate_series(1, ${EVENTS})`,
  )
  const counts = async () =>
    await row<{ all: number; delivered: number }>(
      em,
      sql`select count(*)::int as all, count(*) filter (where status = 'DELIVERED')::int as delivered
        from webhook_delivery where webhook_id = ${id}`,
    )
  return { endpoints, services: api.services, em, id, counts, told: () => endpoints.ids('/events') }
}

test('several workers tell each event once', async (t) => {
  const { services, counts, told } = await makeWaiting(t)
  const workers = [1, 2, 3].map(() => startWebhookTurns(services))
  await eventually('all', async () => (await counts())?.delivered === EVENTS)
  await Promise.all(workers.map((worker) => worker.stop()))
  t.deepEqual([told().length, new Set(told()).size, (await counts())?.all], [EVENTS, EVENTS, EVENTS])
})

test('a worker that stops waits for the answers to its last requests, and notes them', async (t) => {
  const { services, endpoints, counts, told } = await makeWaiting(t)
  const open: (() => void)[] = []
  endpoints.answer('/events', (response) => open.push(() => response.end()))
  const worker = startWebhookTurns(services, { graceMs: 25_000 })
  await eventually('the first requests', () => open.length === 8)
  const stopped = worker.stop()
  for (const answer of open) answer()
  await stopped
  t.deepEqual([told().length, (await counts())?.delivered], [8, 8])
})

test('a worker that is killed with -9 while it tells events loses none, and repeats one under the same id', async (t) => {
  const { services, endpoints, em, id, counts, told } = await makeWaiting(t)
  const env = endpoints.allow
  // Every eighth request stays open, so that the worker is killed with requests in progress.
  endpoints.answer('/events', (response, number) => {
    if (number < 100 || number % 8 !== 0) response.end()
  })
  const first = startProcess(services, 'test/helpers/webhook-process.ts', { env })
  t.teardown(() => endProcess(first))
  await eventually('it to be in the middle', () => told().length > 150, { withinMs: 60_000 })
  await endProcess(first)
  const before = new Set(told())
  t.true(before.size < EVENTS)
  t.true(((await counts())?.delivered ?? 0) < before.size, 'what was told is not all noted')

  endpoints.answer('/events', (response) => response.end())
  const second = startProcess(services, 'test/helpers/webhook-process.ts', { env })
  t.teardown(() => endProcess(second))
  // Ends the lease of the killed worker at once.
  await execute(em, sql`update webhook set lease_until = now() where id = ${id}`)
  await eventually('all', async () => (await counts())?.delivered === EVENTS, { withinMs: 60_000 })
  t.is(new Set(told()).size, EVENTS)
  t.is((await counts())?.all, EVENTS)
  t.log(`${told().length - EVENTS} of ${EVENTS} were told twice`)
  t.true(told().length - EVENTS <= 108, 'no more than one batch and what was open')
})
