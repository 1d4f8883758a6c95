import { chmodSync, createReadStream, createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'

import { sql } from 'kysely'

import type { SubscriberImport } from '../schema/import.ts'
import { execute, row } from '../src/database.ts'
import { newId } from '../src/ids.ts'
import { report } from './shared/report.ts'
import { startSystem, type System } from './shared/system.ts'

/**
 * import-csv: a file of 1,000,000 people (or --rows N) with a tag and two fields through POST /api/v2/imports, compared
 * with COPY of the same people into the same table with its indexes, and the peak memory of the worker. The benchmark
 * proves that every person exists with tag, field and event. COPY runs first.
 */
const { values } = parseArgs({
  options: { rows: { type: 'string', default: '1000000' }, json: { type: 'string' } },
})
const ROWS = Number(values.rows)
const FIRST = ['Anna', 'Béla', 'Chloé', 'Dmitri', 'Emeka', 'Fátima', 'Göran', 'Hiro', 'Inês', 'Jonas']
const LAST = ['Adeyemi', 'Bergström', 'Costa', 'Dubois', 'Eriksen', 'Fischer', 'García', 'Haddad']

await measure()

async function measure(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'postloom-import-'))
  chmodSync(directory, 0o755)
  const system = await startSystem()
  try {
    const copied = await copyRaw(system, directory)
    const { uploadSeconds, seconds } = await importFile(system, directory)
    await prove(system)
    const figures = (time: number) => ({ seconds: Math.round(time), 'rows/s': Math.round(ROWS / time) })
    report({
      benchmark: 'import-csv',
      settings: { rows: ROWS, uploadSeconds: Math.round(uploadSeconds) },
      figures: {
        'POST /api/v2/imports': {
          ...figures(seconds),
          'worker peak MB': system.memory('worker').peak,
          'API peak MB': system.memory('api').peak,
        },
        'COPY of the people alone': { ...figures(copied), 'worker peak MB': '', 'API peak MB': '' },
      },
      ratio: copied / seconds,
      must: 'worker < 400 MB',
      aim: '–',
    })
  } finally {
    await system.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

async function copyRaw({ services }: System, directory: string): Promise<number> {
  const [organizationId, file] = [newId(), join(directory, 'copy.csv')]
  const em = services.orm.em.fork()
  await execute(em, sql`insert into organization (id, name, slug) values (${organizationId}, 'Peer', 'peer')`)
  await write(file, '', (index) => {
    const { email, name, plan, score } = person(index)
    return `${newId()},${organizationId},${email},${name},SUBSCRIBED,"{""plan"":""${plan}"",""score"":${score}}"\n`
  })
  const started = performance.now()
  await execute(
    em,
    sql`copy subscriber (id, organization_id, email, name, status, fields) from ${sql.lit(file)} with (format csv)`,
  )
  return (performance.now() - started) / 1_000
}

async function importFile({ url, token }: System, directory: string) {
  const file = join(directory, 'people.csv')
  await write(file, 'email,name,plan,score,tags\r\n', (index) => {
    const { email, name, plan, score } = person(index)
    return `${email},"${name}",${plan},${score},list\r\n`
  })
  const headers = { authorization: `Bearer ${token}` }
  const started = performance.now()
  const response = await fetch(`${url}/api/v2/imports`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'text/csv', 'content-length': String(statSync(file).size) },
    body: Readable.toWeb(createReadStream(file)),
    duplex: 'half',
  })
  const uploadSeconds = (performance.now() - started) / 1_000
  if (response.status !== 202) throw new Error(`the upload answered ${response.status}`)
  // The documented shape of the answer.
  let state = (await response.json()) as SubscriberImport
  while (state.finishedAt === null) {
    await sleep(500)
    const answer = await fetch(`${url}/api/v2/imports/${state.id}`, { headers })
    state = (await answer.json()) as SubscriberImport
  }
  if (state.status !== 'COMPLETED' || state.imported !== ROWS) throw new Error(JSON.stringify(state))
  return { uploadSeconds, seconds: (performance.now() - started) / 1_000 }
}

function person(index: number) {
  const [first, last] = [FIRST[(index * 7) % 10] ?? '', LAST[(index * 3) % 8] ?? '']
  return {
    email: `person.${(Math.imul(index, 2_654_435_761) >>> 0).toString(36)}.${index}@example${index % 50}.com`,
    name: `${first} ${last}`,
    plan: ['free', 'pro', 'team'][index % 3] ?? '',
    score: index % 100,
  }
}

async function write(file: string, header: string, line: (index: number) => string): Promise<void> {
  function* lines(): Generator<string> {
    yield header
    for (let from = 0; from < ROWS; from += 1_000) {
      yield Array.from({ length: Math.min(1_000, ROWS - from) }, (_, index) => line(from + index)).join('')
    }
  }
  await pipeline(Readable.from(lines()), createWriteStream(file, { mode: 0o644 }))
}

async function prove({ services, organizationId }: System): Promise<void> {
  const found = await row<Record<string, number>>(
    services.orm.em.fork(),
    sql`select (select count(*)::int from subscriber where organization_id = ${organizationId}
        and fields ? 'plan' and fields ? 'score') as people,
      (select count(*)::int from subscriber_tag where organization_id = ${organizationId}) as tags,
      (select count(*)::int from subscriber_event where organization_id = ${organizationId}) as events,
      (select count(*)::int from import_chunk where organization_id = ${organizationId}) as chunks`,
  )
  const expected = { people: ROWS, tags: ROWS, events: 2 * ROWS, chunks: 0 }
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    throw new Error(`expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`)
  }
}
