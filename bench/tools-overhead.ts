import { Agent } from 'node:http'
import { parseArgs } from 'node:util'

import type { Child } from '../scripts/services/child.ts'
import { freePort } from '../scripts/services/ports.ts'
import { hashToken } from '../src/catalogue/tokens.ts'
import { readBody, serveBare } from './shared/bare-koa.ts'
import { keepBusy, type Load, post, type Target } from './shared/load.ts'
import { startPeer } from './shared/peer.ts'
import { median, report, round } from './shared/report.ts'
import { startSystem, type System } from './shared/system.ts'

/**
 * tools-overhead: requests per second of a cheap read over the Tools API, compared with bare Koa that runs the same two
 * statements. The benchmark first proves that both return the same person. The peer runs first and last, with three
 * runs of ours between.
 */
const CONNECTIONS = 16
const SECONDS = 4
const RUNS = 3
const EMAIL = 'person-500@example.com'

const AUTHENTICATE = `select token.id, token.permissions, organization.id as organization, organization.plan,
    organization.custom_limits from api_token token join organization on organization.id = token.organization_id
  where token.token_hash = $1 and token.revoked_at is null and (token.expires_at is null or token.expires_at > now())`
const READ = `select subscriber.id, subscriber.email, subscriber.name, subscriber.phone, subscriber.status,
    subscriber.country, subscriber.fields, array(select tag.name from subscriber_tag link
      join tag on tag.organization_id = link.organization_id and tag.id = link.tag_id
      where link.organization_id = subscriber.organization_id and link.subscriber_id = subscriber.id
      order by tag.name_key) as tags,
    stat.revenue, stat.email_count, stat.open_count, stat.click_count, subscriber.created_at, subscriber.updated_at
  from subscriber left join subscriber_stat stat
    on stat.organization_id = subscriber.organization_id and stat.subscriber_id = subscriber.id
  where subscriber.organization_id = $1 and subscriber.email_key = lower($2)`

const { values } = parseArgs({ options: { peer: { type: 'string' }, json: { type: 'string' } } })
if (values.peer) await servePeer(Number(values.peer))
else await measure()

async function measure(): Promise<void> {
  const system = await startSystem({ worker: false })
  let peer: Child | undefined
  try {
    await addPeople(system)
    const peerPort = await freePort()
    peer = await startPeer(import.meta.filename, peerPort, {
      DATABASE_URL: system.services.config.databaseUrl,
    })
    const headers = { authorization: `Bearer ${system.token}`, 'content-type': 'application/json' }
    const body = () => JSON.stringify({ email: EMAIL })
    const ours = { url: `${system.url}/api/v2/tools/get_subscriber`, headers, body }
    const bare = { url: `http://127.0.0.1:${peerPort}/`, headers, body }
    await prove(ours, bare)
    for (const target of [bare, ours]) await keepBusy(target, CONNECTIONS, 1)
    const bareRuns = [await keepBusy(bare, CONNECTIONS, SECONDS)]
    const ourRuns: Load[] = []
    for (let run = 0; run < RUNS; run++) {
      ourRuns.push(await keepBusy(ours, CONNECTIONS, SECONDS))
      bareRuns.push(await keepBusy(bare, CONNECTIONS, SECONDS))
    }
    print(ourRuns, bareRuns, system.memory('api'))
  } finally {
    await peer?.stop()
    await system.stop()
  }
}

function print(ours: readonly Load[], bare: readonly Load[], memory: { now: number; peak: number }): void {
  const figures = (runs: readonly Load[]) => ({
    'req/s': Math.round(median(runs.map(({ perSecond }) => perSecond))),
    'p50 ms': round(median(runs.map(({ p50 }) => p50))),
    'p99 ms': round(median(runs.map(({ p99 }) => p99))),
  })
  const [mine, theirs] = [figures(ours), figures(bare)]
  report({
    benchmark: 'tools-overhead',
    settings: { connections: CONNECTIONS, seconds: SECONDS, runs: RUNS, tool: 'get_subscriber' },
    figures: { 'Tools API': { ...mine, 'peak MB': memory.peak }, 'bare Koa': theirs },
    ratio: mine['req/s'] / theirs['req/s'],
    must: '≥ 0.4×',
    aim: '≥ 0.7×',
  })
}

async function addPeople({ url, token }: System): Promise<void> {
  for (let from = 0; from < 1_000; from += 50) {
    await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const number = from + index
        const response = await fetch(`${url}/api/v2/tools/add_subscriber`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: JSON.stringify({
            email: `person-${number}@example.com`,
            name: `Person ${number}`,
            tags: ['bench', `group-${number % 10}`],
            fields: { number, plan: 'pro' },
          }),
        })
        if (!response.ok)
          throw new Error(`add_subscriber answered ${response.status}: ${await response.text()}`)
      }),
    )
  }
}

async function prove(ours: Target, bare: Target): Promise<void> {
  const agent = new Agent()
  const [mine, theirs] = [await post(ours, agent), await post(bare, agent)]
  for (const part of [EMAIL, '"bench","group-0"', '"number":500']) {
    if (!mine.includes(part) || !theirs.includes(part)) {
      throw new Error(`the answers differ on ${part}:\n${mine}\n${theirs}`)
    }
  }
}

/** Serves the same two statements and nothing else. */
async function servePeer(port: number): Promise<void> {
  await serveBare(port, {
    async answer(ctx, pool) {
      const body = await readBody(ctx)
      if (body === undefined) return
      const token = (ctx.get('authorization') || '').slice('Bearer '.length)
      const caller = await pool.query(AUTHENTICATE, [hashToken(token)])
      const found = await pool.query(READ, [caller.rows[0]?.organization, body.email])
      ctx.body = { success: true, data: { subscriber: found.rows[0] } }
    },
  })
}
