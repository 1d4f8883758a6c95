import test from 'ava'
import { sql } from 'kysely'

import { Failure, type FailureCode } from '../src/catalogue/failure.ts'
import { row } from '../src/database.ts'
import {
  createMember,
  listMembers,
  logIn,
  readMemberships,
  removeMember,
  setMemberPassword,
} from '../src/domain/organizations/members.ts'
import { makeTenant } from './helpers/automation.ts'
import { type TestServices, testServices } from './helpers/database.ts'

const PASSWORD = 'correct horse battery'

let services: TestServices

test.before(async () => {
  services = await testServices()
})
test.after.always(() => services?.close())

const logInAs = (email: string, password: string) => logIn(services.orm.em.fork(), { email, password })
const enter = async (email: string, password: string) => (await logInAs(email, password))?.id ?? null

test('a member logs in with their own password only, and what is stored does not tell it', async (t) => {
  const tenant = await makeTenant(services)
  const made = await tenant.within((call) =>
    createMember(call, { email: 'Ada@team.example', name: 'Ada', password: PASSWORD }),
  )
  t.like(made, { email: 'Ada@team.example', name: 'Ada', hasPassword: true, lastLoginAt: null })
  t.is(await enter('ada@TEAM.example', PASSWORD), made.id)
  t.is(await enter('ada@team.example', `${PASSWORD}.`), null)
  t.is(await enter('ada@team.example', ''), null)
  t.is(await enter('nobody@team.example', PASSWORD), null)
  t.is(await enter('ada\u0000@team.example', PASSWORD), null)
  const stored = await row<{ password: string }>(
    services.orm.em.fork(),
    sql`select password from member where email = 'Ada@team.example'`,
  )
  t.regex(stored?.password ?? '', /^scrypt\$32768\$8\$3\$[\w-]{22}\$[\w-]{43}$/)
  const [listed] = await tenant.within(listMembers)
  t.truthy(listed?.lastLoginAt)

  await tenant.within((call) => setMemberPassword(call, 'ada@team.example', 'another long secret'))
  t.is(await enter('ada@team.example', PASSWORD), null)
  t.is(await enter('ada@team.example', 'another long secret'), made.id)

  // Some keyboards enter an accent as a separate character, so that the decomposed password exceeds 200 characters.
  const composed = 'é'.repeat(150)
  await tenant.within((call) => setMemberPassword(call, 'ada@team.example', composed))
  t.is(await enter('ada@team.example', composed.normalize('NFD')), made.id)
})

test('without a password nobody logs in', async (t) => {
  const tenant = await makeTenant(services)
  const made = await tenant.within((call) => createMember(call, { email: 'new@team.example' }))
  t.false(made.hasPassword)
  t.is(await enter('new@team.example', ''), null)
  await tenant.within((call) => setMemberPassword(call, made.id, PASSWORD))
  t.is(await enter('new@team.example', PASSWORD), made.id)
})

test('addresses that are none or taken, and passwords of no use, are refused and leave nothing', async (t) => {
  const tenant = await makeTenant(services)
  const create = (input: { email: string; name?: string; password?: string }) =>
    tenant.within((call) => createMember(call, input))
  await create({ email: 'bea@team.example', password: PASSWORD })
  const refused: [FailureCode, Parameters<typeof create>[0]][] = [
    ['ALREADY_EXISTS', { email: 'BEA@team.example' }],
    ['INVALID_INPUT', { email: 'bea@team.example', password: PASSWORD }],
    ['INVALID_INPUT', { email: 'nonsense' }],
    ['INVALID_INPUT', { email: 'cleo@team.example', password: 'too short' }],
    ['INVALID_INPUT', { email: 'cleo@team.example', password: 'x'.repeat(201) }],
    ['INVALID_INPUT', { email: 'cleo@team.example', name: 'two\nlines' }],
  ]
  for (const [code, input] of refused) {
    const failure = await t.throwsAsync(create(input), { instanceOf: Failure })
    t.is(failure?.code, code, JSON.stringify(input))
  }
  const listed = await tenant.within(listMembers)
  t.deepEqual(
    listed.map(({ email }) => email),
    ['bea@team.example'],
  )
})

test('somebody belongs to several organizations, each of which sees its own members only', async (t) => {
  const [one, other] = [await makeTenant(services), await makeTenant(services)]
  const made = await one.within((call) =>
    createMember(call, { email: 'dora@team.example', password: PASSWORD }),
  )
  const missing = await t.throwsAsync(
    other.within((call) => removeMember(call, made.id)),
    { instanceOf: Failure },
  )
  t.is(missing?.code, 'NOT_FOUND')
  await t.throwsAsync(other.within((call) => setMemberPassword(call, made.id, 'another long secret')))
  const joined = await other.within((call) => createMember(call, { email: 'dora@team.example' }))
  t.is(joined.id, made.id)
  const login = await logInAs('dora@team.example', PASSWORD)
  const memberships = async () => login && (await readMemberships(services.orm.em.fork(), login))
  t.is((await memberships())?.organizations.length, 2)

  await one.within((call) => removeMember(call, 'dora@team.example'))
  t.deepEqual(await one.within(listMembers), [])
  t.is(await enter('dora@team.example', PASSWORD), made.id)
  await other.within((call) => removeMember(call, made.id))
  t.is(await enter('dora@team.example', PASSWORD), null)
  t.is(await memberships(), null)
})
