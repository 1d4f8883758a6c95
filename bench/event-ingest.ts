import { parseArgs } from 'node:util'

import { sql } from 'kysely'

import type { Child } from '../scripts/services/child.ts'
import { freePort } from '../scripts/services/ports.ts'
import { execute, row } from '../src/database.ts'
import { signToken } from '../src/delivery/tracking-token.ts'
import { countPendingVisits } from '../src/domain/emails/visits.ts'
import { newId } from '../src/ids.ts'
import { serveBare } from './shared/bare-koa.ts'
import type { Load } from './shared/load.ts'
import { startPeer } from './shared/peer.ts'
import { keepBusyRaw } from './shared/raw-load.ts'
import { median, report, round } from './shared/report.ts'
import { processMs, startSystem, type System } from './shared/system.ts'

/**
 * event-ingest: pixels and redirects per second over 200 connections, half each, 30 % of them repeated, compared with
 * bare Koa that commits one INSERT per request. The benchmark proves that the first open and click of each email is
 * counted once and every visit is in the totals. The peer runs first and last, with three runs of ours between; then it
 * measures how long the worker needs to process the rest.
 */
const CONNECTIONS = 200
const SECONDS = 5
const WARM_UP_SECONDS = 2
const RUNS = 3
const REPEATS = 0.3
const LINKS = 10

const { values } = parseArgs({
  options: {
    peer: { type: 'string' },
    json: { type: 'string' },
    emails: { type: 'string', default: '150000' },
  },
})
const EMAILS = Number(values.emails)
if (values.peer) await servePeer(Number(values.peer))
else await measure()

type Visits = { next(): { path: string; status: number }; counts(): Counts }
type Counts = Record<'opens' | 'clicks' | 'opened' | 'clicked', number>

async function measure(): Promise<void> {
  const system = await startSystem()
  let peer: Child | undefined
  try {
    const peerPort = await freePort()
    peer = await startPeer(import.meta.filename, peerPort, {
      DATABASE_URL: system.services.config.databaseUrl,
    })
    const campaignId = newId()
    const visits = planVisits(system, await fill(system, campaignId))
    const ownPort = Number(new URL(system.url).port)
    const ours = (seconds: number) => keepBusyRaw(ownPort, CONNECTIONS, seconds, () => visits.next())
    const bare = (seconds: number) =>
      keepBusyRaw(peerPort, CONNECTIONS, seconds, () => ({ path: `/o/${newId()}.gif`, status: 200 }))
    await bare(WARM_UP_SECONDS)
    await ours(WARM_UP_SECONDS)
    await execute(system.services.orm.em.fork(), sql`analyze`)
    const bareRuns = [await bare(SECONDS)]
    const ourRuns: Load[] = []
    const settling: number[] = []
    const used: Record<string, number> = {}
    /** Starts measuring processor time; the returned function adds what the parts used since. */
    const watch = (parts: Record<string, () => number>) => {
      const before = Object.entries(parts).map(([name, read]) => [name, read, read()] as const)
      return () => {
        for (const [name, read, since] of before) used[name] = (used[name] ?? 0) + read() - since
      }
    }
    const postgres = () => system.processorMs('postgres')
    for (let run = 0; run < RUNS; run++) {
      await untilSettled(system)
      const addOurs = watch({
        api: () => system.processorMs('api'),
        worker: () => system.processorMs('worker'),
        postgres,
      })
      ourRuns.push(await ours(SECONDS))
      const waited = performance.now()
      await untilSettled(system)
      settling.push((performance.now() - waited) / 1_000)
      addOurs()
      const addBare = watch({ bare: () => processMs(peer?.pid), 'postgres of bare': postgres })
      bareRuns.push(await bare(SECONDS))
      addBare()
    }
    await prove(system, campaignId, visits.counts())
    const [mine, theirs] = [summary(ourRuns), summary(bareRuns)]
    const each = (part: string, runs: readonly Load[]) =>
      round((used[part] ?? 0) / runs.reduce((sum, run) => sum + run.answered, 0))
    const measured = bareRuns.slice(1)
    report({
      benchmark: 'event-ingest',
      settings: { connections: CONNECTIONS, seconds: SECONDS, runs: RUNS, repeats: REPEATS, emails: EMAILS },
      figures: {
        'event-ingest': {
          ...mine,
          'CPU ms/req': each('api', ourRuns),
          'PostgreSQL ms/req': each('postgres', ourRuns),
          'worker ms/req': each('worker', ourRuns),
          'peak MB': system.memory('api').peak,
          // Until the last visit of a run is processed. That includes 1.5 s of waiting for further clicks.
          'settled after s': round(median(settling)),
        },
        'bare Koa': {
          ...theirs,
          'CPU ms/req': each('bare', measured),
          'PostgreSQL ms/req': each('postgres of bare', measured),
        },
      },
      ratio: mine['req/s'] / theirs['req/s'],
      must: '≥ 0.5×',
      aim: '≥ 2×',
    })
  } finally {
    await peer?.stop()
    await system.stop()
  }
}

