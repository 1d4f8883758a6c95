import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import test from 'ava'

import { selfSigned } from '../scripts/services/certificate.ts'
import { freePort } from '../scripts/services/ports.ts'
import { crossOrganization } from '../src/catalogue/unit-of-work.ts'
import { logIn } from '../src/domain/organizations/members.ts'
import { type Commander, commander } from './helpers/cli.ts'
import { eventually } from './helpers/eventually.ts'
import { where } from './helpers/programs.ts'
import { createDatabase } from './helpers/services.ts'
import { type Stack, startStack } from './helpers/stack.ts'

type Check = { name: string; status: 'ok' | 'warn' | 'fail'; detail: string; repair?: string }

let stack: Stack

test.before(async () => {
  stack = await startStack({ queue: 'cli-installation' })
})
test.after.always(() => stack?.close())

/** Returns a user of the command line on the installation of the stack. */
function operator(settings: Record<string, string> = {}): Commander {
  const { config, databaseUrl } = stack.api.services
  return commander({
    DATABASE_URL: databaseUrl,
    POSTLOOM_BASE_URL: stack.api.url,
    TEMPORAL_ADDRESS: config.temporal.address,
    TEMPORAL_NAMESPACE: config.temporal.namespace,
    TEMPORAL_TASK_QUEUE: config.temporal.taskQueue,
    RELAY_URL: config.relayUrl,
    ...settings,
  })
}

test('init makes an empty database into an installation, once, however often it is run', async (t) => {
  t.timeout(120_000)
  const database = await createDatabase()
  t.teardown(() => database.drop())
  const postloom = operator({ DATABASE_URL: database.url })
  const early = await postloom.run(['org', 'list'])
  t.is(early.code, 1)
  t.regex(early.stderr, /postloom init/)
  t.is((await postloom.run(['init'])).code, 2)

  const parameters = [
    'init',
    '--name',
    'Acme Ltd',
    '--email',
    'ada@acme.example',
    '--json',
    '--password-stdin',
  ]
  const input = 'correct horse battery staple\n'
  const runs = await Promise.all([postloom.run(parameters, { input }), postloom.run(parameters, { input })])
  for (const { code, stderr } of runs) t.is(code, 0, stderr)
  const made = runs.flatMap(({ json }) => json.token ?? [])
  t.is(made.length, 1)
  t.regex(made[0].token, /^pl_/)
  const again = await postloom.run(parameters, { input })
  t.is(again.code, 0)
  t.like(again.json, {
    isNew: false,
    isNewMember: false,
    token: null,
    organization: { slug: 'acme-ltd', tokens: 1 },
  })
  t.like(again.json.member, { email: 'ada@acme.example', hasPassword: true })
  t.regex(again.stderr, /postloom org token acme-ltd/)
  t.regex(again.stderr, /password was not used: "postloom members set-password"/)
  t.is(runs.filter(({ stderr }) => stderr.includes('was not used')).length, 1)
})

test('organizations are made, listed and shown; a lost token is replaced', async (t) => {
  const postloom = operator()
  const made = await postloom.run(['org', 'create', 'Größe & Co'])
  t.is(made.code, 0)
  t.regex(made.stdout, /^pl_[0-9A-Za-z]{40}\n$/)
  const whoami = await postloom.run(['whoami', '--json'], { env: { POSTLOOM_API_KEY: made.stdout.trim() } })
  t.is(whoami.json.token.permissions.length, 8)
  const taken = await postloom.run(['org', 'create', 'gro ße co', '--slug', 'gro-e-co'])
  t.is(taken.code, 1)
  t.regex(taken.stderr, /--slug/)
  t.is((await postloom.run(['org', 'create', '日本'])).code, 1)
  t.is((await postloom.run(['org', 'create', 'x', '--plan', 'GOLD'])).code, 2)

  const shown = await postloom.run(['org', 'show', 'gro-e-co', '--json'])
  t.like(shown.json, {
    organization: { name: 'Größe & Co' },
    subscription: { plan: 'ENTERPRISE' },
    stats: { members: 0 },
    domains: [],
  })
  t.is((await postloom.run(['org', 'show', shown.json.organization.id])).code, 0)
  const { json } = await postloom.run(['org', 'list', '--json'])
  t.true(json.organizations.some(({ slug }: { slug: string }) => slug === 'gro-e-co'))
  const further = await postloom.run(['org', 'token', 'gro-e-co'])
  t.is((await postloom.run(['whoami'], { env: { POSTLOOM_API_KEY: further.stdout.trim() } })).code, 0)
  for (const parameters of [
    ['org', 'show', 'nobody'],
    ['org', 'token', 'nobody'],
  ]) {
    const missing = await postloom.run([...parameters, '--json'])
    t.is(missing.code, 1)
    t.is(missing.json.error.code, 'NOT_FOUND')
  }
})

