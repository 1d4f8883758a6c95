import { execFile, spawn } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'

import test from 'ava'

import { bold, createOutput } from '../cli/output.ts'
import { freePort } from '../scripts/services/ports.ts'
import { makeToken } from '../src/catalogue/tokens.ts'
import type { TestOrganization } from './helpers/api.ts'
import { type Commander, commander, ended } from './helpers/cli.ts'
import { eventually } from './helpers/eventually.ts'
import { listenOnLoopback } from './helpers/listen.ts'
import { commandsOf } from './helpers/pages.ts'
import { where } from './helpers/programs.ts'
import { type Stack, startStack } from './helpers/stack.ts'

let stack: Stack

test.before(async () => {
  stack = await startStack({ queue: 'cli' })
})
test.after.always(() => stack?.close())

/** Returns an organization, and a user with its token in the environment. */
async function customer(): Promise<{ organization: TestOrganization; postloom: Commander }> {
  const organization = await stack.api.organization()
  return {
    organization,
    postloom: commander({ POSTLOOM_BASE_URL: stack.api.url, POSTLOOM_API_KEY: organization.token }),
  }
}

test('a tool is found, read and run; a refusal names the field and the repair', async (t) => {
  const { postloom } = await customer()
  const found = await postloom.run(['tools', '--filter', 'create tag'])
  t.is(found.code, 0)
  t.regex(found.stdout, /^ {2}create_tag +Create a tag$/m)
  t.notRegex(found.stdout, /list_campaigns/)
  const all = await postloom.run(['tools', '--json'])
  t.true(all.json.total > 90)
  t.is(all.json.tools.length, all.json.total)

  for (const asked of [
    ['tools', 'add_subscriber'],
    ['run', 'add_subscriber', '--help'],
  ]) {
    const help = await postloom.run(asked)
    t.is(help.code, 0)
    t.regex(help.stdout, /email {2}string, required/)
    t.regex(help.stdout, /postloom run add_subscriber --input '\{"email":"…"\}'/)
  }
  const { stdout } = await postloom.run(['run', 'edit_campaign', '--help'])
  t.regex(stdout, /preview {2}string \| null\n {4}The preview text that inboxes show/)

  const made = await postloom.run(['run', 'create_tag', '--input', '{"name": "VIP"}'])
  t.is(made.code, 0)
  t.is(made.json.tag.name, 'VIP')
  const file = join(postloom.home, 'input.json')
  writeFileSync(file, '{"name": "From a file"}')
  t.is((await postloom.run(['run', 'create_tag', '-i', `@${file}`, '--json'])).json.tag.name, 'From a file')
  const piped = await postloom.run(['run', 'create_tag', '-i', '-'], { input: '{"name": "Piped"}' })
  t.is(piped.json.tag.name, 'Piped')

  // Windows begins text files with a byte order mark.
  writeFileSync(file, '\ufeff{"name": "Café"}')
  t.is((await postloom.run(['run', 'create_tag', '-i', `@${file}`])).json.tag.name, 'Café')
  writeFileSync(file, '{"name": "Thé"}', 'latin1')
  const garbled = await postloom.run(['run', 'create_tag', '-i', `@${file}`])
  t.is(garbled.code, 2)
  t.regex(garbled.stderr, /input\.json is not in UTF-8/)

  const refused = await postloom.run(['run', 'create_tag', '-i', '{"nme": "x"}', '--json'])
  t.is(refused.code, 1)
  t.like(refused.json.error, { code: 'INVALID_INPUT', status: 400 })
  t.deepEqual(
    refused.json.error.details.map(({ path }: { path: string }) => path),
    ['nme', 'name'],
  )
  t.regex(refused.stderr, /did you mean "name"\?/)
  const unknown = await postloom.run(['run', 'creat_tag'])
  t.is(unknown.code, 1)
  t.regex(unknown.stderr, /did you mean create_tag/)
})