/** Creates a campaign that was sent an hour ago. Its rows are inserted and then updated, as sending does. */
async function fill({ services, organizationId }: System, campaignId: string): Promise<string[]> {
  const em = services.orm.em.fork()
  await execute(
    em,
    sql`insert into campaign (id, organization_id, kind, subject, content, status)
      values (${campaignId}, ${organizationId}, 'BROADCAST', 'News', '"Hi"', 'SENT')`,
  )
  const sendId = newId()
  await execute(
    em,
    sql`insert into campaign_send (id, organization_id, campaign_id, number, subject, content, content_type, sender_name,
        sender_email, recipient_filters, targets)
      values (${sendId}, ${organizationId}, ${campaignId}, 1, 'News', '"Hi"', 'MARKDOWN', 'Shop', 'news@shop.example',
        '[]', array(select 'https://shop.example/product/' || n || '?utm_source=news' from generate_series(1, ${LINKS}::int) n))`,
  )
  await execute(
    em,
    sql`insert into subscriber (id, organization_id, email, status)
      select new_id(), ${organizationId}, 'reader-' || n || '@visits.example', 'SUBSCRIBED'
      from generate_series(1, ${EMAILS}::int) n`,
  )
  await execute(
    em,
    sql`insert into message (id, organization_id, class, marketing, subscriber_id, recipient, from_email, campaign_id,
        version_id)
      select new_id(), organization_id, 'CAMPAIGN', true, id, email, 'news@shop.example', ${campaignId}, ${sendId}
      from subscriber where email like '%@visits.example'`,
  )
  await execute(
    em,
    sql`update message set status = 'SENT', sent_at = now() - interval '1 hour' where campaign_id = ${campaignId}`,
  )
  await execute(
    em,
    sql`insert into subscriber_stat (organization_id, subscriber_id, email_count)
      select organization_id, subscriber_id, 1 from message where campaign_id = ${campaignId}`,
  )
  await em.getKysely().executeQuery(sql`vacuum analyze`.compile(em.getKysely()))
  const { rows } = await sql<{
    id: string
  }>`select id from message where campaign_id = ${campaignId} order by id`.execute(em.getKysely())
  return rows.map(({ id }) => id)
}

