import test from 'ava'
import { sql } from 'kysely'

import { rows } from '../src/database.ts'
import { type TestServices, testServices } from './helpers/database.ts'

type Column = { table: string; column: string; type: string; isNullable: boolean }

/**
 * Keys that are unique across all organizations: those of organizations, people and secrets, verified domains, names in
 * DNS, and shared work.
 */
const OVER_ALL = [
  'organization_pkey',
  'organization_slug_key',
  'admin_key_pkey',
  'admin_key_key_hash_key',
  'api_token_pkey',
  'api_token_token_hash_key',
  'member_pkey',
  'member_email_key_key',
  'membership_member_id_fkey',
  'oauth_record_pkey',
  'oauth_grant_pkey',
  'domain_verified_once',
  'delivery_queue_pkey',
  'lane_bucket_pkey',
  'outbox_pkey',
  'segment_change_pkey',
  'receiver_pkey',
]

const fixture: { services?: TestServices } = {}

test.before(async () => {
  fixture.services = await testServices()
})

test.after.always(() => fixture.services?.close())

test('entities have the columns that the migrations made, of the same types', async (t) => {
  const mapped = [...services().orm.getMetadata().getAll().values()].flatMap(({ tableName, props }) =>
    props.map(({ fieldNames: [column = ''], columnTypes: [type = ''], nullable }) =>
      describe({ table: tableName, column, type, isNullable: nullable === true }),
    ),
  )
  const made = await rows<Column>(
    services().orm.em.fork(),
    sql`select class.relname as table, attname as column, not attnotnull as "isNullable",
        case type.typtype when 'd' then format_type(typbasetype, typtypmod) else format_type(atttypid, atttypmod) end as type
      from pg_attribute join pg_class class on class.oid = attrelid join pg_type type on type.oid = atttypid
      where class.relkind in ('r', 'p') and not class.relispartition
        and class.relnamespace = 'public'::regnamespace and class.relname <> 'migration'
        and attnum > 0 and not attisdropped`,
  )
  t.deepEqual(mapped.toSorted(), made.map(describe).toSorted())
})

test('every key and every reference between rows of an organization carries the organization', async (t) => {
  const without = await rows<{ name: string }>(
    services().orm.em.fork(),
    sql`with keyed (name, owner, columns) as (
        select indexrelid::regclass::text, indrelid, indkey::int[] from pg_index where indisunique
        union all
        select conname, conrelid, conkey::int[] from pg_constraint
        where contype = 'f' and confrelid <> 'organization'::regclass)
      select name from keyed join pg_class class on class.oid = owner
      where class.relnamespace = 'public'::regnamespace and not class.relispartition
        and class.relname <> 'migration' and not exists (select from pg_attribute
          where attrelid = owner and attnum = any(columns) and attname = 'organization_id')`,
  )
  t.deepEqual(without.map(({ name }) => name).toSorted(), OVER_ALL.toSorted())
})

function services(): TestServices {
  if (!fixture.services) throw new Error('the services are not open')
  return fixture.services
}

function describe({ table, column, type, isNullable }: Column): string {
  const plain = type
    .replace(/^timestamp(\(\d\))? with time zone$/, 'timestamptz$1')
    .replace(/^bigserial$/, 'bigint')
    .replace(/^int\b/, 'integer')
    .replace(/^bool$/, 'boolean')
  return `${table}.${column} ${plain}${isNullable ? ' or null' : ''}`
}
