import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { sql } from 'kysely'
import pg from 'pg'

import { readConfig } from '../../src/config.ts'
import { execute, migrate } from '../../src/database.ts'
import { createServices, type Services } from '../../src/services.ts'
import { createDatabase, services as shared } from './services.ts'

const MIGRATION_FILES = join(import.meta.dirname, '../../src/migrations')

/** Services on a migrated database of their own; `close()` drops it. */
export type TestServices = Services & { databaseUrl: string }

/** Creates a migrated database as a copy of a template, which the first test file of a run creates. */
async function migratedDatabase(): Promise<Awaited<ReturnType<typeof createDatabase>>> {
  return await createDatabase(await template())
}

/** Creates services on a new database, with the Temporal of the test run. `env` overrides environment variables. */
export async function testServices(env: Record<string, string> = {}): Promise<TestServices> {
  const { temporalAddress, namespace } = await shared()
  const database = await migratedDatabase()
  const config = readConfig({
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: temporalAddress,
    TEMPORAL_NAMESPACE: namespace,
    TEMPORAL_UI_URL: 'http://127.0.0.1:8233',
    POSTLOOM_BASE_URL: 'http://127.0.0.1:3000',
    LOG_LEVEL: 'error',
    LANE_RATE_TRANSACTIONAL: '0',
    LANE_RATE_BULK: '0',
    ...env,
  })
  const services = await createServices(config, 'test')
  return {
    ...services,
    databaseUrl: database.url,
    async close() {
      await services.close()
      await database.drop()
    },
  }
}

/** Runs `work` while a trigger makes writes to a table fail for one organization (a uuid). */
export async function whileRefused<Result>(
  { orm }: Pick<Services, 'orm'>,
  { write, table, organizationId }: { write: 'insert' | 'update'; table: string; organizationId: string },
  work: () => Promise<Result>,
): Promise<Result> {
  const em = orm.em.fork()
  const name = sql.ref(`refuse_${write}_${table}`)
  await execute(
    em,
    sql`create function ${name}() returns trigger language plpgsql as $fn$
      begin raise exception 'as a fault would'; end $fn$`,
  )
  await execute(
    em,
    sql`create trigger ${name} before ${sql.raw(write)} on ${sql.table(table)} for each row
      when (new.organization_id = ${sql.lit(organizationId)}::uuid) execute function ${name}()`,
  )
  try {
    return await work()
  } finally {
    await execute(em, sql`drop function ${name} cascade`)
  }
}

/** Returns the name of the migrated template. An advisory lock makes sure that parallel test files create it once. */
async function template(): Promise<string> {
  const { databaseUrl } = await shared()
  // The hash covers the files instead of the classes, because some SQL is in constants beside them.
  const files = globSync('*.ts', { cwd: MIGRATION_FILES }).toSorted()
  const text = files.map((file) => readFileSync(join(MIGRATION_FILES, file), 'utf8')).join()
  const name = `template_${createHash('sha256').update(text).digest('hex').slice(0, 12)}`
  const admin = new pg.Client({ connectionString: databaseUrl })
  await admin.connect()
  try {
    await admin.query('select pg_advisory_lock(730500)')
    const { rowCount } = await admin.query('select 1 from pg_database where datname = $1', [name])
    if (rowCount) return name
    const making = `${name}_making`
    await admin.query(`drop database if exists ${making} with (force)`)
    await admin.query(`create database ${making}`)
    const url = new URL(databaseUrl)
    url.pathname = `/${making}`
    await migrate({ databaseUrl: url.href })
    await admin.query(`alter database ${making} rename to ${name}`)
    return name
  } finally {
    await admin.end()
  }
}
