import test from 'ava'
import { sql } from 'kysely'
import pg from 'pg'

import { databaseCode } from '../src/catalogue/database-error.ts'
import { execute, row } from '../src/database.ts'
import { keepHouse } from '../src/domain/housekeeping.ts'
import { testServices } from './helpers/database.ts'
import { eventually } from './helpers/eventually.ts'

const LOCK_NOT_AVAILABLE = '55P03'

test('a long read, such as a back-up, delays the tables of the next months but no writer', async (t) => {
  const services = await testServices()
  t.teardown(() => services.close())
  const em = services.orm.em.fork()
  const newest = async () =>
    await row<{ name: string }>(
      em,
      sql`select max(relname) as name from pg_class where relkind = 'r' and relname ~ '^decision_[0-9]'`,
    )
  const before = await newest()
  await execute(em, sql`drop table ${sql.table(before?.name ?? '')}`)
  const reader = new pg.Client(services.databaseUrl)
  await reader.connect()
  t.teardown(() => reader.end())
  await reader.query('begin; select from decision')

  const keeping = t.throwsAsync(keepHouse(services.orm.em.fork()))
  await eventually('it to wait for the reader', () =>
    row(em, sql`select from pg_locks where mode = 'AccessExclusiveLock' and not granted`),
  )
  const writer = new pg.Client({ connectionString: services.databaseUrl, statement_timeout: 30_000 })
  await writer.connect()
  t.teardown(() => writer.end())
  await t.notThrowsAsync(writer.query('delete from decision'))
  t.is(databaseCode(await keeping), LOCK_NOT_AVAILABLE)
  await reader.query('commit')
  await keepHouse(em)
  t.deepEqual(await newest(), before)
})
