import { Migrator } from '@mikro-orm/migrations'
import { type EntityManager, MikroORM } from '@mikro-orm/postgresql'
import { type RawBuilder, sql } from 'kysely'

import { ENTITIES } from './entities/entities.ts'
import { MIGRATIONS } from './migrations/migrations.ts'

export type { EntityManager }

const MIGRATION_LOCK = 7_305_001

/** Opens a pool on the database; `close()` it when done. */
export async function openDatabase(
  databaseUrl: string,
  options: { poolSize?: number; applicationName?: string } = {},
): Promise<MikroORM> {
  return MikroORM.init({
    clientUrl: databaseUrl,
    entities: ENTITIES,
    extensions: [Migrator],
    migrations: {
      migrationsList: MIGRATIONS,
      tableName: 'migration',
      snapshot: false,
    },
    pool: { min: 0, max: options.poolSize ?? 10 },
    driverOptions: { application_name: options.applicationName ?? 'postloom' },
  })
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
export async function rows<Row>(em: EntityManager, statement: RawBuilder<unknown>): Promise<Row[]> {
  const { rows: found } = await statement.execute(em.getKysely())
  // The caller names the shape its own select list has.
  return found as Row[]
}

/** The only row of a statement, or null. */
export async function row<Row>(em: EntityManager, statement: RawBuilder<unknown>): Promise<Row | null> {
  const found = await rows<Row>(em, statement)
  return found[0] ?? null
}

/** Runs a statement and says how many rows it changed. */
export async function execute(em: EntityManager, statement: RawBuilder<unknown>): Promise<number> {
  const { numAffectedRows } = await statement.execute(em.getKysely())
  return Number(numAffectedRows ?? 0n)
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
