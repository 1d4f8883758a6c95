import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { promisify } from 'node:util'

import test from 'ava'
import { sql } from 'kysely'

import { createApp } from '../api/app.ts'
import { AdminOrganization } from '../schema/admin.ts'
import { ADMIN_TOOLS, CATALOGUE } from '../src/catalogue/registry.ts'
import { schemaFaults } from '../src/catalogue/schema-faults.ts'
import { hashToken, makeAdminKey } from '../src/catalogue/tokens.ts'
import { execute, openDatabase, row } from '../src/database.ts'
import { seedDevelopment } from '../src/development.ts'
import { createAdminKey, revokeAdminKey } from '../src/domain/organizations/admin-keys.ts'
import { encodeId, newId } from '../src/ids.ts'
import { type Answer, startApi, type TestApi } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import { listenOnLoopback } from './helpers/listen.ts'

const ADDRESS = '/api/v1/admin/tools'

let api: TestApi

test.before(async () => {
  // Each test uses an address of its own, as behind a proxy, because an address is limited to sixty requests.
  api = await startApi({ TRUSTED_PROXIES: '127.0.0.1' })
})
test.after.always(() => api?.close())

/** A client with an admin key and an address of its own. */
type Visitor = {
  key: string
  ask: (method: string, body?: unknown, options?: { token?: string; raw?: string }) => Promise<Answer>
}

let visitors = 0

async function visitor(): Promise<Visitor> {
  const key = await api.adminKey()
  const headers = { 'x-forwarded-for': `192.0.2.${(visitors += 1)}` }
  return {
    key,
    ask: (method, body, options = {}) =>
      api.request(method, ADDRESS, { token: key, body, headers, ...options }),
  }
}

async function addMembers(organizationId: string, count: number): Promise<void> {
  await execute(
    api.services.orm.em.fork(),
    sql`with made as (
        insert into member (id, email, name)
        select new_id(), gen_random_uuid() || '@reader.example', '' from generate_series(1, ${count}) returning id)
      insert into membership (organization_id, member_id) select ${organizationId}, id from made`,
  )
}

test('discovery says how to run the tools, and which there are', async (t) => {
  const { ask } = await visitor()
  const { status, body } = await ask('GET')
  t.is(status, 200)
  t.deepEqual(Object.keys(body), ['success', 'usage', 'total', 'tools'])
  t.true(body.success)
  t.is(body.usage.execute, `POST ${api.url}${ADDRESS}`)
  t.deepEqual(Object.keys(body.usage.body), ['tool', 'input'])
  t.is(body.usage.example.tool, 'get_org')
  t.is(body.total, ADMIN_TOOLS.length)
  const [tool] = body.tools
  t.deepEqual(Object.keys(tool), ['name', 'description', 'inputSchema'])
  t.is(tool.name, 'get_org')
  t.deepEqual(Object.keys(tool.inputSchema.properties), ['id', 'slug'])
})

test('admin tools are closed, described, and none of them has the name of another operation', (t) => {
  for (const { name, description, input, output } of ADMIN_TOOLS) {
    t.false(CATALOGUE.has(name), name)
    t.true(description.length >= 30, name)
    t.is(Reflect.get(input, 'additionalProperties'), false)
    t.is(Reflect.get(output, 'additionalProperties'), false)
  }
})

