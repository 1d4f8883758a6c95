import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import test, { type ExecutionContext } from 'ava'

import { projectDirectory } from '../scripts/services/layout.mjs'
import { isProcess } from '../scripts/services/leftovers.ts'
import { freePort } from '../scripts/services/ports.ts'
import type { DevFile } from '../scripts/services/state.ts'
import { eventually } from './helpers/eventually.ts'
import { where } from './helpers/programs.ts'
import { readReportFile } from './helpers/reports.ts'
import { createDatabase, scratchDirectory } from './helpers/services.ts'

const run = promisify(execFile)
const PORTS = [
  'API_PORT',
  'WORKER_PORT',
  'SMTP_PORT',
  'SMTP_INBOUND_PORT',
  'SMTP_HEALTH_PORT',
  'MAILBOX_PORT',
  'MAILBOX_SMTP_PORT',
  'TEMPORAL_PORT',
  'TEMPORAL_UI_PORT',
]

type Started = {
  process: ChildProcess
  output(): string
  /** Resolves to the exit code. */
  ended: Promise<number | null>
}

/** Returns the environment of a separate service: its state directory, database and ports. */
async function freshPlace(t: ExecutionContext): Promise<NodeJS.ProcessEnv> {
  const database = await createDatabase()
  t.teardown(() => database.drop())
  const environment: NodeJS.ProcessEnv = {
    ...process.env,
    DATABASE_URL: database.url,
    POSTLOOM_STATE: join(scratchDirectory('start'), 'state'),
    TEMPORAL_ADDRESS: undefined,
    npm_lifecycle_event: undefined,
  }
  for (const name of PORTS) environment[name] = String(await freePort())
  return environment
}

function start(t: ExecutionContext, environment: NodeJS.ProcessEnv): Started {
  const script = join(projectDirectory, 'scripts', 'start.ts')
  const child = spawn(process.execPath, [script], { env: environment, detached: true, stdio: 'pipe' })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  return { process: child, output: () => output, ended }
}

async function ready(service: Started): Promise<void> {
  const said = (): boolean | undefined => {
    if (service.process.exitCode !== null) throw new Error(`it ended: ${service.output()}`)
    return service.output().includes('Postloom is ready')
  }
  await eventually('the service to be ready', said, { withinMs: 200_000, everyMs: 100 })
}

function stateOf(environment: NodeJS.ProcessEnv): string {
  return environment['POSTLOOM_STATE'] ?? ''
}

function devFile(environment: NodeJS.ProcessEnv): DevFile {
  // Written by start.ts.
  return JSON.parse(readFileSync(join(stateOf(environment), 'dev.json'), 'utf8')) as DevFile
}

/** Returns the pid files of the parts that still run. */
function livingParts(environment: NodeJS.ProcessEnv): string[] {
  const files = readdirSync(stateOf(environment)).filter((name) => name.endsWith('.pid'))
  return files.filter((name) => {
    const [pid, identity = ''] = readFileSync(join(stateOf(environment), name), 'utf8').split('\n')
    return name !== 'start.pid' && isProcess(Number(pid), identity)
  })
}

test('one start runs everything on the given address, a second says where, a stop leaves nothing running', async (t) => {
  const environment: NodeJS.ProcessEnv = { ...(await freshPlace(t)), POSTLOOM_HOST: '127.0.0.2' }
  environment['MAILBOX_FILE'] = join(stateOf(environment), 'mail', 'kept.sqlite')
  const service = start(t, environment)
  await ready(service)

  const dev = devFile(environment)
  for (const url of [`${dev.baseUrl}/readyz`, `${dev.mailbox.url}/readyz`, dev.temporal.uiUrl]) {
    t.is((await fetch(url)).status, 200, url)
  }
  t.is(dev.baseUrl, `http://127.0.0.2:${environment['API_PORT']}`)
  t.is(dev.temporal.address, `127.0.0.1:${environment['TEMPORAL_PORT']}`)
  t.true(service.output().includes(`Bearer ${dev.apiToken}`))
  t.true(existsSync(environment['MAILBOX_FILE']))
  t.is(statSync(stateOf(environment)).mode & 0o777, 0o700)
  t.is(statSync(join(stateOf(environment), 'dev.json')).mode & 0o777, 0o600)
  t.deepEqual(livingParts(environment).sort(), [
    'api.pid',
    'mailbox.pid',
    'smtp.pid',
    'temporal.pid',
    'worker.pid',
  ])

  const second = start(t, environment)
  t.is(await second.ended, 1)
  t.true(second.output().includes(`Postloom already runs here at ${dev.baseUrl}`))

  service.process.kill('SIGTERM')
  t.is(await service.ended, 0)
  t.deepEqual(livingParts(environment), [])
})

