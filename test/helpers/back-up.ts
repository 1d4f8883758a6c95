import { sql } from 'kysely'

import { type EntityManager, execute, rows } from '../../src/database.ts'

/**
 * Copies all rows of the database. The returned function puts them back in one transaction and fires no triggers, as
 * pg_restore does: what was written since is lost, and no row keeps its transaction id. Nothing may write meanwhile.
 */
export async function backUp(em: EntityManager): Promise<() => Promise<void>> {
  const tables = await rows<{ name: string; columns: string[] }>(
    em,
    sql`select class.relname as name, (select array_agg(attname::text order by attnum) from pg_attribute
        where attrelid = class.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns
      from pg_class class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`,
  )
  await execute(em, sql`create schema back_up`)
  for (const { name } of tables) {
    await execute(
      em,
      sql`create table ${sql.table(`back_up.${name}`)} as table ${sql.table(`public.${name}`)}`,
    )
  }
  return () =>
    em.transactional(async (inside) => {
      await execute(inside, sql`set local session_replication_role = replica`)
      const names = tables.map(({ name }) => sql.table(`public.${name}`))
      await execute(inside, sql`truncate ${sql.join(names)}`)
      for (const { name, columns } of tables) {
        const list = sql.join(columns.map((column) => sql.ref(column)))
        await execute(
          inside,
          sql`insert into ${sql.table(`public.${name}`)} (${list}) overriding system value
            select ${list} from ${sql.table(`back_up.${name}`)}`,
        )
      }
    })
}