test('members belong to one organization, and those of another are not there', async (t) => {
  const postloom = operator()
  const [own, other] = await Promise.all(
    ['Own', 'Other'].map(
      async (name) =>
        (await postloom.run(['org', 'create', `${name} members`, '--json'])).json.organization.slug,
    ),
  )
  const add = ['members', 'create', 'ada@members.example']
  t.is((await postloom.run(add)).code, 2)
  const made = await postloom.run([...add, '--org', own, '--name', 'Ada', '--json'])
  t.like(made.json.member, { email: 'ada@members.example', name: 'Ada', hasPassword: false })
  const { id } = made.json.member
  t.is((await postloom.run([...add, '--org', own])).code, 1)

  const set = ['members', 'set-password', id, '--org']
  t.is((await postloom.run([...set, own])).code, 2)
  const short = await postloom.run([...set, own, '--password-stdin'], { input: 'short\n' })
  t.is(short.code, 1)
  t.regex(short.stderr, /12 characters/)
  const changed = await postloom.run([...set, own, '--password-stdin'], {
    input: 'correct horse battery staple\n',
  })
  t.is(changed.code, 0)
  const listed = await postloom.run(['members', 'list', '--org', own])
  t.regex(listed.stdout, new RegExp(`^${id} +ada@members.example +Ada +yes`, 'm'))
  t.notRegex(listed.stdout + changed.stdout, /correct horse|scrypt/)

  const foreign = await postloom.run(['members', 'remove', id, '--org', other, '--confirm', '--json'])
  const missing = await postloom.run(['members', 'remove', 'usr_x', '--org', other, '--confirm', '--json'])
  for (const each of [foreign, missing]) {
    t.is(each.code, 1)
    t.is(each.json.error.code, 'NOT_FOUND')
  }
  t.is((await postloom.run(['members', 'remove', id, '--org', own])).code, 2)
  t.is((await postloom.run(['members', 'remove', 'ADA@members.example', '--org', own, '--confirm'])).code, 0)
  t.deepEqual((await postloom.run(['members', 'list', '--org', own, '--json'])).json.members, [])
})

/** Runs a command at a terminal and types an answer to its question. Resolves when it ends, or asks again. */
async function answer(
  { env }: Commander,
  command: string,
  typed: string,
): Promise<{ code: number | null | undefined; shown: string }> {
  const terminal = spawn('script', ['-qec', `stty cols 100 rows 40; ${command}`, '/dev/null'], {
    env: { ...env, TERM: 'xterm' },
    stdio: 'pipe',
  })
  let shown = ''
  let code: number | null | undefined
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text))
  terminal.once('exit', (ended) => (code = ended))
  await eventually('the question', () => shown.includes('12 characters at least'), { withinMs: 60_000 })
  terminal.stdin.write(`${typed}\r`)
  await eventually('the end', () => code !== undefined || shown.includes('is needed here'))
  terminal.stdin.end()
  return { code, shown }
}

