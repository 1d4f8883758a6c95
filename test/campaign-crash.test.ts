import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { fileURLToPath } from 'node:url'

import test from 'ava'
import { sql } from 'kysely'

import { execute, row } from '../src/database.ts'
import { decodeId } from '../src/ids.ts'
import { startApi } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import { seededRandom, startSmtpSink } from './helpers/smtp-sink.ts'

const RECIPIENTS = 600
const KILLS = 5
const CONNECTIONS = 4

test('a worker that is killed with -9 again and again in a send loses nobody and repeats no more than was under way', async (t) => {
  const seed = randomInt(1_000_000)
  t.log(`seed ${seed}`)
  const random = seededRandom(seed)
  const sink = await startSmtpSink({ onMessage: () => ({ afterMs: 10, reply: 'accept' }) })
  const env = {
    TEMPORAL_TASK_QUEUE: `campaign-crash-${process.pid}`,
    RELAY_URL: sink.url,
    CONNECTIONS: String(CONNECTIONS),
  }
  const api = await startApi(env)
  const organization = await api.organization()
  const em = () => api.services.orm.em.fork()
  await execute(
    em(),
    sql`insert into subscriber (id, organization_id, email, status)
      select new_id(), ${organization.id}, 'reader-' || n || '@reader.example', 'SUBSCRIBED'
      from generate_series(1, ${RECIPIENTS}::int) n`,
  )
  const { campaign } = await organization.data('create_campaign', {
    subject: 'News',
    contentType: 'MARKDOWN',
    content: 'Hi {{email}}, [leave]({{unsubscribeUrl}}).',
  })
  const progress = async () =>
    (await organization.data('get_campaign_progress', { campaignId: campaign.id })).progress
  let worker = start()
  try {
    await organization.confirmed('schedule_campaign', { campaignId: campaign.id })
    // The first kill is somewhere between being due and the first email, the others among the emails.
    await eventually('the campaign to begin', async () => (await progress()).status === 'SENDING')
    for (let kill = 0; kill < KILLS; kill++) {
      const after = kill === 0 ? 0 : Math.floor(((kill - 1 + random()) * RECIPIENTS) / KILLS)
      await eventually(`${after} emails`, () => sink.accepted().length >= after, {
        withinMs: 60_000,
        everyMs: 5,
      })
      const now = await progress()
      t.is(now.status, 'SENDING', `kill ${kill} came too late`)
      await killed(worker)
      worker = start()
    }
    await eventually('the campaign to be sent', async () => (await progress()).status === 'SENT', {
      withinMs: 120_000,
      everyMs: 200,
    })
  } finally {
    await killed(worker)
  }
  const done = await progress()
  t.like(done, { total: RECIPIENTS, sent: RECIPIENTS, queued: 0, failed: 0, skipped: {} })
  const addresses = new Set(sink.accepted().map(({ recipient }) => recipient))
  t.is(addresses.size, RECIPIENTS)
  const repeated = sink.accepted().length - RECIPIENTS
  t.log(`${repeated} of ${RECIPIENTS} were repeated, ${done.ambiguousResent} are counted as possibly so`)
  t.true(repeated <= KILLS * CONNECTIONS)
  t.true(repeated <= done.ambiguousResent)
  const ids = new Map(sink.accepted().map(({ recipient, messageId }) => [recipient, messageId]))
  t.true(sink.accepted().every(({ recipient, messageId }) => ids.get(recipient) === messageId))
  const stored = await row<{ messages: number; people: number; events: number; waiting: number }>(
    em(),
    sql`select count(*)::int as messages, count(distinct subscriber_id)::int as people,
        (select count(*)::int from subscriber_event where organization_id = ${organization.id}
          and type = 'EMAIL_SENT') as events,
        (select count(*)::int from delivery_queue where organization_id = ${organization.id}) as waiting
      from message where organization_id = ${organization.id} and campaign_id = ${decodeId('cmp', campaign.id)}`,
  )
  t.deepEqual(stored, { messages: RECIPIENTS, people: RECIPIENTS, events: RECIPIENTS, waiting: 0 })
  await api.close()
  await sink.close()

  function start(): ChildProcess {
    const { temporal } = api.services.config
    return spawn(process.execPath, [fileURLToPath(new URL('helpers/worker-process.ts', import.meta.url))], {
      env: {
        ...process.env,
        DATABASE_URL: api.services.databaseUrl,
        TEMPORAL_ADDRESS: temporal.address,
        TEMPORAL_NAMESPACE: temporal.namespace,
        LANE_RATE_BULK: '0',
        LOG_LEVEL: 'error',
        ...env,
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }
})

async function killed(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null || worker.signalCode !== null) return
  const gone = new Promise((resolve) => worker.once('exit', resolve))
  worker.kill('SIGKILL')
  await gone
}
