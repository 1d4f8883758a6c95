import { performance } from 'node:perf_hooks'

import { sql } from 'kysely'
import pg from 'pg'

import { execute, row } from '../src/database.ts'
import { newId } from '../src/ids.ts'
import { median, report } from './shared/report.ts'
import { startSystem, type System } from './shared/system.ts'

/**
 * import-500: import_subscribers of 500 people with two tags and two fields, half of them known, by 4 callers, compared
 * with raw INSERT … SELECT unnest … ON CONFLICT of the same people and tags over 4 connections. The benchmark proves
 * that every person exists with tags, fields and events. The peer runs first and last, with three runs of ours between.
 */
const CALLERS = 4
const SIZE = 500
const CALLS = 6
const RUNS = 3

type Person = { email: string; name: string; tags: string[]; fields: { plan: string; score: number } }
type Figures = { perSecond: number }

await measure()

async function measure(): Promise<void> {
  const system = await startSystem({ worker: false })
  const pool = new pg.Pool({ connectionString: system.services.config.databaseUrl, max: CALLERS })
  try {
    const other = newId()
    const em = system.services.orm.em.fork()
    await execute(em, sql`insert into organization (id, name, slug) values (${other}, 'Peer', 'peer')`)
    for (const tag of ['bench', 'list-0', 'list-1', 'list-2', 'list-3']) {
      await execute(
        em,
        sql`insert into tag (id, organization_id, name) values (${newId()}, ${other}, ${tag})`,
      )
    }
    const raw = (people: Person[]) => insertRaw(pool, other, people)
    const ours = (people: Person[]) => importPeople(system, people)
    for (const each of [raw, ours]) await load(each, 'warm', 1)
    await execute(em, sql`analyze`)
    const rawRuns = [await load(raw, 'raw0')]
    const ourRuns: Figures[] = []
    for (let run = 0; run < RUNS; run++) {
      ourRuns.push(await load(ours, `ours${run}`))
      rawRuns.push(await load(raw, `raw${run + 1}`))
    }
    await prove(system)
    const perSecond = (runs: Figures[]) => Math.round(median(runs.map((each) => each.perSecond)))
    const [mine, theirs] = [perSecond(ourRuns), perSecond(rawRuns)]
    report({
      benchmark: 'import-500',
      settings: { callers: CALLERS, size: SIZE, callsOfEach: CALLS, runs: RUNS, known: 'half' },
      figures: {
        import_subscribers: { 'rows/s': mine, 'peak MB': system.memory('api').peak },
        'raw INSERT … ON CONFLICT': { 'rows/s': theirs, 'peak MB': '' },
      },
      ratio: mine / theirs,
      must: '≥ 0.3×',
      aim: '≥ 0.6×',
    })
  } finally {
    await pool.end()
    await system.stop()
  }
}

/** Lets every caller send lists one after the other. Each list repeats half of the previous one with other scores. */
async function load(send: (people: Person[]) => Promise<void>, run: string, calls = CALLS): Promise<Figures> {
  const started = performance.now()
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, caller) => {
      for (let call = 0; call < calls; call++) await send(list(run, caller, call))
    }),
  )
  return { perSecond: (CALLERS * calls * SIZE) / ((performance.now() - started) / 1_000) }
}

function list(run: string, caller: number, call: number): Person[] {
  return Array.from({ length: SIZE }, (_, index) => {
    const number = call * (SIZE / 2) + index
    return {
      email: `${run}-${caller}-${number}@example.com`,
      name: `Person ${number}`,
      tags: ['bench', `list-${number % 4}`],
      fields: { plan: number % 2 ? 'pro' : 'free', score: call },
    }
  })
}

async function importPeople({ url, token }: System, people: Person[]): Promise<void> {
  const response = await fetch(`${url}/api/v2/tools/import_subscribers`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ subscribers: people }),
  })
  if (!response.ok)
    throw new Error(`import_subscribers answered ${response.status}: ${await response.text()}`)
}

async function insertRaw(pool: pg.Pool, organizationId: string, people: Person[]): Promise<void> {
  const tags = people.flatMap(({ email, tags: names }) => names.map((name) => ({ email, name })))
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query(
      `insert into subscriber (id, organization_id, email, name, status, fields)
      select new_id(), $1, email, name, 'SUBSCRIBED', fields
      from unnest($2::text[], $3::text[], $4::jsonb[]) as given (email, name, fields)
      on conflict (organization_id, email_key) do update
        set name = excluded.name, fields = subscriber.fields || excluded.fields`,
      [
        organizationId,
        people.map(({ email }) => email),
        people.map(({ name }) => name),
        people.map(({ fields }) => JSON.stringify(fields)),
      ],
    )
    await client.query(
      `insert into subscriber_tag (organization_id, subscriber_id, tag_id)
      select $1, subscriber.id, tag.id from unnest($2::text[], $3::text[]) as pair (email, name)
      join subscriber on subscriber.organization_id = $1 and subscriber.email_key = lower(pair.email)
      join tag on tag.organization_id = $1 and tag.name_key = lower(pair.name) on conflict do nothing`,
      [organizationId, tags.map(({ email }) => email), tags.map(({ name }) => name)],
    )
    await client.query('commit')
  } finally {
    client.release()
  }
}

/** Throws unless every person exists once, with both tags, the last score and the matching events. */
async function prove({ services, organizationId }: System): Promise<void> {
  const people = (CALLERS * SIZE * (RUNS * (CALLS + 1) + 2)) / 2
  const updated = (CALLERS * SIZE * RUNS * (CALLS - 1)) / 2
  const found = await row<Record<string, number>>(
    services.orm.em.fork(),
    sql`select (select count(*)::int from subscriber where organization_id = ${organizationId}) as people,
      (select count(*)::int from subscriber_tag where organization_id = ${organizationId}) as tags,
      (select count(*)::int from subscriber_event where organization_id = ${organizationId}
        and type = 'SUBSCRIBED') as subscribed,
      (select count(*)::int from subscriber_event where organization_id = ${organizationId}
        and type = 'FIELD_UPDATED') as updated`,
  )
  const expected = { people, tags: 2 * people, subscribed: people, updated }
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    throw new Error(`expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`)
  }
}