/** Plans visits that alternate between opening an email and following a link; 30 % are repeated soon after. */
function planVisits({ services, organizationId }: System, emails: readonly string[]): Visits {
  const { secret } = services.config
  const recent: { path: string; status: number }[] = []
  const counts: Counts = { opens: 0, clicks: 0, opened: 0, clicked: 0 }
  let [fresh, asked] = [0, 0]
  function first(): { path: string; status: number } {
    const isOpen = fresh % 2 === 0
    // Readers are spread over the table, so successive visits are far apart in it.
    const messageId = emails[((fresh >> 1) * 7_919) % emails.length] ?? ''
    const position = fresh % LINKS
    fresh += 1
    if (fresh > emails.length * 2) throw new Error('there were too few emails; give --emails')
    if (isOpen) counts.opened += 1
    else counts.clicked += 1
    return isOpen
      ? { path: `/o/${signToken(secret, { kind: 'open', organizationId, messageId })}.gif`, status: 200 }
      : {
          path: `/c/${signToken(secret, { kind: 'click', organizationId, messageId, position })}`,
          status: 302,
        }
  }
  return {
    next() {
      asked += 1
      const isRepeat = recent.length > 1_000 && asked % 10 < REPEATS * 10
      const visit = isRepeat ? recent[(asked * 31) % recent.length] : undefined
      const chosen = visit ?? first()
      if (!visit) recent[fresh % 5_000] = chosen
      if (chosen.status === 200) counts.opens += 1
      else counts.clicks += 1
      return chosen
    },
    counts: () => counts,
  }
}

async function untilSettled({ services }: System): Promise<void> {
  // The API writes the visits that it buffers within this time.
  do await new Promise((resolve) => setTimeout(resolve, 200))
  while ((await countPendingVisits(services.orm.em.fork())) > 0)
}

/** Throws unless every answered visit is in the totals and every first visit is counted once in each of them. */
async function prove({ services }: System, campaignId: string, counts: Counts): Promise<void> {
  const found = await row<Record<string, number>>(
    services.orm.em.fork(),
    sql`select
      (select people from campaign_engagement where campaign_id = ${campaignId} and kind = 'OPEN') as opens,
      (select people from campaign_engagement where campaign_id = ${campaignId} and kind = 'CLICK') as clicks,
      (select emails_by_people from campaign_engagement where campaign_id = ${campaignId} and kind = 'OPEN') as opened,
      (select emails_by_people from campaign_engagement where campaign_id = ${campaignId} and kind = 'CLICK') as clicked,
      (select sum(emails_by_people)::int from campaign_engagement where campaign_id = ${campaignId} and kind = 'LINK') as "clickedByLink",
      (select count(*)::int from tracking_event where human) as visits,
      (select count(*)::int from tracking_event where not human) as machines,
      (select count(*)::int from message where opened_at is not null) as "openedEmails",
      (select count(*)::int from message where clicked_at is not null) as "clickedEmails",
      (select sum(open_count)::int from subscriber_stat) as "openCounts",
      (select sum(click_count)::int from subscriber_stat) as "clickCounts",
      (select count(*)::int from subscriber_event where type = 'EMAIL_OPENED') as "openEvents",
      (select count(*)::int from subscriber_event where type = 'EMAIL_CLICKED') as "clickEvents"`,
  )
  const { opens, clicks, opened, clicked } = counts
  const expected = {
    ...counts,
    clickedByLink: clicked,
    visits: opens + clicks,
    machines: 0,
    openedEmails: opened,
    clickedEmails: clicked,
    openCounts: opened,
    clickCounts: clicked,
    openEvents: opened,
    clickEvents: clicked,
  }
  for (const [name, count] of Object.entries(expected)) {
    if (found?.[name] !== count) {
      throw new Error(`${name} should be ${count}: ${JSON.stringify({ expected, found })}`)
    }
  }
  console.log(`Proved: ${JSON.stringify(found)}`)
}

function summary(runs: readonly Load[]) {
  return {
    'req/s': Math.round(median(runs.map(({ perSecond }) => perSecond))),
    'p50 ms': round(median(runs.map(({ p50 }) => p50))),
    'p99 ms': round(median(runs.map(({ p99 }) => p99))),
  }
}

/** Serves one INSERT per visit, committed before the answer. */
async function servePeer(port: number): Promise<void> {
  await serveBare(port, {
    setUp:
      'create table if not exists bare_visit (id uuid primary key, path text, user_agent text, created_at timestamptz default now())',
    async answer(ctx, pool) {
      await pool.query({
        name: 'visit',
        text: 'insert into bare_visit (id, path, user_agent) values ($1, $2, $3)',
        values: [newId(), ctx.path, ctx.get('user-agent')],
      })
      ctx.body = 'ok'
    },
  })
}