test('a start that cannot succeed names the variable to repair, without a stack', async (t) => {
  const environment = await freshPlace(t)
  const away = `127.0.0.1:${await freePort()}`
  const unknown = String(environment['DATABASE_URL']).replace(/\/\/[^@]*@/, '//nobody:x@')
  const wrong = [
    [{ LANE_RATE_BULK: 'x' }, /^LANE_RATE_BULK is "x"; give a whole number that is not negative\.$/m],
    [{ RELAY_URL: 'relay' }, /^RELAY_URL is not a relay; give smtp/m],
    [{ SMTP_PROXIES: 'lb' }, /^SMTP_PROXIES has "lb"; give addresses/m],
    [{ POSTLOOM_ENV: 'production' }, /^POSTLOOM_SECRET is not set; /m],
    [{ DATABASE_URL: `postgres://${away}/x` }, /^The database of DATABASE_URL .*ECONNREFUSED/m],
    [{ DATABASE_URL: unknown }, /^The database of DATABASE_URL .*"nobody"/m],
    [
      { TEMPORAL_ADDRESS: away },
      RegExp(`^Temporal at TEMPORAL_ADDRESS \\(${away}\\) cannot be reached: `, 'm'),
    ],
  ] as const
  for (const [variables, message] of wrong) {
    const service = start(t, { ...environment, ...variables })
    t.is(await service.ended, 1)
    t.regex(service.output(), message)
    t.notRegex(service.output(), /^ {4}at /m)
  }
})

test('a service killed with -9 is there again at the next start, with the same token', async (t) => {
  const environment = await freshPlace(t)
  const first = start(t, environment)
  await ready(first)
  const { apiToken, adminKey } = devFile(environment)
  first.process.kill('SIGKILL')
  await first.ended

  const second = start(t, environment)
  await ready(second)
  t.like(devFile(environment), { apiToken, adminKey })
})

test('a part that dies is started again', async (t) => {
  const environment = await freshPlace(t)
  const service = start(t, environment)
  await ready(service)
  const [pid] = readFileSync(join(stateOf(environment), 'api.pid'), 'utf8').split('\n')
  process.kill(Number(pid), 'SIGKILL')
  const answers = async (): Promise<boolean> => (await fetch(`${devFile(environment).baseUrl}/readyz`)).ok
  await eventually('the API to be told dead', () => service.output().includes('api ended (SIGKILL)'))
  await eventually('the API to answer again', answers, { withinMs: 60_000 })
  t.pass()
})

where(test, 'curl')(
  'an email that came by SMTP bounces: by curl out and back, as docs/smtp.md walks',
  async (t) => {
    const environment = await freshPlace(t)
    await ready(start(t, environment))
    const { baseUrl, apiToken, mailbox, smtp } = devFile(environment)
    const bring = async (url: string, given: string[], text: string): Promise<void> => {
      const file = join(stateOf(environment), 'mail.txt')
      writeFileSync(file, text.replaceAll(/\r?\n/g, '\r\n'))
      await run('curl', ['--silent', '--show-error', url, ...given, '--upload-file', file])
    }
    const secured = ['--ssl-reqd', '--cacert', join(stateOf(environment), 'smtp.crt')]
    const sent = [
      '--user',
      `me:${apiToken}`,
      '--mail-from',
      'hello@postloom.test',
      '--mail-rcpt',
      'lin@reader.example',
    ]
    const mail = 'From: hello@postloom.test\nTo: lin@reader.example\nSubject: Hello Lin\n\nHi.\n'
    await bring(`smtp://localhost:${smtp.port}`, [...secured, ...sent], mail)

    const returnPath = await eventually('the email in the mailbox', async () => {
      const { messages } = await fetchJson(`${mailbox.url}/api/v1/messages`)
      return messages[0] && (await fetchJson(`${mailbox.url}/api/v1/message/${messages[0].ID}`)).ReturnPath
    })
    const report = readReportFile('postfix-no-such-user').replaceAll('{{RETURN_PATH}}', returnPath)
    const bounced = ['--mail-from', '<>', '--mail-rcpt', returnPath]
    // The listener defers the report until the email is recorded as sent.
    await eventually('the bounce to be taken', async () => {
      return await bring(`smtp://127.0.0.1:${smtp.inboundPort}`, bounced, report).then(
        () => true,
        () => false,
      )
    })
    const ask = async (tool: string, input: object) => {
      const headers = { authorization: `Bearer ${apiToken}`, 'content-type': 'application/json' }
      const body = JSON.stringify(input)
      return (await fetchJson(`${baseUrl}/api/v2/tools/${tool}`, { method: 'POST', headers, body })).data
    }
    const { suppressions } = await ask('list_suppressions', {})
    t.like(suppressions, [{ email: 'lin@reader.example' }])
    const { subscriber } = await ask('get_subscriber', { email: 'lin@reader.example' })
    t.is(subscriber.status, 'BOUNCED')
    const { emails } = await ask('get_subscriber_emails', { email: 'lin@reader.example' })
    t.like(emails, [{ subject: 'Hello Lin', status: 'BOUNCED' }])
  },
)

// oxlint-disable-next-line typescript/no-explicit-any -- assertions reach into answers of every shape
async function fetchJson(url: string, init?: RequestInit): Promise<any> {
  return await (await fetch(url, init)).json()
}
