import { parseArgs } from 'node:util'

import { sql } from 'kysely'

import type { Child } from '../scripts/services/child.ts'
import { freePort } from '../scripts/services/ports.ts'
import { execute, row } from '../src/database.ts'
import { newId } from '../src/ids.ts'
import { readBody, serveBare } from './shared/bare-koa.ts'
import { keepBusy, type Load, type Target } from './shared/load.ts'
import { startPeer } from './shared/peer.ts'
import { median, report, round } from './shared/report.ts'
import { startSystem, type System } from './shared/system.ts'

/**
 * tx-send: accepted emails per second at POST /api/v1/emails, 1 KB of Markdown, durable before the answer, compared
 * with bare Koa that commits one INSERT of the same body. The benchmark proves that every answer has its message, its
 * content and its queue row. The peer runs first and last, with three runs of ours between.
 */
const CONNECTIONS = [16, 64]
const SECONDS = 4
const WARM_UP_SECONDS = 2
const RUNS = 3
const CONTENT = 'The engine weaves algebraic patterns just as the loom weaves flowers and leaves. '.repeat(13)

const { values } = parseArgs({ options: { peer: { type: 'string' }, json: { type: 'string' } } })
if (values.peer) await servePeer(Number(values.peer))
else await measure()

async function measure(): Promise<void> {
  const system = await startSystem({ worker: false })
  let peer: Child | undefined
  try {
    const peerPort = await freePort()
    peer = await startPeer(import.meta.filename, peerPort, {
      DATABASE_URL: system.services.config.databaseUrl,
    })
    const ours = target(`${system.url}/api/v1/emails`, system.token)
    const bare = target(`http://127.0.0.1:${peerPort}/`, system.token)
    let answered = 0
    for (const each of [bare, ours]) {
      const warmUp = await keepBusy(each, 16, WARM_UP_SECONDS)
      if (each === ours) answered += warmUp.answered
    }
    // Autovacuum does this within seconds of the first rows. Until then, plans are made without statistics.
    await execute(system.services.orm.em.fork(), sql`analyze`)
    const figures: Record<string, Record<string, number>> = {}
    const ratios: number[] = []
    for (const connections of CONNECTIONS) {
      const bareRuns = [await keepBusy(bare, connections, SECONDS)]
      const ourRuns: Load[] = []
      for (let run = 0; run < RUNS; run++) {
        ourRuns.push(await keepBusy(ours, connections, SECONDS))
        bareRuns.push(await keepBusy(bare, connections, SECONDS))
      }
      answered += ourRuns.reduce((sum, run) => sum + run.answered, 0)
      const [mine, theirs] = [summary(ourRuns), summary(bareRuns)]
      figures[`tx-send, ${connections} connections`] = { ...mine, 'peak MB': system.memory('api').peak }
      figures[`bare Koa, ${connections} connections`] = theirs
      ratios.push(mine['req/s'] / theirs['req/s'])
    }
    await prove(system, answered)
    report({
      benchmark: 'tx-send',
      settings: { connections: CONNECTIONS, seconds: SECONDS, runs: RUNS, contentBytes: CONTENT.length },
      figures,
      ratio: Math.min(...ratios),
      must: '≥ 0.3×',
      aim: '≥ 0.5×',
    })
  } finally {
    await peer?.stop()
    await system.stop()
  }
}

/** Throws unless exactly the accepted emails are stored, each with its queue row and content. */
async function prove({ services }: System, answered: number): Promise<void> {
  const stored = await row<{ complete: number; messages: number }>(
    services.orm.em.fork(),
    sql`select count(*)::int as messages, count(q.id) filter (where c.message_id is not null)::int as complete
      from message m left join delivery_queue q on q.id = m.id
      left join message_content c on c.organization_id = m.organization_id and c.message_id = m.id`,
  )
  if (stored?.messages !== answered || stored.complete !== answered) {
    throw new Error(`${answered} emails were accepted, but the database has ${JSON.stringify(stored)}`)
  }
}

function summary(runs: readonly Load[]) {
  return {
    'req/s': Math.round(median(runs.map(({ perSecond }) => perSecond))),
    'p50 ms': round(median(runs.map(({ p50 }) => p50))),
    'p99 ms': round(median(runs.map(({ p99 }) => p99))),
  }
}

function target(url: string, token: string): Target {
  let sent = 0
  return {
    url,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: () =>
      JSON.stringify({
        to: `reader-${(sent += 1) % 5_000}@example.com`,
        subject: 'Your order {{name}}',
        content: CONTENT,
      }),
  }
}

/** Serves one INSERT, committed before the answer. */
async function servePeer(port: number): Promise<void> {
  await serveBare(port, {
    setUp:
      'create table if not exists bare_message (id uuid primary key, recipient text, body jsonb, created_at timestamptz default now())',
    async answer(ctx, pool) {
      const body = await readBody(ctx)
      if (body === undefined) return
      const id = newId()
      const insert = 'insert into bare_message (id, recipient, body) values ($1, $2, $3)'
      await pool.query(insert, [id, body.to, body])
      ctx.body = { success: true, id }
    },
  })
}
