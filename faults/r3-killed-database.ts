import { createServer } from 'node:http'

import { sql } from 'kysely'

import { createApp } from '../api/app.ts'
import type { Postgres } from '../scripts/services/postgres.ts'
import { readConfig } from '../src/config.ts'
import { column, execute, migrate, row, rows } from '../src/database.ts'
import { returnPathOf } from '../src/delivery/return-path.ts'
import { seedDevelopment } from '../src/development.ts'
import { newId } from '../src/ids.ts'
import { createServices, type Services } from '../src/services.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { listenOnLoopback } from '../test/helpers/listen.ts'
import { openInbound, openSubmission, readReportFile } from '../test/helpers/reports.ts'
import { startOwnPostgres, scratchDirectory } from '../test/helpers/services.ts'
import { type Speaker, Talk } from '../test/helpers/smtp-talk.ts'
import { atOnce, defineExperiment, is } from './experiment.ts'

const SENDER = 'hello@postloom.test'
/** After this many refusals the database is considered away and is started again. */
const REFUSALS = 3

type Door = 'SMTP' | 'API' | 'inbound'
type Work = { door: Door; at: number }

/**
 * Kills PostgreSQL while clients repeat each request with its key until it is answered. Everything acknowledged must
 * exist at the end, and nothing may be acknowledged while there is no database.
 */
export const killedDatabase = defineExperiment({
  id: 'R3',
  title: 'kill -9 PostgreSQL under SMTP submission, inbound reports and the API',
  sizes: {
    small: { requests: 90, clients: 3, kills: 3 },
    full: { requests: 6_000, clients: 12, kills: 10 },
  },
  async run(lab, { requests: count, clients, kills }) {
    const directory = scratchDirectory('postgres')
    let postgres = await startOwnPostgres({ directory })
    lab.defer(() => postgres.stop())
    const config = readConfig({
      ...process.env,
      DATABASE_URL: postgres.url,
      LANE_RATE_TRANSACTIONAL: '0',
      LOG_LEVEL: 'silent',
    })
    await migrate(config)
    const { apiToken: token } = await seedDevelopment(config)
    const services = await createServices(config, 'faults')
    lab.defer(() => services.close())
    const server = createServer({ keepAliveTimeout: 120_000 }, createApp(services).callback())
    const port = await listenOnLoopback(server)
    lab.defer(async () => {
      server.close()
      server.closeAllConnections()
    })
    const url = `http://127.0.0.1:${port}`
    const [submission, inbound] = [await openSubmission(services, url), await openInbound(services, url)]
    lab.defer(() => submission.close())
    lab.defer(() => inbound.close())

    const doors = ['SMTP', 'API', 'inbound'] as const
    const work = Array.from({ length: count }, (_, at): Work => ({ door: doors[at % 3] ?? 'API', at }))
    const reported = await makeSent(services, work)
    const part = Math.floor(count / kills)
    const killsAt = new Set(
      Array.from({ length: kills }, (_, turn) => turn * part + 1 + Math.floor((lab.random() * part) / 2)),
    )
    const acknowledged = new Map<Door, Set<number>>(doors.map((door) => [door, new Set()]))
    const times: { from: number; to: number }[] = []
    const outages: { from: number; to: number }[] = []
    let refused = 0
    let total = 0
    let crash: Promise<void> = Promise.resolve()

    async function kill(): Promise<void> {
      await crashPostgres(services, postgres)
      const from = performance.now()
      const before = refused
      await eventually('refusals', () => refused >= before + REFUSALS, { withinMs: 120_000, everyMs: 5 })
      outages.push({ from, to: performance.now() })
      postgres = await startOwnPostgres({ directory, port: postgres.port })
      lab.say(`kill ${outages.length} of ${kills} after ${total} of ${count} acknowledgements`)
    }

    const waiting = work.values()
    async function client(): Promise<void> {
      const talks = { SMTP: talkTo(submission, token), inbound: talkTo(inbound, null) }
      for (const each of waiting) {
        const once = async (): Promise<boolean> => {
          const from = performance.now()
          const isTaken = await ask(url, token, talks, each, reported.get(each.at) ?? '')
          if (isTaken) times.push({ from, to: performance.now() })
          else refused += 1
          return isTaken
        }
        await eventually(`an answer at ${each.door}`, once, { withinMs: 300_000, everyMs: 50 })
        acknowledged.get(each.door)?.add(each.at)
        total += 1
        if (killsAt.has(total)) crash = crash.then(kill)
      }
      for (const talk of Object.values(talks)) talk.close()
    }
    await atOnce(clients, client)
    await crash

    const vain = times.filter(({ from, to }) => outages.some((out) => from >= out.from && to <= out.to))
    const seen = await look(services)
    const sent = (acknowledged.get('SMTP')?.size ?? 0) + (acknowledged.get('API')?.size ?? 0)
    return {
      injected: { 'kill -9': outages.length, 'refused and repeated': refused },
      seen: { acknowledged: total, ...seen },
      claims: [
        is('kills', outages.length, kills),
        is('acknowledged', total, count),
        is('acknowledged while there was no database', vain.length, 0),
        is('emails', seen.emails, sent),
        is('people written to, each once', seen.people, sent),
        is('emails that bounced', seen.bounced, acknowledged.get('inbound')?.size ?? 0),
        is('events of bounces', seen.events, seen.bounced),
        is('reports', seen.reports, seen.bounced),
        is('addresses suppressed', seen.suppressed, seen.bounced),
      ],
    }
  },
})

