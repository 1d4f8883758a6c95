import { randomBytes } from 'node:crypto'

import test from 'ava'
import { sql } from 'kysely'

import { hashToken, isWellFormedToken, makeAdminKey, makeToken } from '../src/catalogue/tokens.ts'
import { execute, row } from '../src/database.ts'
import { seedDevelopment } from '../src/development.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { startApi, type TestApi } from './helpers/api.ts'

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

test('get_email_senders lists the default sender first', async (t) => {
  const organization = await api.organization()
  const { sender } = await organization.data('create_email_sender', {
    localPart: 'news',
    domain: organization.domain,
    name: 'News',
    replyTo: 'desk@example.com',
  })
  t.like(sender, {
    email: `news@${organization.domain}`,
    name: 'News',
    replyTo: 'desk@example.com',
    isDefault: false,
    verified: true,
  })
  const { senders } = await organization.data('get_email_senders')
  t.deepEqual(
    senders.map(({ isDefault }: { isDefault: boolean }) => isDefault),
    [true, false],
  )
  t.deepEqual(senders[1], sender)
  t.false('replyTo' in senders[0])
})

test('a sender may be made on a domain that is not verified, and says so', async (t) => {
  const organization = await api.organization()
  const em = api.services.orm.em.fork()
  const id = newId()
  await execute(
    em,
    sql`insert into domain (id, organization_id, domain, status)
      values (${id}, ${organization.id}, 'xn--bcher-kva.example', 'PENDING')`,
  )
  for (const [localPart, domain] of [
    ['a', 'xn--bcher-kva.example'],
    ['b', 'Bücher.example'],
    ['c', encodeId('dom', id)],
  ]) {
    const { sender } = await organization.data('create_email_sender', { localPart, domain, name: 'X' })
    t.like(sender, {
      email: `${localPart}@xn--bcher-kva.example`,
      verified: false,
      domainId: encodeId('dom', id),
    })
  }
})

test('the first sender becomes the default, whoever comes first', async (t) => {
  const organization = await api.organization()
  await execute(
    api.services.orm.em.fork(),
    sql`delete from sender where organization_id = ${organization.id}`,
  )
  const answers = await Promise.all(
    ['a', 'b', 'c', 'd'].map((localPart) =>
      organization.call('create_email_sender', { localPart, domain: organization.domain, name: 'X' }),
    ),
  )
  t.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200],
  )
  t.is(answers.filter(({ body }) => body.data.sender.isDefault).length, 1)
})

test('an address in use is refused', async (t) => {
  const organization = await api.organization()
  const answer = await organization.call('create_email_sender', {
    localPart: 'HELLO',
    domain: organization.domain,
    name: 'X',
  })
  t.is(answer.status, 409)
  t.is(answer.body.code, 'ALREADY_EXISTS')
})

for (const [name, value] of [
  ['localPart', ''],
  ['localPart', 'a b'],
  ['localPart', 'a@b'],
  ['localPart', '.a'],
  ['localPart', 'x'.repeat(65)],
  ['localPart', 'a\r\nb'],
  ['localPart', 'é'],
  ['name', ''],
  ['name', ' '],
  ['name', 'a\nBcc: b'],
  ['name', 'x'.repeat(101)],
  ['replyTo', 'nonsense'],
  ['replyTo', ''],
  ['domain', 5],
] as const) {
  test(`create_email_sender refuses ${JSON.stringify(value).slice(0, 30)} as ${name}`, async (t) => {
    const organization = await api.organization()
    const input = { localPart: 'a', domain: organization.domain, name: 'X', [name]: value }
    const answer = await organization.call('create_email_sender', input)
    t.is(answer.status, 400)
    t.is(answer.body.code, 'INVALID_INPUT')
    t.true(answer.body.error.includes(name))
  })
}

test('v1 takes a sender with or without a name, and judges a hostile one at once', async (t) => {
  const { id, domain, token } = await api.organization()
  const address = `hi@${domain}`
  const send = (from: string) =>
    api.request('POST', '/api/v1/emails', {
      token,
      body: { to: 'ada@example.com', subject: 'Hi', content: 'Hello', from },
    })
  const names = { [address]: null, [` <${address}> `]: null, [`The Shop <${address}>`]: 'The Shop' }
  for (const [from, name] of Object.entries({ ...names, [`"A \\"B\\" <c>" <${address}>`]: 'A "B" <c>' })) {
    const { status, body } = await send(from)
    t.is(status, 200, from)
    const found = await row<{ name: string | null; email: string }>(
      api.services.orm.em.fork(),
      sql`select from_name as name, from_email as email from message
        where organization_id = ${id} and id = ${decodeId('eml', body.id)}`,
    )
    t.deepEqual(found, { name, email: address }, from)
  }
  const long = 200_000
  const hostile = [
    `${' '.repeat(long)}x`,
    `${' '.repeat(900)}x`,
    `${' '.repeat(long)}<${address}`,
    `"${'\\"'.repeat(long)}`,
    `A"B <${address}>`,
    `<b> <${address}>`,
    `x@${'ä'.repeat(long)}.example`,
    `${'x'.repeat(201)} <${address}>`,
    `<${address} >`,
  ]
  for (const from of hostile) {
    const { status, body } = await send(from)
    t.is(status, 422, from.slice(0, 40))
    t.regex(body.message, /^from is not a sender: /)
  }
})