where(test, 'script')('a password that is typed at a terminal keeps its spaces', async (t) => {
  const postloom = operator()
  const { organization } = (await postloom.run(['org', 'create', 'Typed', '--json'])).json
  const email = 'typed@members.example'
  await postloom.run(['members', 'create', email, '--org', organization.slug])
  const password = ' correct horse battery '
  const command = `postloom members set-password ${email} --org ${organization.slug}`
  const { code, shown } = await answer(postloom, command, password)
  t.is(code, 0, shown)
  const em = crossOrganization(stack.api.services)
  t.is(await logIn(em, { email, password: password.trim() }), null)
  t.truthy(await logIn(em, { email, password }))
})

where(test, 'script')('who logs in already joins another organization at a terminal, too', async (t) => {
  const postloom = operator()
  const email = 'both@members.example'
  const password = 'correct horse battery'
  await Promise.all(
    ['first', 'second'].map((slug) => postloom.run(['org', 'create', 'Both', '--slug', `${slug}-of-both`])),
  )
  const first = ['members', 'create', email, '--org', 'first-of-both', '--password-stdin']
  await postloom.run(first, { input: password })
  const { code, shown } = await answer(postloom, `postloom members create ${email} --org second-of-both`, '')
  t.is(code, 0, shown)
  const listed = await postloom.run(['members', 'list', '--org', 'second-of-both', '--json'])
  t.like(listed.json.members[0], { email, hasPassword: true })
  t.truthy(await logIn(crossOrganization(stack.api.services), { email, password }))
})

test('admin keys are made, listed and revoked; the text is shown once', async (t) => {
  const postloom = operator()
  const made = await postloom.run(['admin', 'keys', 'create', 'support desk'])
  t.regex(made.stdout, /^pladmin_[0-9a-f]{64}\n$/)
  const listed = await postloom.run(['admin', 'keys', 'list', '--json'])
  t.like(listed.json.keys[0], { name: 'support desk', revokedAt: null })
  t.false(listed.stdout.includes(made.stdout.trim()))
  const { id } = listed.json.keys[0]
  t.is((await postloom.run(['admin', 'keys', 'revoke', id])).code, 2)
  t.is((await postloom.run(['admin', 'keys', 'revoke', id, '--confirm'])).code, 0)
  t.regex((await postloom.run(['admin', 'keys', 'list'])).stdout, /support desk .* 20\d\d-.*Z$/m)
  t.is((await postloom.run(['admin', 'keys', 'revoke', 'adm_x', '--confirm'])).code, 1)
})

test('doctor finds nothing wrong with an installation that works', async (t) => {
  const directory = operator()
  const file = join(directory.home, 'smtp.crt')
  writeFileSync(file, selfSigned('localhost').cert)
  const { code, json, stdout } = await operator({ SMTP_TLS_CERT: file }).run(['doctor', '--json'])
  t.is(code, 0, stdout)
  t.true(json.ok)
  const ok = json.checks.flatMap(({ name, status }: Check) => (status === 'ok' ? [name] : []))
  const { taskQueue } = stack.api.services.config.temporal
  for (const name of ['configuration', 'database', 'clock', 'migrations', 'encryption key', 'temporal']) {
    t.true(ok.includes(name), name)
  }
  for (const name of [`queue ${taskQueue}-runs`, 'namespace', 'api', 'relay', 'smtp certificate']) {
    t.true(ok.includes(name), name)
  }
})