/** Kills PostgreSQL and resolves when none of its processes is left. */
export async function crashPostgres({ orm }: Services, postgres: Postgres): Promise<void> {
  const backends = await rows<{ pid: number }>(orm.em.fork(), sql`select pid from pg_stat_activity`)
  postgres.kill()
  await postgres.exited
  // A backend in the middle of a statement finishes it, commits and answers before it notices that its parent is gone.
  await eventually('its backends to end', () => !backends.some(({ pid }) => isAlive(pid)), { everyMs: 5 })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Creates emails that were sent earlier, for reports to refer to. Returns their return paths by `at`. */
async function makeSent({ orm, config }: Services, work: readonly Work[]): Promise<Map<number, string>> {
  const em = orm.em.fork()
  const { id: organizationId = '' } = (await row<{ id: string }>(em, sql`select id from organization`)) ?? {}
  const sent = work
    .filter(({ door }) => door === 'inbound')
    .map(({ at }) => ({ at, id: newId(), person: newId() }))
  const given = sql`unnest(
    ${column(sent, ({ id }) => id, 'uuid')},
    ${column(sent, ({ person }) => person, 'uuid')}
  ) as given (id, person)`
  await execute(
    em,
    sql`insert into subscriber (id, organization_id, email, status)
      select person, ${organizationId}, 'gone-' || person || '@reader.example', 'SUBSCRIBED' from ${given}`,
  )
  await execute(
    em,
    sql`insert into message (id, organization_id, class, marketing, status, subscriber_id, recipient, from_email, sent_at)
      select id, ${organizationId}, 'CAMPAIGN', true, 'SENT', person, 'gone-' || person || '@reader.example', ${SENDER},
        now() from ${given}`,
  )
  return new Map(
    sent.map(({ at, id }) => [at, returnPathOf(config.secret, { organizationId, id, fromEmail: SENDER })]),
  )
}

async function look({ orm }: Services) {
  const found = await row<
    Record<'emails' | 'people' | 'bounced' | 'events' | 'reports' | 'suppressed', number>
  >(
    orm.em.fork(),
    sql`select (select count(*)::int from message where class = 'TRANSACTIONAL') as emails,
      (select count(distinct recipient)::int from message where class = 'TRANSACTIONAL') as people,
      (select count(*)::int from message where status = 'BOUNCED') as bounced,
      (select count(*)::int from subscriber_event where type = 'EMAIL_BOUNCED') as events,
      (select count(*)::int from email_report) as reports,
      (select count(*)::int from suppression) as suppressed`,
  )
  if (!found) throw new Error('nothing was counted')
  return found
}

type Conversation = ReturnType<typeof talkTo>

async function ask(
  url: string,
  token: string,
  talks: { SMTP: Conversation; inbound: Conversation },
  { door, at }: Work,
  returnPath: string,
): Promise<boolean> {
  const to = `r${at}@reader.example`
  if (door === 'inbound')
    return await talks.inbound.bring('', returnPath, readReportFile('postfix-no-such-user'))
  if (door === 'SMTP') {
    const raw = `From: ${SENDER}\r\nSubject: Your code\r\nX-Idempotency-Key: k${at}\r\n\r\nIt is 1234`
    return await talks.SMTP.bring(SENDER, to, raw)
  }
  const answer = await fetch(`${url}/api/v1/emails`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'idempotency-key': `k${at}`,
    },
    body: JSON.stringify({ to, subject: 'Your code', content: 'It is 1234' }),
  }).catch(() => undefined)
  await answer?.text().catch(() => undefined)
  return answer?.status === 200
}

/** Opens a connection that is kept until something is refused on it. */
function talkTo(door: Speaker, token: string | null) {
  let open: Talk | null = null

  async function bring(from: string, to: string, raw: string): Promise<boolean> {
    open ??= token === null ? await Talk.open(door.port) : await Talk.loggedIn(door, token)
    for (const line of ['EHLO client.test', `MAIL FROM:<${from}>`, `RCPT TO:<${to}>`, 'DATA']) {
      if (!/^[23]/.test(await open.say(line))) return end()
    }
    open.write(`${raw}\r\n.\r\n`)
    return (await open.reply()).startsWith('250') || end()
  }

  function end(): false {
    open?.close()
    open = null
    return false
  }

  return { bring, close: end }
}