test('what is written wrongly ends with 2 and says how to write it; help ends with 0', async (t) => {
  const { postloom } = await customer()
  for (const [parameters, said] of [
    [['run'], /postloom tools/],
    [['run', 'create_tag', '--input', '{'], /--input is not JSON/],
    [['run', 'create_tag', '--input', '[]'], /--input is not a JSON object/],
    [['run', 'create_tag', '--input', '@nowhere.json'], /nowhere\.json cannot be read/],
    [['tols'], /Did you mean tools/],
    [['tokens', 'create'], /--name/],
    [['import', 'nowhere.csv'], /nowhere\.csv cannot be read \(ENOENT\)/],
    [['import', '.'], /\. cannot be read \(EISDIR\)/],
    [['import', 'bin/postloom', '--map', 'email'], /COLUMN=FIELD/],
    [['tail', '--last', 'many'], /--last is a number/],
    [['open', 'window'], /dashboard, docs, temporal, mailbox/],
    [['login', '--base-url', 'ftp://x'], /is not an address/],
  ] as const) {
    const { code, stderr, stdout } = await postloom.run(parameters)
    t.is(code, 2, parameters.join(' '))
    t.regex(stderr, said)
    t.notRegex(stderr, /^ {4}at /m)
    t.is(stdout, '')
  }
  const wrong = await postloom.run(['tokens', 'delete', '--json'])
  t.is(wrong.code, 2)
  t.is(wrong.json.error.code, 'USAGE')
  for (const parameters of [['--help'], ['run', '--help'], ['tokens', 'create', '--help'], ['--version']]) {
    t.is((await postloom.run(parameters)).code, 0)
  }
  t.is((await postloom.run([])).code, 2)
})

test('a gated tool shows what would happen and does it only when it is confirmed', async (t) => {
  const { organization, postloom } = await customer()
  await organization.data('add_subscriber', { email: 'ada@reader.example', tags: ['VIP'] })
  const parameters = ['run', 'delete_tag', '--input', '{"name": "VIP"}']
  const refused = await postloom.run([...parameters, '--json'])
  t.is(refused.code, 2)
  t.is(refused.json.error.code, 'NOT_CONFIRMED')
  t.is(refused.json.error.summary.action, 'delete_tag')
  t.regex(refused.stderr, /delete_tag: the tag "VIP"\n {2}The tag is taken from 1 of 1 subscriber/)
  t.is((await organization.data('list_tags')).tags.length, 1)

  const done = await postloom.run([...parameters, '--confirm'])
  t.is(done.code, 0)
  t.is(done.json.name, 'VIP')
  t.regex(done.stderr, /The tag is taken/)
  t.is((await organization.data('list_tags')).tags.length, 0)
})

where(test, 'script')('at a terminal a gated tool asks, and no is no', async (t) => {
  const { organization, postloom } = await customer()
  for (const [name, keys, left] of [
    ['kept', 'n', 1],
    ['gone', 'y', 1],
  ] as const) {
    await organization.data('create_tag', { name })
    const command = `stty cols 100 rows 40; postloom run delete_tag --input '{"name": "${name}"}'`
    const terminal = spawn('script', ['-qec', command, '/dev/null'], {
      env: { ...postloom.env, TERM: 'xterm' },
      stdio: 'pipe',
    })
    let shown = ''
    terminal.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text))
    const code = new Promise<number | null>((resolve) => terminal.once('exit', resolve))
    await eventually('the question', () => shown.includes('go ahead?'), { withinMs: 60_000 })
    terminal.stdin.write(keys)
    t.is(await code, keys === 'y' ? 0 : 1, shown)
    terminal.stdin.end()
    t.is((await organization.data('list_tags')).tags.length, left)
    if (keys === 'n') t.regex(shown, /Nothing was done/)
  }
})