test('get_org reads any organization, by id and by slug', async (t) => {
  const { ask } = await visitor()
  const { id, domain, ...organization } = await api.organization({ plan: 'PREMIUM' })
  const other = await api.organization()
  await organization.data('add_subscriber', { email: 'ada@reader.example' })
  await organization.data('add_subscriber', { email: 'grace@reader.example' })
  await organization.data('create_campaign', { subject: 'Spring' })
  await other.data('add_subscriber', { email: 'mallory@reader.example' })
  const slug = domain.replace('.example', '')
  await addMembers(id, 2)
  await addMembers(other.id, 1)
  await execute(
    api.services.orm.em.fork(),
    sql`update organization set subscription_status = 'ACTIVE', email = 'owner@reader.example',
        period_start = '2026-01-01T00:00:00Z', period_end = '2026-02-01T00:00:00Z' where id = ${id}`,
  )
  const { status, body } = await ask('POST', { tool: 'get_org', input: { slug } })
  t.is(status, 200)
  t.deepEqual(Object.keys(body), ['success', 'tool', 'data'])
  t.like(body, { success: true, tool: 'get_org' })
  t.deepEqual(schemaFaults(AdminOrganization, body.data), [])
  t.like(body.data.organization, {
    id: encodeId('org', id),
    name: `Organization ${slug}`,
    slug,
    logo: null,
    email: 'owner@reader.example',
    timezone: 'Europe/Paris',
    verified: false,
  })
  t.deepEqual(body.data.subscription, {
    plan: 'PREMIUM',
    status: 'ACTIVE',
    periodStart: '2026-01-01T00:00:00.000Z',
    periodEnd: '2026-02-01T00:00:00.000Z',
    cancelAtPeriodEnd: false,
    customLimits: { requestsPerMinute: 0 },
  })
  t.deepEqual(body.data.stats, { members: 2, subscribers: 2, campaigns: 1 })
  t.deepEqual(
    body.data.domains.map((each: { domain: string }) => each.domain),
    [domain],
  )
  t.deepEqual((await ask('POST', { tool: 'get_org', input: { id: encodeId('org', id) } })).body, body)
})

test('who pays nothing and has the ordinary limits has no subscription', async (t) => {
  const { ask } = await visitor()
  const { id } = await api.organization({ plan: 'FREE', customLimits: null })
  const { body } = await ask('POST', { tool: 'get_org', input: { id: encodeId('org', id) } })
  t.is(body.data.subscription, null)
})

test('what is asked wrongly is refused with every field that is wrong, and nothing but a message', async (t) => {
  const { ask } = await visitor()
  const cases: [body: unknown, ...named: RegExp[]][] = [
    [{ tool: 'get_org', input: { id: 'org_x', slug: 'acme' } }, /\bid: /, /\bslug: /, /exactly one/],
    [{ tool: 'get_org', input: {} }, /\bid: /, /\bslug: /, /exactly one/],
    [{ tool: 'get_org' }, /\bid: /, /\bslug: /, /exactly one/],
    [{ tool: 'get_org', input: { slugg: 'acme', name: 1 } }, /slugg.*did you mean "slug"/, /name/],
    [{ tool: 'get_org', input: { id: 7, slug: '' } }, /id: must be text/, /slug: must not be empty/],
    [{ tool: 'get_org', input: { slug: 'a\u0000b' } }, /slug.*control character/],
    [{ tool: 'get_org', input: [] }, /input.*must be an object, not a list/],
    [{ tool: 'get_org', input: null }, /input.*must be an object, not null/],
    [{}, /tool.*missing/],
    [{ tool: 7, inputs: {} }, /tool: must be text/, /inputs.*did you mean "input"/],
    [[], /must be a JSON object/],
    ['get_org', /must be a JSON object/],
  ]
  for (const [sent, ...named] of cases) {
    const { status, body } = await ask('POST', sent)
    t.is(status, 400, JSON.stringify(sent))
    t.deepEqual(Object.keys(body), ['message'])
    for (const pattern of named) t.regex(body.message, pattern)
  }
  t.is((await ask('POST', undefined, { raw: '{"tool":' })).status, 400)
  t.is((await ask('POST', undefined, { raw: `{"tool":"${'x'.repeat(1_000_000)}"}` })).status, 413)
})

test('an unknown tool is answered with the names there are, tools of other doors too', async (t) => {
  const { ask } = await visitor()
  for (const tool of ['get_organization', 'list_tags', '__proto__', '']) {
    const { status, body } = await ask('POST', { tool, input: {} })
    t.is(status, 404, tool)
    t.deepEqual(Object.keys(body), ['message'])
    for (const { name } of ADMIN_TOOLS) t.true(body.message.includes(name))
  }
})

test('an organization that is not there is not found, whatever its id looks like', async (t) => {
  const { ask } = await visitor()
  for (const input of [{ slug: 'nobody' }, { id: 'nobody' }, { id: encodeId('org', newId()) }]) {
    const { status, body } = await ask('POST', { tool: 'get_org', input })
    t.is(status, 404)
    t.regex(body.message, /no organization/)
  }
})