test('doctor names what is broken and how to put it right, and ends with 1', async (t) => {
  t.timeout(180_000)
  const closed = `127.0.0.1:${await freePort()}`
  const empty = await createDatabase()
  t.teardown(() => empty.drop())
  const organization = await stack.api.organization()
  await organization.data('create_domain', { domain: `key-${organization.domain}` })
  const home = commander().home
  const broken = join(home, 'broken.crt')
  writeFileSync(broken, 'no certificate')
  const trouble: [settings: Record<string, string>, expected: Record<string, RegExp>][] = [
    [
      {
        POSTLOOM_ENCRYPTION_KEY: 'another key than the one that was used before',
        TEMPORAL_ADDRESS: closed,
        DNS_SERVERS: closed,
        POSTLOOM_BASE_URL: `http://${closed}`,
        RELAY_URL: `smtp://${closed}`,
        SMTP_TLS_CERT: broken,
      },
      {
        'encryption key': /POSTLOOM_ENCRYPTION_KEY/,
        temporal: /TEMPORAL_ADDRESS/,
        dns: /DNS_SERVERS/,
        api: /POSTLOOM_BASE_URL/,
        relay: /RELAY_URL/,
        'smtp certificate': /SMTP_TLS_CERT/,
      },
    ],
    [
      { DATABASE_URL: `postgres://nobody@${closed}/nothing`, TEMPORAL_TASK_QUEUE: 'nobody' },
      { database: /DATABASE_URL/, 'queue nobody-runs': /worker/ },
    ],
    [
      { DATABASE_URL: empty.url, TEMPORAL_NAMESPACE: 'nowhere' },
      { migrations: /postloom init/, namespace: /scripts\/prepare\.ts/ },
    ],
    [{ LANE_RATE_BULK: 'many' }, { configuration: /docs\/configuration\.md/ }],
  ]
  for (const [settings, expected] of trouble) {
    const { code, json, stderr } = await operator(settings).run(['doctor', '--json'])
    t.is(code, 1)
    t.false(json.ok)
    const failed = json.checks.filter(({ status }: Check) => status === 'fail')
    t.true(
      Object.keys(expected).every((name) => failed.some((each: Check) => each.name === name)),
      stderr,
    )
    for (const { name, detail, repair } of failed as Check[]) {
      const said = expected[name]
      if (said) t.regex(`${detail} ${repair}`, said)
    }
    t.is(stderr, '')
  }
  const text = await operator({ TEMPORAL_ADDRESS: closed }).run(['doctor'])
  t.regex(text.stdout, /^fail {2}temporal +.*does not answer\n +Check TEMPORAL_ADDRESS/m)
})

test('doctor asks each relay by itself, and warns where a proxy in production is not trusted', async (t) => {
  const { relayUrl } = stack.api.services.config
  const closed = [`127.0.0.1:${await freePort()}`, `[::1]:${await freePort()}`]
  const production = operator({
    POSTLOOM_ENV: 'production',
    POSTLOOM_SECRET: 'a secret of more than thirty-two characters',
    POSTLOOM_ENCRYPTION_KEY: 'a key of more than thirty-two characters',
    RELAY_URL: `${relayUrl} ${closed.map((address) => `smtp://${address}`).join(' ')}`,
  })
  const { json } = await production.run(['doctor', '--json'])
  const statusOf = (name: string) => json.checks.find((check: Check) => check.name === name)?.status
  t.is(statusOf(`relay ${new URL(relayUrl).host}`), 'ok')
  for (const address of closed) t.is(statusOf(`relay ${address.replaceAll(/[[\]]/g, '')}`), 'fail')
  t.is(statusOf('proxies'), 'warn')
  const env = { TRUSTED_PROXIES: '172.16.0.0/12', RELAY_URL: 'nowhere' }
  const { checks } = (await production.run(['doctor', '--json'], { env })).json
  t.like(
    checks.find(({ name }: Check) => name === 'proxies'),
    { status: 'ok', detail: '172.16.0.0/12' },
  )
  t.regex(checks.find(({ name }: Check) => name === 'relay')?.detail, /RELAY_URL is not a relay/)
})

test('without an installation, the commands that need one say how to name it', async (t) => {
  const postloom = commander()
  for (const parameters of [['doctor'], ['org', 'list'], ['members', 'list'], ['admin', 'keys', 'list']]) {
    const { code, stdout, stderr } = await postloom.run(parameters)
    t.is(code, 1, parameters.join(' '))
    t.regex(stdout + stderr, /DATABASE_URL/)
    t.notRegex(stderr, /^ {4}at /m)
  }
  const port = await freePort()
  const away = commander({ DATABASE_URL: `postgres://nobody@127.0.0.1:${port}/nothing` })
  const refused = await away.run(['org', 'list', '--json'])
  t.is(refused.code, 1)
  t.is(refused.json.error.code, 'UNAVAILABLE')
})
