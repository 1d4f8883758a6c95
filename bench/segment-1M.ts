import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'

import { type RawBuilder, sql } from 'kysely'

import type { Call } from '../src/catalogue/tool.ts'
import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { readConfig } from '../src/config.ts'
import { type EntityManager, row, rows } from '../src/database.ts'
import { everybody, pageOf, readAudience } from '../src/domain/audience/question.ts'
import { keyset } from '../src/domain/keyset.ts'
import {
  countByStatus,
  countSubscribers,
  listSubscribers,
  querySubscribers,
} from '../src/domain/subscribers/queries.ts'
import { createServices, type Services } from '../src/services.ts'
import { fillAudience, findAudience, sizeOf } from './shared/audience-data.ts'
import { comparisons } from './shared/audience-filters.ts'
import { summarizePlan, type PlanNode } from './shared/explain.ts'
import { percentile, report, round } from './shared/report.ts'
import { startSystem } from './shared/system.ts'

/**
 * segment-1M: twelve filters over a million subscribers and ten million events. It measures the count and the first
 * page of each, and the list and count tools, compared with handwritten SQL for the same query over the same driver.
 * The benchmark first proves that both find the same subscribers, and that no filter reads the whole event table.
 * --subscribers and --events reduce the size; --database URL uses a database that an earlier run has filled; --explain
 * prints the plans.
 */