test('a login is kept for its owner alone, shown to its service alone, and given way to the environment', async (t) => {
  const organization = await stack.api.organization()
  const postloom = commander()
  const none = await postloom.run(['whoami'])
  t.is(none.code, 1)
  t.regex(none.stderr, /postloom login/)
  const file = join(postloom.home, '.config', 'postloom', 'login.json')

  const refused = await postloom.run(['login', '--base-url', stack.api.url], { input: `${makeToken()}\n` })
  t.is(refused.code, 1)
  t.regex(refused.stderr, /API token is not valid/)
  t.false(existsSync(file))

  const login = await postloom.run(['login', '--base-url', `${stack.api.url}/`], {
    input: `${organization.token}\n`,
  })
  t.is(login.code, 0)
  t.is(statSync(file).mode & 0o777, 0o600)
  t.is(JSON.parse(readFileSync(file, 'utf8')).baseUrl, stack.api.url)
  const me = await postloom.run(['whoami', '--json'])
  t.like(me.json, { baseUrl: stack.api.url, source: 'login', token: { name: 'test' } })
  const text = await postloom.run(['whoami'])
  t.true(text.stdout.includes(organization.token.slice(-4)))
  for (const { stdout, stderr } of [login, me, text]) t.false((stdout + stderr).includes(organization.token))

  const elsewhere = { POSTLOOM_BASE_URL: 'http://127.0.0.1:9' }
  const other = await postloom.run(['whoami'], { env: elsewhere })
  t.is(other.code, 1)
  t.regex(other.stderr, /There is no token for http:\/\/127\.0\.0\.1:9/)
  const second = await stack.api.organization()
  const fromEnvironment = await postloom.run(['whoami', '--json'], {
    env: { POSTLOOM_API_KEY: second.token },
  })
  t.is(fromEnvironment.json.source, 'environment')
  t.is(fromEnvironment.json.token.lastFour, second.token.slice(-4))

  t.is((await postloom.run(['logout'])).code, 0)
  t.is((await postloom.run(['whoami'])).code, 1)
  writeFileSync(file, 'nonsense')
  t.regex((await postloom.run(['whoami'])).stderr, /cannot be read as a login/)
  const named = { POSTLOOM_API_KEY: second.token, POSTLOOM_BASE_URL: stack.api.url }
  t.is((await postloom.run(['whoami'], { env: named })).code, 0)
})

test('tokens are made, listed and ended; the text is shown once, and those of others are not there', async (t) => {
  const { postloom } = await customer()
  const other = await customer()
  const made = await postloom.run(['tokens', 'create', '--name', 'CI', '--permission', 'emails,campaigns'])
  t.is(made.code, 0)
  t.regex(made.stdout, /^pl_[0-9A-Za-z]{40}\n$/)
  const listed = await postloom.run(['tokens', 'list', '--json'])
  const token = listed.json.tokens.find(({ name }: { name: string }) => name === 'CI')
  t.deepEqual(token.permissions, ['emails', 'campaigns'])
  const table = await postloom.run(['tokens', 'list'])
  t.regex(table.stdout, new RegExp(`^${token.id} +CI +…${made.stdout.trim().slice(-4)} `, 'm'))
  t.false(table.stdout.includes(made.stdout.trim()))

  const wrong = await postloom.run(['tokens', 'create', '--name', 'x', '--permission', 'everything'])
  t.is(wrong.code, 1)
  t.regex(wrong.stderr, /permissions/)
  const foreign = await other.postloom.run(['tokens', 'delete', token.id, '--confirm', '--json'])
  t.is(foreign.code, 1)
  t.like(foreign.json.error, { code: 'not_found', status: 404 })

  t.is((await postloom.run(['tokens', 'delete', token.id])).code, 2)
  t.is((await postloom.run(['tokens', 'delete', token.id, '--confirm'])).code, 0)
  const used = await postloom.run(['whoami'], { env: { POSTLOOM_API_KEY: made.stdout.trim() } })
  t.is(used.code, 1)
})

