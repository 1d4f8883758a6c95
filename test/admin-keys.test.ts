import test from 'ava'
import { sql } from 'kysely'

import { Failure } from '../src/catalogue/failure.ts'
import { hashToken } from '../src/catalogue/tokens.ts'
import { row } from '../src/database.ts'
import { createAdminKey, listAdminKeys, revokeAdminKey } from '../src/domain/organizations/admin-keys.ts'
import { encodeId, newId, readId } from '../src/ids.ts'
import { type TestServices, testServices } from './helpers/database.ts'

let services: TestServices

test.before(async () => {
  services = await testServices()
})
test.after.always(() => services?.close())

test('of an admin key only the SHA-256 and the last four characters are kept', async (t) => {
  const em = services.orm.em.fork()
  const made = await createAdminKey(em, ' Support desk ')
  t.regex(made.key, /^pladmin_[0-9a-f]{64}$/)
  t.like(made, { name: 'Support desk', lastFour: made.key.slice(-4), lastUsedAt: null, revokedAt: null })
  const stored = await row<{ text: string }>(
    em,
    sql`select to_jsonb(admin_key)::text as text from admin_key where id = ${readId('adm', made.id)}`,
  )
  t.false(stored?.text.includes(made.key.slice('pladmin_'.length)))
  t.true(stored?.text.includes(hashToken(made.key).toString('hex')))
})

test('the list has every key, the newest first, and none of their texts', async (t) => {
  const em = services.orm.em.fork()
  const { key, ...first } = await createAdminKey(em, 'first')
  const { key: other, ...second } = await createAdminKey(em, 'second')
  t.not(key, other)
  const listed = await listAdminKeys(em)
  const both = listed.filter(({ id }) => id === first.id || id === second.id)
  t.deepEqual(both, [second, first])
})

test('a key is revoked once and stays in the list', async (t) => {
  const em = services.orm.em.fork()
  const { id } = await createAdminKey(em, 'for a while')
  const { revokedAt } = await revokeAdminKey(em, id)
  t.true(Date.parse(revokedAt ?? '') > 0)
  t.is((await revokeAdminKey(em, id)).revokedAt, revokedAt)
  t.is((await listAdminKeys(em)).find((key) => key.id === id)?.revokedAt, revokedAt)
})

test('what is no key, and a name that is none, are refused', async (t) => {
  const em = services.orm.em.fork()
  for (const id of ['', 'adm_x', encodeId('adm', newId()), encodeId('tok', newId())]) {
    const refused = await t.throwsAsync(revokeAdminKey(em, id), { instanceOf: Failure })
    t.is(refused?.code, 'NOT_FOUND', id)
  }
  for (const name of ['', '   ', 'two\nlines', 'x'.repeat(101)]) {
    const refused = await t.throwsAsync(createAdminKey(em, name), { instanceOf: Failure })
    t.is(refused?.code, 'INVALID_INPUT', name)
  }
})