const { values: options } = parseArgs({
  options: {
    subscribers: { type: 'string', default: '1000000' },
    events: { type: 'string', default: '10000000' },
    database: { type: 'string' },
    explain: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
})
const COUNT_ROUNDS = 5
const PAGE_ROUNDS = 25
const LIMIT = 50
const FIELDS = ['id', 'email', 'name', 'status', 'createdAt', 'tags'] as const

const HAND_COLUMNS = sql`s.id, s.email, s.name, s.status, s.created_at, array(select tag.name from subscriber_tag st
  join tag on tag.organization_id = st.organization_id and tag.id = st.tag_id
  where st.organization_id = s.organization_id and st.subscriber_id = s.id order by tag.name_key) as tags`

/** Complete records, as `list_subscribers` returns them. */
const HAND_RECORD = sql`${HAND_COLUMNS}, s.phone, s.country, s.fields, stat.revenue, stat.email_count, stat.open_count,
  stat.click_count, s.updated_at from subscriber s left join subscriber_stat stat
  on stat.organization_id = s.organization_id and stat.subscriber_id = s.id`

/** A query in two versions. */
type Pair = {
  name: string
  rounds: number
  ours: (call: Call) => Promise<unknown>
  byHand: RawBuilder<unknown>
}

await (options.database === undefined ? measureFresh() : measureFilled(options.database))

async function measureFresh(): Promise<void> {
  const system = await startSystem({ api: false, worker: false })
  try {
    const size = { subscribers: Number(options.subscribers), events: Number(options.events) }
    await fillAudience(system.services.orm.em.fork(), system.organizationId, size)
    await measure(system.services)
  } finally {
    await system.stop()
  }
}

async function measureFilled(url: string): Promise<void> {
  const config = readConfig({ ...process.env, POSTLOOM_ENV: 'development', DATABASE_URL: url })
  const services = await createServices(config, 'bench')
  try {
    await measure(services)
  } finally {
    await services.close()
  }
}

async function measure(services: Services): Promise<void> {
  const em = services.orm.em.fork()
  const { organizationId, ...data } = await findAudience(em)
  const call = await openCall(services, organizationId)
  const twelve = comparisons(organizationId, call.organization.timezone, data)
  for (const comparison of twelve) await prove(services, call, comparison)
  const pairs = [
    ...twelve.flatMap(({ name, filters, byHand }) => [
      countPair(name, { filters, status: 'ALL' }, handCount(organizationId, byHand)),
      pagePair(name, { filters, status: 'ALL' }, handPage(organizationId, byHand)),
    ]),
    ...toolPairs(organizationId),
  ]
  const figures: Record<string, Record<string, number | string>> = {}
  for (const pair of pairs) figures[pair.name] = await compare(services, call, pair)
  report({
    benchmark: 'segment-1M',
    settings: { ...(await sizeOf(em, organizationId)), countRounds: COUNT_ROUNDS, pageRounds: PAGE_ROUNDS },
    figures,
    ratio: Math.max(...Object.values(figures).map(({ ratio }) => Number(ratio))),
    must: '≤ 2× in each row',
    aim: '≤ 1.2×',
  })
}

/** The tools that do not use filters. */
function toolPairs(organizationId: string): Pair[] {
  const own = sql`${organizationId}`
  const found = (
    text: string,
  ) => sql`(s.email_key like ${`%${text}%`} or s.name ilike ${`%${text}%`} or s.id in (
    select st.subscriber_id from subscriber_tag st join tag on tag.organization_id = ${own} and tag.id = st.tag_id
    where st.organization_id = ${own} and tag.name_key like ${`%${text}%`}))`
  return [
    {
      name: 'list_subscribers, page',
      rounds: PAGE_ROUNDS,
      ours: (call) => listSubscribers(call, { limit: LIMIT, status: 'all' }),
      byHand: sql`select ${HAND_RECORD} where s.organization_id = ${own} order by s.id desc limit ${LIMIT + 1}`,
    },
    {
      name: 'list_subscribers of a rare tag, page',
      rounds: PAGE_ROUNDS,
      ours: (call) => listSubscribers(call, { limit: LIMIT, status: 'all', tag: 'tag-50' }),
      byHand: sql`select ${HAND_RECORD} join subscriber_tag link on link.subscriber_id = s.id
        where s.organization_id = ${own} and link.organization_id = ${own}
          and link.tag_id = (select id from tag where organization_id = ${own} and name_key = 'tag-50')
        order by link.subscriber_id desc limit ${LIMIT + 1}`,
    },
    {
      name: 'count_subscribers_by_status',
      rounds: COUNT_ROUNDS,
      ours: (call) => countByStatus(call, { filters: [] }),
      byHand: sql`select status, count(*)::int from subscriber s where s.organization_id = ${own} group by status`,
    },
    ...['zo', 'son-4242', 'zzz'].flatMap((query): Pair[] => [
      countPair(
        `query "${query}"`,
        { filters: [], status: 'ALL', query },
        handCount(organizationId, found(query)),
      ),
      pagePair(
        `query "${query}"`,
        { filters: [], status: 'ALL', query },
        handPage(organizationId, found(query)),
      ),
    ]),
  ]
}

type Query = Parameters<typeof countSubscribers>[1]

function countPair(name: string, query: Query, byHand: RawBuilder<unknown>): Pair {
  return {
    name: `${name}, count`,
    rounds: COUNT_ROUNDS,
    ours: (call) => countSubscribers(call, query),
    byHand,
  }
}

function pagePair(name: string, query: Query, byHand: RawBuilder<unknown>): Pair {
  const page = { ...query, limit: LIMIT, fields: FIELDS }
  return { name: `${name}, page`, rounds: PAGE_ROUNDS, ours: (call) => querySubscribers(call, page), byHand }
}

function handCount(organizationId: string, condition: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`select count(*)::int as total from subscriber s where s.organization_id = ${organizationId} and ${condition}`
}

function handPage(organizationId: string, condition: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`select ${HAND_COLUMNS} from subscriber s where s.organization_id = ${organizationId} and ${condition}
    order by s.id desc limit ${LIMIT + 1}`
}

/**
 * Runs both versions alternately, so that load by other programs affects both equally. The first round is a warm-up.
 */
async function compare(
  services: Services,
  call: Call,
  { ours, byHand, rounds }: Pair,
): Promise<Record<string, number>> {
  const [mine, theirs]: [number[], number[]] = [[], []]
  for (let round = 0; round <= rounds; round++) {
    const own = await timed(() => ours({ ...call, em: services.orm.em.fork() }))
    const other = await timed(() => rows(services.orm.em.fork(), byHand))
    if (round === 0) continue
    mine.push(own)
    theirs.push(other)
  }
  return {
    'p50 ms': round(percentile(mine, 0.5)),
    'p99 ms': round(percentile(mine, 0.99)),
    'by hand p50': round(percentile(theirs, 0.5)),
    'by hand p99': round(percentile(theirs, 0.99)),
    ratio: round(percentile(mine, 0.5) / percentile(theirs, 0.5)),
  }
}

/**
 * Throws unless both versions find the same subscribers and the same first page in one transaction, and no plan reads
 * the whole event table.
 */
async function prove(
  services: Services,
  call: Call,
  { name, filters, byHand }: ReturnType<typeof comparisons>[number],
): Promise<void> {
  const organizationId = call.organization.id
  await services.orm.em.fork().transactional(async (em) => {
    const audience = await readAudience({ ...call, em }, { filters })
    const hand = sql`select s.id from subscriber s where s.organization_id = ${organizationId} and ${byHand}`
    const [mine, theirs] = [await digest(em, everybody(audience)), await digest(em, hand)]
    if (mine !== theirs) throw new Error(`${name}: ${mine} by filter, ${theirs} by hand`)
    const page = pageOf(audience, keyset(null, LIMIT))
    const [own, other] = [
      await rows<{ id: string }>(em, sql`select id from (${page}) as found`),
      await rows<{ id: string }>(em, sql`${hand} order by s.id desc limit ${LIMIT + 1}`),
    ]
    if (own.map(({ id }) => id).join() !== other.map(({ id }) => id).join()) {
      throw new Error(`${name}: the first pages differ`)
    }
    for (const [kind, statement] of [
      ['count', sql`select count(*) from (${everybody(audience)}) as found`],
      ['page', page],
    ] as const) {
      const plan = await row<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
        em,
        sql`explain (analyze, format json) ${statement}`,
      )
      const summary = summarizePlan(plan?.['QUERY PLAN'][0].Plan)
      if (summary.eventScans.length > 0) {
        throw new Error(`${name}, ${kind}: reads all of ${summary.eventScans.join(', ')}`)
      }
      if (options.explain) console.log(`| ${name}, ${kind} | ${summary.text} |`)
    }
  })
}

/** Returns the number of rows and a checksum of their ids. */
async function digest(em: EntityManager, people: RawBuilder<unknown>): Promise<string> {
  const found = await row<{ digest: string }>(
    em,
    sql`select count(*) || ' ' || coalesce(sum(hashtextextended(id::text, 0)::numeric), 0) as digest
      from (${people}) as found`,
  )
  return found?.digest ?? ''
}

async function openCall(services: Services, organizationId: string): Promise<Call> {
  const actor = { kind: 'system', id: '', name: 'Benchmark' } as const
  return await unitOfWork(services, { organizationId, actor }, async (call) => call, { readOnly: true })
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}