test('without an admin key that holds, nobody is let in, whoever else they are', async (t) => {
  const { ask, key } = await visitor()
  const { token } = await api.organization()
  const wrong = ['', 'x', token, makeAdminKey(), key.toUpperCase(), `${key}0`, key.slice(0, -1)]
  for (const [method, body] of [['GET', undefined] as const, ['POST', { tool: 'get_org' }] as const]) {
    for (const shown of wrong) {
      const answer = await ask(method, body, { token: shown })
      t.is(answer.status, 401, shown)
      t.deepEqual(Object.keys(answer.body), ['message'])
      t.true(answer.body.message.includes('pladmin_'))
    }
  }
})

test('no other door takes an admin key or knows an admin tool', async (t) => {
  const { key } = await visitor()
  const { token, ...organization } = await api.organization()
  for (const path of ['/api/v2/tools', '/api/v2/tags', '/api/v1/tags', '/api/mcp/sse']) {
    t.is((await api.request('GET', path, { token: key })).status, 401, path)
  }
  t.is((await organization.call('get_org', { slug: 'acme' })).body.code, 'TOOL_NOT_FOUND')
  t.is((await api.request('GET', '/api/v2/tools/get_org', { token })).status, 404)
  const listed = (await api.request('GET', '/api/v2/tools', { token })).body.data.tools
  t.false(listed.some(({ name }: { name: string }) => name === 'get_org'))
})

test('a key that another process revokes opens nothing from then on, at any process', async (t) => {
  const { ask } = await visitor()
  const { services } = api
  const { id, key } = await createAdminKey(services.orm.em.fork(), 'short-lived')
  const second = createServer(createApp(services).callback())
  const port = await listenOnLoopback(second)
  const url = `http://127.0.0.1:${port}${ADDRESS}`
  const askSecond = async () => (await fetch(url, { headers: { authorization: `Bearer ${key}` } })).status
  const elsewhere = await openDatabase(services.databaseUrl, { poolSize: 1 })
  try {
    t.is((await ask('GET', undefined, { token: key })).status, 200)
    t.is(await askSecond(), 200)
    await revokeAdminKey(elsewhere.em.fork(), id)
    t.is((await ask('GET', undefined, { token: key })).status, 401)
    t.is(await askSecond(), 401)
    t.is((await ask('GET')).status, 200)
  } finally {
    await elsewhere.close()
    second.closeAllConnections()
    second.close()
  }
})

test('the time of last use is written once a minute, however many calls there are', async (t) => {
  const { ask, key } = await visitor()
  const em = api.services.orm.em.fork()
  await execute(em, sql`create table admin_key_written (key_hash bytea)`)
  await execute(
    em,
    sql`create function note_admin_key() returns trigger language plpgsql as $$ begin
      insert into admin_key_written values (new.key_hash); return null; end $$`,
  )
  await execute(
    em,
    sql`create trigger note after update of last_used_at on admin_key for each row execute function note_admin_key()`,
  )
  const written = async (): Promise<number> => {
    const found = await row<{ count: number }>(
      em,
      sql`select count(*)::int as count from admin_key_written where key_hash = ${hashToken(key)}`,
    )
    return found?.count ?? 0
  }
  await Promise.all(Array.from({ length: 20 }, () => ask('GET')))
  await eventually('the first use to be written', async () => (await written()) === 1)
  await Promise.all(Array.from({ length: 20 }, () => ask('GET')))
  t.is(await written(), 1)
  await execute(
    em,
    sql`update admin_key set last_used_at = now() - interval '61 seconds' where key_hash = ${hashToken(key)}`,
  )
  await ask('GET')
  await eventually('the use a minute later to be written', async () => (await written()) === 3)
})

