import { randomBytes } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'

import pg from 'pg'

import { startPostgres, type Postgres, type PostgresOptions } from '../../scripts/services/postgres.ts'
import { startTemporal, type Temporal } from '../../scripts/services/temporal.ts'

/** The servers shared by the whole test run; scripts/test.ts starts and stops them. */
export type Services = {
  /** The URL of a superuser. Create databases of your own, never tables in this one. */
  databaseUrl: string
  temporalAddress: string
  namespace: string
}

/** A database that only one test file uses. */
export type TestDatabase = {
  url: string
  name: string
  drop(): Promise<void>
}

/** Returns the shared PostgreSQL and Temporal of this run. */
export async function services(): Promise<Services> {
  return {
    databaseUrl: required('DATABASE_URL_ADMIN'),
    temporalAddress: required('TEMPORAL_ADDRESS'),
    namespace: required('TEMPORAL_NAMESPACE'),
  }
}

/** Creates an empty database, or a copy of `template`, on the shared server. */
export async function createDatabase(template = 'template1'): Promise<TestDatabase> {
  const { databaseUrl } = await services()
  const name = `test_${randomBytes(6).toString('hex')}`
  const url = new URL(databaseUrl)
  await query(url.href, `CREATE DATABASE ${name} TEMPLATE ${pg.escapeIdentifier(template)}`)
  const own = new URL(databaseUrl)
  own.pathname = `/${name}`
  return { url: own.href, name, drop: () => query(url.href, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) }
}

/** Creates a directory that is deleted at the end of the run. */
export function scratchDirectory(name = 'scratch'): string {
  return mkdtempSync(join(required('POSTLOOM_TEST_DIRECTORY'), `${name}-`))
}

/** Starts a separate PostgreSQL that tests can kill and restart. It is crash-safe by default. */
export async function startOwnPostgres(options: Partial<PostgresOptions> = {}): Promise<Postgres> {
  const directory = options.directory ?? scratchDirectory('postgres')
  return await startPostgres({
    directory,
    dataParent: required('POSTLOOM_TEST_DIRECTORY'),
    logFile: join(directory, 'postgres.log'),
    maxConnections: 50,
    ...options,
  })
}

/** Starts a separate Temporal on a file, which tests can kill and restart with the same directory and port. */
export async function startOwnTemporal(
  directory = scratchDirectory('temporal'),
  port = 0,
  dynamic: Record<string, number> = {},
): Promise<Temporal> {
  return await startTemporal({
    pidFile: join(directory, 'temporal.pid'),
    logFile: join(directory, 'temporal.log'),
    databaseFile: join(directory, 'temporal.sqlite'),
    port,
    dynamic,
  })
}

async function query(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
}

function required(name: string): string {
  const value = process.env[name]
  if (value) return value
  throw new Error(`${name} is not set: run tests with "npm test -- FILE" or "node scripts/test.ts FILE"`)
}