test('a file is imported to its end, and its refused rows are written down', async (t) => {
  t.timeout(120_000)
  const { organization, postloom } = await customer()
  const file = join(postloom.home, 'people.csv')
  writeFileSync(file, 'E-mail,Plan,Note\nada@reader.example,pro,a\nnobody\ngrace@reader.example,free,b\n')
  const rejected = join(postloom.home, 'rejected.csv')
  const done = await postloom.run([
    'import',
    file,
    '--map',
    'E-mail=email',
    'Plan=fields.plan',
    '--tag',
    'summer',
    '--rejected',
    rejected,
    '--json',
  ])
  t.is(done.code, 0, done.stderr)
  t.like(done.json, { status: 'COMPLETED', rows: 3, imported: 2, failed: 1 })
  t.regex(done.stderr, /^Columns: E-mail → email, Plan → fields\.plan\. Not imported: Note; --map /m)
  t.regex(readFileSync(rejected, 'utf8'), /nobody/)
  const { subscriber } = await organization.data('get_subscriber', { email: 'ada@reader.example' })
  t.deepEqual(subscriber.tags, ['summer'])
  t.is(subscriber.customFields.plan, 'pro')

  const pipe = "postloom import <(printf 'email\\nlin@reader.example\\n') --json"
  const { stdout } = await promisify(execFile)('bash', ['-c', pipe], {
    env: postloom.env,
    cwd: postloom.home,
  })
  t.like(JSON.parse(stdout), { status: 'COMPLETED', rows: 1, imported: 1 })

  writeFileSync(file, 'a,b\n1,2\n')
  const refused = await postloom.run(['import', file])
  t.is(refused.code, 1)
  t.regex(refused.stderr, /email/)
})

test('tail shows what happens as it happens, and nothing of others', async (t) => {
  t.timeout(120_000)
  const { organization, postloom } = await customer()
  const other = await customer()
  const record = (of: TestOrganization, amount: number) =>
    of.data('create_event', { email: 'ada@reader.example', eventType: 'SUBSCRIBER_PAYMENT', amount })
  for (const each of [organization, other.organization]) {
    await each.data('add_subscriber', { email: 'ada@reader.example' })
    await record(each, 10)
    await record(each, 1)
  }
  const watched = ['tail', '--json', '--type', 'SUBSCRIBER_PAYMENT']
  const child = postloom.start([...watched, '--last', '3'])
  const person = postloom.start([...watched, '--last', '0', '--subscriber', 'ada@reader.example'])
  const seen: number[][] = [[], []]
  for (const [index, each] of [child, person].entries()) {
    each.stdout?.setEncoding('utf8').on('data', (text: string) => {
      for (const line of text.trim().split('\n')) seen[index]?.push(JSON.parse(line).data.amount)
    })
  }
  const ends = [child, person].map((each) => ended(each))
  await eventually('the events before', () => seen[0]?.length === 2, { withinMs: 60_000 })
  await record(other.organization, 2)
  // The second follower may have started before or after this event. What matters is that nothing is repeated or
  // missing.
  await record(organization, 3)
  await record(organization, 4)
  await eventually('the events after', () => seen[0]?.length === 4, { withinMs: 60_000 })
  t.deepEqual(seen[0], [10, 1, 3, 4])
  await record(organization, 5)
  await eventually('the last event', () => seen.every((amounts) => amounts.includes(5)), { withinMs: 60_000 })
  t.false(seen[1]?.includes(2))
  t.is(new Set(seen[1]).size, seen[1]?.length ?? 0)
  for (const each of [child, person]) each.kill()
  await Promise.all(ends)
})