test('an address has sixty requests a minute, whatever keys it shows, and others have theirs', async (t) => {
  const { ask } = await visitor()
  const first = await ask('GET')
  t.is(first.headers.get('ratelimit-limit'), '60')
  t.is(first.headers.get('ratelimit-remaining'), '59')
  const wrong = Array.from({ length: 59 }, (_, made) => (made % 2 ? makeAdminKey() : 'x'))
  const answers = await Promise.all(wrong.map((token) => ask('POST', {}, { token })))
  t.true(answers.every(({ status }) => status === 401))
  const refused = await ask('GET')
  t.is(refused.status, 429)
  t.deepEqual(Object.keys(refused.body), ['message'])
  t.is(refused.headers.get('ratelimit-remaining'), '0')
  const wait = Number(refused.headers.get('retry-after'))
  t.true(wait >= 1 && wait <= 60)
  t.is(refused.headers.get('ratelimit-reset'), String(wait))
  t.is((await (await visitor()).ask('GET')).status, 200)
})

test('the addresses of an IPv6 network share its requests; the next network has its own', async (t) => {
  const token = await api.adminKey()
  const remaining: (string | null)[] = []
  for (const address of ['2001:db8::1', '2001:DB8:0:0:ffff::2', '2001:db8:0:1::1', '::ffff:192.0.2.250']) {
    const answer = await api.request('GET', ADDRESS, { token, headers: { 'x-forwarded-for': address } })
    remaining.push(answer.headers.get('ratelimit-remaining'))
  }
  t.deepEqual(remaining, ['59', '58', '59', '59'])
})

test('wrong keys count as wrong tokens do: the address is heard at no door any more', async (t) => {
  const headers = { 'x-forwarded-for': '198.51.100.9' }
  const { token } = await api.organization()
  const other = await api.organization()
  t.is((await api.request('GET', '/api/v2/tools', { token, headers })).status, 200)
  const wrong = Array.from({ length: 50 }, makeAdminKey)
  const answers = await Promise.all(
    [ADDRESS, '/api/v2/tools'].flatMap((path) =>
      wrong.map((key) => api.request('GET', path, { token: key, headers })),
    ),
  )
  t.true(answers.every(({ status }) => status === 401))
  const held = await api.request('GET', ADDRESS, { token: makeAdminKey(), headers })
  t.is(held.status, 429)
  t.deepEqual(Object.keys(held.body), ['message'])
  t.true(Number(held.headers.get('retry-after')) > 0)
  t.is((await api.request('GET', '/api/v2/tools', { token: other.token, headers })).status, 429)
  t.is((await api.request('GET', '/api/v2/tools', { token, headers })).status, 200)
})

test('methods that the address does not have are refused by name, and it says which it has', async (t) => {
  const { ask } = await visitor()
  const head = await ask('HEAD')
  t.is(head.status, 200)
  t.is(head.body, '')
  const options = await ask('OPTIONS')
  t.is(options.status, 200)
  t.is(options.headers.get('allow'), 'HEAD, GET, POST')
  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    const { status, headers, body } = await ask(method)
    t.is(status, 405, method)
    t.is(headers.get('allow'), 'HEAD, GET, POST')
    t.deepEqual(Object.keys(body), ['message'])
  }
  const nothing = await api.request('GET', `${ADDRESS}/get_org`)
  t.is(nothing.status, 404)
  t.deepEqual(Object.keys(nothing.body), ['message'])
})

test('the page of examples runs as it is written', async (t) => {
  await seedDevelopment(api.services.config)
  const page = readFileSync(new URL('../docs/admin.md', import.meta.url), 'utf8')
  const blocks = [...page.matchAll(/^```sh\n([^]+?)\n```$/gm)].map(([, commands = '']) => commands)
  t.is(blocks.length, 3)
  const script = `set -euo pipefail\n${blocks.join('\necho\n').replaceAll(/^export .*$/gm, '')}`
  const environment = { BASE: api.url, ADMIN_KEY: await api.adminKey() }
  const { stdout } = await promisify(execFile)('bash', ['-c', script], {
    env: { ...process.env, ...environment },
  })
  const [listed = '', ran = ''] = stdout.trim().split('\n')
  t.like(JSON.parse(listed), { success: true, total: ADMIN_TOOLS.length })
  t.like(JSON.parse(ran), { success: true, tool: 'get_org' })
  t.is(JSON.parse(ran).data.organization.slug, 'development')
})
