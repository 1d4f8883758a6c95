import { Migrator } from '@mikro-orm/migrations'
import { type EntityManager, MikroORM } from '@mikro-orm/postgresql'
import { CompiledQuery, type Kysely, type QueryResult, sql } from 'kysely'
import pg from 'pg'

import { ENTITIES } from './entities/entities.ts'
import { MIGRATIONS } from './migrations/migrations.ts'

export type { EntityManager }

const MIGRATION_LOCK = 7_305_001

/** A template, or a prepared statement with its values. */
type Statement = { execute(database: Kysely<unknown>): Promise<QueryResult<unknown>> }

/** The names of prepared statements by their text. */
const PREPARED = new Map<string, string>()

/** node-postgres prepares a statement that has a name, but Kysely hands over its text alone. */
class PreparingClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config)
    // As Kysely calls it: a text with its values, or a cursor.
    const query = this.query.bind(this) as (statement: unknown, values?: unknown[]) => unknown
    const prepare = (statement: unknown, values?: unknown[]) => {
      const name = typeof statement === 'string' ? PREPARED.get(statement) : undefined
      return query(name === undefined ? statement : { name, text: statement }, values)
    }
    Object.assign(this, { query: prepare })
  }
}

/** How a process uses the database; a statement that runs longer than `statementTimeoutMs` is cut off (SQLSTATE 57014). */
export type DatabaseOptions = { poolSize?: number; applicationName?: string; statementTimeoutMs?: number }

/** Opens a pool on the database; `close()` it when done. */
export async function openDatabase(databaseUrl: string, options: DatabaseOptions = {}): Promise<MikroORM> {
  return MikroORM.init({
    clientUrl: databaseUrl,
    entities: ENTITIES,
    // Standard output belongs to logs and answers that programs read.
    logger: (line) => console.error(line),
    colors: false,
    extensions: [Migrator],
    migrations: {
      migrationsList: MIGRATIONS,
      tableName: 'migration',
      snapshot: false,
    },
    pool: { min: 0, max: options.poolSize ?? 10 },
    driverOptions: {
      application_name: options.applicationName ?? 'postloom',
      ...(options.statementTimeoutMs && { statement_timeout: options.statementTimeoutMs }),
      Client: PreparingClient,
      onPoolCreated(pool: pg.Pool) {
        freeLostClients(pool)
        keepLateClients(pool)
      },
    },
  })
}

/**
 * Takes a connection out of the pool when it is lost in use. A transaction on it cannot be rolled back, and whoever
 * fails to roll back never releases: each loss would cost the pool a place for ever, and closing it would wait.
 */
function freeLostClients(pool: pg.Pool): void {
  const inUse = new WeakSet<pg.PoolClient>()
  pool.on('acquire', (client) => inUse.add(client))
  pool.on('release', (_error, client) => inUse.delete(client))
  pool.on('connect', (client) => {
    client.once('end', () => {
      if (!inUse.has(client)) return
      const release = client.release.bind(client)
      // Those who do release would be told that they did it twice.
      client.release = () => undefined
      release(true)
    })
  })
}

/**
 * Gives nobody a connection that is only there when the pool is closing. Kysely has forgotten the pool by then, stumbles
 * over that without a release, and closing would wait for the connection for ever.
 */
function keepLateClients(pool: pg.Pool): void {
  const connect = pool.connect.bind(pool)
  const connectInTime = async (): Promise<pg.PoolClient> => {
    const client = await connect()
    if (!pool.ending) return client
    client.release(true)
    throw new Error('the connections to the database are being closed')
  }
  type Callback = Parameters<typeof connect>[0]
  Object.assign(pool, { connect: (callback?: Callback) => (callback ? connect(callback) : connectInTime()) })
}

/** Brings the database up to date; several processes may call it at once, one works and the others wait. */
export async function migrate(config: { databaseUrl: string }): Promise<void> {
  const orm = await openDatabase(config.databaseUrl, { poolSize: 3, applicationName: 'postloom migrate' })
  try {
    await orm.em.fork().transactional(async (em) => {
      await execute(em, sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`)
      await orm.migrator.up()
    })
  } finally {
    await orm.close()
  }
}

/** The rows of a statement, in the transaction of `em` when it has one; values in the template are bound. */
export async function rows<Row>(em: EntityManager, statement: Statement): Promise<Row[]> {
  const { rows: found } = await statement.execute(em.getKysely())
  // The caller names the shape its own select list has.
  return found as Row[]
}

/** The only row of a statement, or null. */
export async function row<Row>(em: EntityManager, statement: Statement): Promise<Row | null> {
  const found = await rows<Row>(em, statement)
  return found[0] ?? null
}

/** Runs a statement and says how many rows it changed. */
export async function execute(em: EntityManager, statement: Statement): Promise<number> {
  const { numAffectedRows } = await statement.execute(em.getKysely())
  return Number(numAffectedRows ?? 0n)
}

/** What an operator asks of a database: its version, its clock, and which of our migrations it lacks. */
export async function inspectDatabase(
  em: EntityManager,
): Promise<{ version: string; now: Date; pending: string[] }> {
  const found = await row<{ version: string; now: string; isNew: boolean }>(
    em,
    sql`select current_setting('server_version') as version, clock_timestamp() as now,
      to_regclass('migration') is null as "isNew"`,
  )
  if (!found) throw new Error('a statement without a condition gave no row')
  const applied = found.isNew ? [] : await rows<{ name: string }>(em, sql`select name from migration`)
  const names = new Set(applied.map(({ name }) => name))
  const pending = MIGRATIONS.flatMap(({ name }) => (names.has(name) ? [] : [name]))
  return { version: found.version, now: new Date(found.now), pending }
}

/** Whether the database answers. */
export async function isReachable(em: EntityManager): Promise<boolean> {
  try {
    await execute(em, sql`select 1`)
    return true
  } catch {
    return false
  }
}

/** Wakes those who listen to these channels. */
export async function notify(em: EntityManager, channels: readonly string[]): Promise<void> {
  await execute(em, sql`select pg_notify(channel, '') from unnest(${array(channels, 'text')}) as channel`)
}

/**
 * Declares a statement that requests repeat, with `$1`, `$2`, … in its text: each connection parses and plans it once.
 * What is planned once must not depend on its values, so it calls a function of the database or goes by a unique key.
 */
export function prepared(name: string, text: string): (...values: readonly unknown[]) => Statement {
  PREPARED.set(text, name)
  return (...values) => ({
    execute: (database) => database.executeQuery(CompiledQuery.raw(text, [...values])),
  })
}

/** An array bound as one parameter of a PostgreSQL array type, for `unnest` and `= any`. */
export function array(
  values: readonly unknown[],
  type: 'uuid' | 'text' | 'int' | 'jsonb' | 'timestamptz' | 'boolean',
) {
  const elements = type === 'jsonb' ? values.map((value) => JSON.stringify(value)) : values
  return sql`${elements}::${sql.raw(type)}[]`
}

/** A value bound as `jsonb`. */
export function json(value: unknown) {
  return sql`${JSON.stringify(value)}::jsonb`
}