test('tail shows every event of a crowd, also where there was none before', async (t) => {
  const events = Array.from({ length: 250 }, (_, at) => `evt_${String(at).padStart(26, '0')}`).slice(1)
  let asked = 0
  // Answers as the service does: nothing at first, and then, before an id, those that follow it.
  const service = createServer(({ url = '' }, response) => {
    const { searchParams } = new URL(url, 'http://x')
    const from = searchParams.get('before')
    const known = asked++ === 0 ? [] : from === null ? events.slice(-100) : events.filter((id) => id > from)
    const page = known.slice(0, 100).toReversed()
    const data = page.map((id) => ({ id, type: 'ORDER_PLACED', data: {}, cause: {} }))
    response.end(JSON.stringify({ object: 'list', data, has_more: known.length > 100 }))
  })
  const url = `http://127.0.0.1:${await listenOnLoopback(service)}`
  t.teardown(() => {
    service.close()
    service.closeAllConnections()
  })
  const child = commander({ POSTLOOM_BASE_URL: url, POSTLOOM_API_KEY: makeToken() }).start(['tail', '--json'])
  const seen: string[] = []
  let rest = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const lines = `${rest}${text}`.split('\n')
    rest = lines.pop() ?? ''
    seen.push(...lines.map((line) => JSON.parse(line).id))
  })
  const end = ended(child)
  await eventually('the last event', () => seen.includes(events.at(-1) ?? ''), { withinMs: 60_000 })
  t.deepEqual(seen, events)
  child.kill()
  await end
})

