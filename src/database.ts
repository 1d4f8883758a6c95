import { Migrator } from '@mikro-orm/migrations'
import { type EntityManager, MikroORM } from '@mikro-orm/postgresql'
import { CompiledQuery, type Kysely, type QueryResult, sql } from 'kysely'
import pg from 'pg'

import { ENTITIES } from './entities/entities.ts'
import { MIGRATIONS } from './migrations/migrations.ts'

export type { EntityManager }

const MIGRATION_LOCK = 7_305_001

/** A Kysely template, or a prepared statement with its values. */
type Statement = { execute(database: Kysely<unknown>): Promise<QueryResult<unknown>> }

/**
 * How a connection notices a database host that vanishes without closing it, such as a failed machine: after 10 s of
 * silence it probes the host, and it breaks when no probe is answered. A statement would wait forever otherwise.
 */
export const NOTICE_VANISHED_HOST = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 }

/** The names of prepared statements by their text. */
const PREPARED = new Map<string, string>()

/**
 * Passes on the names of prepared statements: node-postgres prepares a statement that has a name, but Kysely passes
 * only its text.
 */
class PreparingClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config)
    // Kysely calls `query` with a text and its values, or with a cursor.
    const query = this.query.bind(this) as (statement: unknown, values?: unknown[]) => unknown
    const prepare = (statement: unknown, values?: unknown[]) => {
      const name = typeof statement === 'string' ? PREPARED.get(statement) : undefined
      return query(name === undefined ? statement : { name, text: statement }, values)
    }
    Object.assign(this, { query: prepare })
  }
}

/**
 * How a process uses the database. A statement that runs longer than `statementTimeoutMs` is cancelled (SQLSTATE
 * 57014). Work that gets no connection within `connectionTimeoutMs` fails, and `isDatabaseAway` is true of its error.
 */
export type DatabaseOptions = {
  poolSize?: number
  applicationName?: string
  statementTimeoutMs?: number
  connectionTimeoutMs?: number
}

/** Without a limit, requests to a database that hangs would wait, and take memory, for as long as it hangs. */
const CONNECTION_TIMEOUT_MS = 30_000

/** Opens a pool on the database; `close()` it when done. */
export async function openDatabase(databaseUrl: string, options: DatabaseOptions = {}): Promise<MikroORM> {
  return MikroORM.init({
    clientUrl: databaseUrl,
    entities: ENTITIES,
    // Standard output is for logs and for output that programs read.
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
      connectionTimeoutMillis: options.connectionTimeoutMs ?? CONNECTION_TIMEOUT_MS,
      ...NOTICE_VANISHED_HOST,
      Client: PreparingClient,
      onPoolCreated(pool: pg.Pool) {
        freeLostClients(pool)
        keepLateClients(pool)
      },
    },
  })
}

/**
 * Removes a connection from the pool when it is lost in use. Its transaction cannot be rolled back, and code that fails
 * to roll back never releases the connection: each loss would cost the pool a place forever, and closing the pool would
 * wait for it.
 */
function freeLostClients(pool: pg.Pool): void {
  const inUse = new WeakSet<pg.PoolClient>()
  pool.on('acquire', (client) => inUse.add(client))
  pool.on('release', (_error, client) => inUse.delete(client))
  pool.on('connect', (client) => {
    client.once('end', () => {
      if (!inUse.has(client)) return
      const release = client.release.bind(client)
      // Callers that do release it would get an error for releasing it twice.
      client.release = () => undefined
      release(true)
    })
  })
}

/**
 * Rejects a connection that is only ready when the pool is closing. By then Kysely has dropped the pool and fails
 * without releasing the connection, and closing would wait for it forever.
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

/** Brings the database up to date. Several processes may call it at once: one migrates, and the others wait. */
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

/** Returns the rows of a statement, in the transaction of `em` when it has one. Values in the template are bound. */
export async function rows<Row>(em: EntityManager, statement: Statement): Promise<Row[]> {
  const { rows: found } = await statement.execute(em.getKysely())
  // The caller declares the shape of its own select list.
  return found as Row[]
}

/** Returns the first row of a statement, which should have no other, or null. */
export async function row<Row>(em: EntityManager, statement: Statement): Promise<Row | null> {
  const found = await rows<Row>(em, statement)
  return found[0] ?? null
}

/** Runs a statement and returns the number of rows that it changed. */
export async function execute(em: EntityManager, statement: Statement): Promise<number> {
  const { numAffectedRows } = await statement.execute(em.getKysely())
  return Number(numAffectedRows ?? 0n)
}

/** Returns what an operator wants to know of a database: its version, its clock, and the migrations that it lacks. */
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

/** Returns whether the database answers. */
export async function isReachable(em: EntityManager): Promise<boolean> {
  try {
    await execute(em, sql`select 1`)
    return true
  } catch {
    return false
  }
}

/** Notifies the listeners of these channels. */
export async function notify(em: EntityManager, channels: readonly string[]): Promise<void> {
  await execute(em, sql`select pg_notify(channel, '') from unnest(${array(channels, 'text')}) as channel`)
}

/**
 * Declares a statement that is used often, with `$1`, `$2`, … in its text: each connection parses and plans it once.
 * Such a plan must not depend on the values, so the statement calls a database function or uses a unique key.
 */
export function prepared(name: string, text: string): (...values: readonly unknown[]) => Statement {
  PREPARED.set(text, name)
  return (...values) => ({
    execute: (database) => database.executeQuery(CompiledQuery.raw(text, [...values])),
  })
}

type ElementType = 'uuid' | 'text' | 'int' | 'jsonb' | 'timestamptz' | 'boolean'

/** Binds an array as one parameter of a PostgreSQL array type, for `unnest` and `= any`. */
export function array(values: readonly unknown[], type: ElementType) {
  const elements = type === 'jsonb' ? values.map(jsonText) : values
  return sql`${elements}::${sql.raw(type)}[]`
}

/** Binds one value of each item as an array, so that several of them form the columns of an `unnest`. */
export function column<Item>(
  items: readonly Item[],
  pick: (item: Item, index: number) => unknown,
  type: ElementType,
) {
  return array(items.map(pick), type)
}

/** Binds a value as `jsonb`. */
export function json(value: unknown) {
  return sql`${jsonText(value)}::jsonb`
}

/**
 * Returns a value as JSON. What PostgreSQL refuses in it becomes U+FFFD: the character NUL, and half of a UTF-16
 * surrogate pair, which remains where a text was cut off.
 */
function jsonText(value: unknown): string {
  const text = JSON.stringify(value)
  if (!text.includes(String.raw`\u`)) return text
  // Also matches other escapes, so that the text "\\u0000" behind an escaped backslash stays as it is.
  return text.replaceAll(/\\(?:(u0000|ud[89a-f][0-9a-f]{2})|.)/g, (escape, refused?: string) =>
    refused === undefined ? escape : '\ufffd',
  )
}