test("another organization's domain, and one that is nobody's, are not there", async (t) => {
  const [organization, stranger] = [await api.organization(), await api.organization()]
  const { domains } = await stranger.data('list_domains')
  for (const domain of [stranger.domain, domains[0].id, 'nobody.example', 'not a domain', '']) {
    const answer = await organization.call('create_email_sender', { localPart: 'a', domain, name: 'X' })
    t.is(answer.status, 404, domain)
    t.is(answer.body.code, 'NOT_FOUND')
  }
})

test('list_domains shows the domains of the organization alone, to tokens that may', async (t) => {
  const organization = await api.organization()
  const { domains } = await organization.data('list_domains')
  t.is(domains.length, 1)
  t.like(domains[0], {
    domain: organization.domain,
    status: 'VERIFIED',
    region: 'local',
    providerRecords: [],
    fallbackPriority: null,
    verificationRequestedAt: null,
  })
  t.regex(domains[0].id, /^dom_/)
  const token = await organization.tokenWith(['emails', 'subscribers'])
  t.is((await api.request('POST', '/api/v2/tools/list_domains', { token, body: {} })).status, 403)
})

test('get_org_stats counts what the organization has', async (t) => {
  const [organization, stranger] = [await api.organization(), await api.organization()]
  await stranger.data('add_subscriber', { email: 'x@example.com' })
  for (const email of ['a@example.com', 'b@example.com', 'c@example.com']) {
    await organization.data('add_subscriber', { email, tags: ['t'], fields: { f: 1 } })
  }
  await organization.confirmed('unsubscribe', { email: 'c@example.com' })
  const { stats } = await organization.data('get_org_stats')
  t.like(stats, { plan: 'ENTERPRISE', subscribers: 3, tags: 1, customFields: 1, segments: 0, workflows: 0 })
  t.like(stats.subscribersByStatus, { SUBSCRIBED: 2, UNSUBSCRIBED: 1, BANNED: 0 })
  t.deepEqual(stats.emailsLast30Days, {
    total: 0,
    delivered: 0,
    opened: 0,
    clicked: 0,
    bounced: 0,
    complained: 0,
  })
})

test('get_available_variables names built-in, organization and custom variables', async (t) => {
  const organization = await api.organization()
  await organization.data('add_subscriber', { email: 'a@example.com', fields: { plan: 'pro' } })
  const { builtIn, organization: own, customFields } = await organization.data('get_available_variables')
  const names = builtIn.map(({ name }: { name: string }) => name)
  for (const name of ['name', 'email', 'phone', 'unsubscribeUrl', 'onlineUrl'])
    t.true(names.includes(name), name)
  t.like(own[0], { name: 'org-name', syntax: '{{org-name}}' })
  t.regex(own[0].example, /^Organization /)
  t.deepEqual(customFields, [{ name: 'plan', type: 'string', syntax: '{{plan}}' }])
})

test('a token has its checksum, and a typing mistake is told without asking the database', (t) => {
  const tokens = new Set(Array.from({ length: 100 }, makeToken))
  t.is(tokens.size, 100)
  for (const token of tokens) {
    t.regex(token, /^pl_[0-9A-Za-z]{40}$/)
    t.true(isWellFormedToken(token))
    const at = 3 + Math.floor(Math.random() * 40)
    const other = token[at] === 'a' ? 'b' : 'a'
    t.false(isWellFormedToken(token.slice(0, at) + other + token.slice(at + 1)))
  }
  t.regex(makeAdminKey(), /^pladmin_[0-9a-f]{64}$/)
})

test.serial(
  'the development seed works at once, keeps keys while they are valid, and makes nothing twice',
  async (t) => {
    const config = { databaseUrl: api.services.databaseUrl, encryptionKey: randomBytes(32) }
    const [first] = await Promise.all([seedDevelopment(config), seedDevelopment(config)])
    const kept = await seedDevelopment(config, first)
    t.deepEqual(kept, first)
    const answer = await api.request('POST', '/api/v2/tools/get_email_senders', {
      token: first.apiToken,
      body: {},
    })
    t.is(answer.status, 200)
    t.is(answer.body.data.senders.length, 1)
    t.like(answer.body.data.senders[0], { isDefault: true, verified: true })
    const em = api.services.orm.em.fork()
    await execute(
      em,
      sql`update api_token set revoked_at = now() where token_hash = ${hashToken(first.apiToken)}`,
    )
    const renewed = await seedDevelopment(config, first)
    t.not(renewed.apiToken, first.apiToken)
    t.is(renewed.adminKey, first.adminKey)
    const stored = await row<{ text: string }>(
      em,
      sql`select string_agg(to_jsonb(api_token)::text, ' ') as text from api_token`,
    )
    t.false(stored?.text.includes(renewed.apiToken))
  },
)