test('the shell completes commands, options and the names of tools', async (t) => {
  const { postloom } = await customer()
  const complete = async (words: readonly string[]): Promise<string[]> => {
    const list = ['postloom', ...words].map((word) => `'${word}'`).join(' ')
    const script = `source <(postloom completion bash)
      COMP_WORDS=(${list}) COMP_CWORD=${words.length}; _postloom; printf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout } = await promisify(execFile)('bash', ['-c', script], { env: postloom.env })
    return stdout.split('\n').filter(Boolean)
  }
  t.deepEqual(await complete(['to']), ['tools', 'tokens'])
  t.deepEqual(await complete(['tokens', '']), ['create', 'list', 'delete'])
  t.deepEqual(await complete(['open', 'd']), ['dashboard', 'docs'])
  t.deepEqual(await complete(['run', 'get_or_create']), ['get_or_create_tags'])
  t.deepEqual(await complete(['run', 'create_tag', '--conf']), ['--confirm'])
  t.deepEqual(await complete(['admin', 'keys', 'r']), ['revoke'])
  // The names are cached now, so completion works without the service; for another service there is no cache.
  const names = ['complete', '--', 'run', 'list_t']
  const away = { POSTLOOM_API_KEY: makeToken() }
  t.is((await postloom.run(names, { env: away })).stdout, 'list_tags\n')
  t.is((await postloom.run(names, { env: { ...away, POSTLOOM_BASE_URL: 'http://127.0.0.1:9' } })).stdout, '')
})

where(test, 'zsh')('zsh takes its completion', async (t) => {
  const { postloom } = await customer()
  const script = `autoload -U compinit; compinit -D; source <(postloom completion zsh)
    compadd() { print -l -- "\${(@)found}" }; words=(postloom run get_or_create) CURRENT=3; _postloom`
  const { stdout } = await promisify(execFile)('zsh', ['-fc', script], { env: postloom.env })
  t.is(stdout.trim(), 'get_or_create_tags')
})

test('what the page of the command line shows runs as it is written, from a token to a sent campaign', async (t) => {
  t.timeout(180_000)
  const { organization, postloom } = await customer()
  const sections = ['From a token to a sent campaign', 'Tools', 'Tokens, imports, events', 'The installation']
  const script = `set -euo pipefail\n${sections.map((section) => commandsOf('cli.md', section)).join('\n')}`
  const { config, databaseUrl } = stack.api.services
  const { stdout } = await promisify(execFile)('bash', ['-c', script], {
    cwd: postloom.home,
    env: {
      ...postloom.env,
      DATABASE_URL: databaseUrl,
      TEMPORAL_ADDRESS: config.temporal.address,
      TEMPORAL_NAMESPACE: config.temporal.namespace,
      TEMPORAL_TASK_QUEUE: config.temporal.taskQueue,
      RELAY_URL: config.relayUrl,
    },
  })
  const sent = stack.sink.accepted().filter(({ recipient }) => /^(ada|grace)@example\.com$/.test(recipient))
  t.is(sent.length, 2)
  t.regex(stdout, /"sent": 2/)
  t.regex(stdout, /"name": "VIP"/)
  t.regex(stdout, new RegExp(organization.domain.split('.')[0] ?? ''))
  t.regex(stdout, /^ok +queue .*-runs/m)
  t.regex(readFileSync(join(postloom.home, 'token'), 'utf8'), /^pl_/)
})

test('where no Postloom answers, that is said in a sentence', async (t) => {
  const token = makeToken()
  const port = await freePort()
  const dead = commander({ POSTLOOM_BASE_URL: `http://127.0.0.1:${port}`, POSTLOOM_API_KEY: token })
  const unanswered = await dead.run(['tools', '--json'])
  t.is(unanswered.code, 1)
  t.is(unanswered.json.error.code, 'network_error')
  t.regex(unanswered.stderr, /\w\. Check the address, and whether the service runs\.$/m)

  const stranger = createServer((_request, response) => response.end('<h1>hello</h1>'))
  t.teardown(() => stranger.close())
  const url = `http://127.0.0.1:${await listenOnLoopback(stranger)}`
  const other = await commander({ POSTLOOM_BASE_URL: url, POSTLOOM_API_KEY: token }).run(['tools'])
  t.is(other.code, 1)
  t.regex(other.stderr, /is not the service's/)
  for (const { stderr } of [unanswered, other]) {
    t.notRegex(stderr, /^ {4}at /m)
    t.false(stderr.includes(token))
  }
})

where(test, '/dev/full')(
  'a reader who has seen enough is no failure; a disk that is full is one',
  async (t) => {
    const { postloom } = await customer()
    const shell = (script: string) =>
      ended(spawn('bash', ['-o', 'pipefail', '-c', script], { env: postloom.env, stdio: 'pipe' }))
    t.like(await shell('postloom tools | true'), { code: 0, stderr: '' })
    const full = await shell('postloom tools > /dev/full')
    t.is(full.code, 1)
    t.regex(full.stderr, /could not be written: .*ENOSPC/)
  },
)

test.serial('only our own colours reach the terminal, not those in texts of others', (t) => {
  const { FORCE_COLOR } = process.env
  let printed = ''
  const stream = { write: (text: string) => (printed += text) }
  process.env['FORCE_COLOR'] = '1'
  try {
    const output = createOutput([], { stdin: {}, stdout: stream, stderr: stream })
    output.result(null, `${bold('Name')} \u001B[8mhidden\u001B[0m \u009B31mred`)
  } finally {
    if (FORCE_COLOR === undefined) delete process.env['FORCE_COLOR']
    else process.env['FORCE_COLOR'] = FORCE_COLOR
  }
  t.is(printed, '\u001B[1mName\u001B[22m [8mhidden[0m 31mred\n')
})

test('open prints addresses; those that are not known, it says', async (t) => {
  const { postloom } = await customer()
  t.is((await postloom.run(['open', 'docs'])).stdout, `${stack.api.url}/docs\n`)
  t.is((await postloom.run(['open', 'dashboard', '--json'])).json.url, `${stack.api.url}/`)
  const ui = { TEMPORAL_UI_URL: 'http://127.0.0.1:8233' }
  t.is((await postloom.run(['open', 'temporal'], { env: ui })).stdout, 'http://127.0.0.1:8233\n')
  t.is((await postloom.run(['open', 'mailbox'])).code, 1)
})
