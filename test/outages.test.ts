import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { connect, createServer as createTcpServer, type Socket } from 'node:net'

import { Client, Connection, ServiceError } from '@temporalio/client'
import test, { type ExecutionContext } from 'ava'
import { sql } from 'kysely'
import { pino } from 'pino'

import { createApp } from '../api/app.ts'
import { freePort } from '../scripts/services/ports.ts'
import { isDatabaseAway } from '../src/catalogue/database-error.ts'
import { readConfig } from '../src/config.ts'
import { migrate, openDatabase, rows } from '../src/database.ts'
import { signToken, type TrackingToken } from '../src/delivery/tracking-token.ts'
import { seedDevelopment } from '../src/development.ts'
import { newId } from '../src/ids.ts'
import { listenForRings } from '../src/ports/doorbell.ts'
import { createTemporalPort } from '../src/ports/temporal.ts'
import { createServices } from '../src/services.ts'
import { runWorkflowId } from '../temporal/contract.ts'
import { startOutboxRelay } from '../worker/outbox.ts'
import { watchSearchAttributes } from '../worker/search-attributes.ts'
import { startEngine } from '../worker/workers.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { endProcess, isUp, startProcess } from './helpers/child.ts'
import { eventually } from './helpers/eventually.ts'
import { listenOnLoopback } from './helpers/listen.ts'
import { follow, makePkce, TestBrowser } from './helpers/oauth.ts'
import { scratchDirectory, services, startOwnPostgres, startOwnTemporal } from './helpers/services.ts'
import { startSmtpSink } from './helpers/smtp-sink.ts'
import { publishWorkflow } from './helpers/workflow.ts'

/** The exit code of a worker that ended within its grace period. After that it ends itself with 1. */
const IN_ORDER = 0
/** A fast-forward answers within this time. */
const ANSWERS_MS = 6_500
/** A message without fields, as gRPC frames it: not compressed, 0 bytes long. */
const EMPTY_MESSAGE = Buffer.alloc(5)
/** gRPC status codes. */
const CANCELLED = 1
const PERMISSION_DENIED = 7
const UNIMPLEMENTED = 12
const UNAVAILABLE = 14
const DAYS = { amount: 3, unit: 'DAYS' }

/** Publishes a workflow with two long waits and a manual trigger. */
async function publish(organization: TestOrganization): Promise<string> {
  return await publishWorkflow(organization, [
    { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
    { id: 'first', type: 'WAIT', config: DAYS },
    { id: 'second', type: 'WAIT', config: DAYS },
  ])
}

/** Adds a subscriber and enters them into such a workflow. */
async function enter(organization: TestOrganization) {
  const workflowId = await publish(organization)
  const { subscriber } = await organization.data('add_subscriber', { email: 'ada@reader.example' })
  const ids = { workflowId, subscriberId: String(subscriber.id) }
  const { run } = await organization.data('add_subscriber_to_workflow', ids)
  return { ids, runId: String(run.id) }
}

async function trail(organization: TestOrganization, runId: string): Promise<string[]> {
  const { timeline } = await organization.data('get_workflow_run', { runId })
  return timeline.map((visit: { step: { id: string }; result: string }) => `${visit.step.id} ${visit.result}`)
}

async function untilStanding(organization: TestOrganization, runId: string, stepId: string): Promise<void> {
  await eventually(`the run to wait in ${stepId}`, async () => {
    const { run } = await organization.data('get_workflow_run', { runId })
    return run.status === 'WAITING' && run.currentStep.id === stepId
  })
}

test('closing ends while a connection to the database is being opened, and nobody gets that one', async (t) => {
  const { databaseUrl } = await services()
  const orm = await openDatabase(databaseUrl)
  const asked = rows(orm.em.fork(), sql`select 1`)
  await Promise.all([orm.close(), t.throwsAsync(asked, { message: /are being closed/ })])
})

test('a database whose name does not resolve is away', async (t) => {
  const { databaseUrl } = await services()
  const orm = await openDatabase(Object.assign(new URL(databaseUrl), { hostname: 'database.invalid' }).href)
  const error = await t.throwsAsync(rows(orm.em.fork(), sql`select 1`))
  t.true(isDatabaseAway(error), String(error))
  await orm.close()
})

test('a listener whose database is away asks for one connection a second, and has one when it is back', async (t) => {
  const { databaseUrl } = await services()
  const { hostname, port } = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const asked: number[] = []
  let isAway = false
  const between = createTcpServer((socket) => {
    socket.on('error', () => undefined)
    if (isAway) {
      asked.push(performance.now())
      socket.destroy()
      return
    }
    const database = connect(Number(port), hostname)
    database.on('error', () => undefined)
    sockets.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      database.destroy()
    })
    socket.pipe(database).pipe(socket)
  })
  const through = Object.assign(new URL(databaseUrl), {
    host: `127.0.0.1:${await listenOnLoopback(between)}`,
  })
  const rings: string[] = []
  const listener = await listenForRings(
    through.href,
    (channel) => rings.push(channel),
    pino({ level: 'silent' }),
  )
  isAway = true
  for (const socket of sockets) socket.destroy()
  await eventually('four connections to be asked for', () => asked.length >= 4)
  const [first = 0, , , fourth = 0] = asked
  t.true(fourth - first > 2_900, `four within ${fourth - first} ms`)
  isAway = false
  rings.length = 0
  await eventually('it to listen again', () => rings.length > 0)
  t.is(sockets.size, 1)
  await listener.close()
  await eventually('its connection to be closed', () => sockets.size === 0)
  between.close()
})

test('without a worker a fast-forward answers UNAVAILABLE, and a repeat expires the wait once', async (t) => {
  const api = await startApi({ TEMPORAL_TASK_QUEUE: `outage-${process.pid}` })
  const organization = await api.organization()
  const first = await startEngine(api.services)
  const { ids, runId } = await enter(organization)
  await untilStanding(organization, runId, 'first')
  await first.stop()

  const request = { ...ids, expectedStepId: 'first' }
  const begun = Date.now()
  const refused = await organization.call('fast_forward_workflow_subscriber', request)
  const tookMs = Date.now() - begun
  t.is(refused.status, 503)
  t.is(refused.body.code, 'UNAVAILABLE')
  t.regex(refused.body.error, /repeat/)
  t.truthy(refused.headers.get('retry-after'))
  t.true(tookMs < ANSWERS_MS, `it took ${tookMs} ms`)
  t.deepEqual(await trail(organization, runId), ['start ENTERED', 'first WAITING'])

  const relay = startOutboxRelay(api.services, { knowsAttributes: () => Promise.resolve(false) })
  await eventually('the nudge to be told to Temporal', () => isOutboxEmpty(api))
  await relay.stop()
  const second = await startEngine(api.services)
  const moved = await organization.data('fast_forward_workflow_subscriber', request)
  t.like(moved, { fromStep: { id: 'first' }, toStep: { id: 'second' }, run: { status: 'WAITING' } })
  await eventually('every signal to be told', () => isOutboxEmpty(api))
  const again = await organization.data('fast_forward_workflow_subscriber', request)
  t.like(again, { fromStep: { id: 'first' }, toStep: { id: 'second' } })
  t.deepEqual(await trail(organization, runId), ['start ENTERED', 'first FAST_FORWARD', 'second WAITING'])
  await second.stop()
  await api.close()
})

test('runs go without search attributes where the server says so, and not where it is only away', async (t) => {
  const attributes = watchSearchAttributes('default')
  const away = await answering(t, UNAVAILABLE)
  await t.throwsAsync(away.withDeadline(Date.now() + 2_000, () => attributes.known(away)))
  t.is(attributes.missing(), null)
  const connection = await Connection.connect({ address: (await services()).temporalAddress })
  t.teardown(() => connection.close())
  t.true(await attributes.known(new Client({ connection })))
  t.deepEqual(attributes.missing(), [])

  for (const refusal of [PERMISSION_DENIED, UNIMPLEMENTED]) {
    const refused = watchSearchAttributes('default')
    t.false(await refused.known(await answering(t, refusal)))
    t.true(refused.missing()?.includes('RunState'))
  }
})

/** Returns a client of a server that answers every call with this gRPC status. */
async function answering(t: ExecutionContext, status: number): Promise<Client> {
  const server = createHttp2Server()
  server.on('stream', (stream) =>
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': String(status) },
      { endStream: true },
    ),
  )
  const port = await listenOnLoopback(server)
  const connection = Connection.lazy({ address: `127.0.0.1:${port}` })
  t.teardown(async () => {
    await connection.close()
    server.close()
  })
  return new Client({ connection })
}

test('requests that are retried when the connection to Temporal is closed end with an error', async (t) => {
  const asked: string[] = []
  const server = createHttp2Server()
  server.on('stream', (stream, { ':path': path }) => {
    asked.push(String(path))
    const headers = { ':status': 200, 'content-type': 'application/grpc' }
    if (!path?.endsWith('/GetSystemInfo')) {
      stream.respond({ ...headers, 'grpc-status': String(UNAVAILABLE) }, { endStream: true })
      return
    }
    stream.respond(headers, { waitForTrailers: true })
    stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(EMPTY_MESSAGE)
  })
  t.teardown(() => server.close())
  const port = await listenOnLoopback(server)
  const temporal = createTemporalPort(
    {
      address: `127.0.0.1:${port}`,
      namespace: 'default',
      taskQueue: 'any',
      apiKey: undefined,
      tls: false,
      uiUrl: undefined,
    },
    pino({ enabled: false }),
  )
  const { workflow } = await temporal.client()
  const asking = t.throwsAsync(workflow.getHandle('any').signal('any'), { instanceOf: ServiceError })
  await eventually(
    'a retry',
    () => asked.filter((path) => path.endsWith('/SignalWorkflowExecution')).length > 1,
  )
  await temporal.close()
  const error = await asking
  t.like(error?.cause, { code: CANCELLED, details: 'Channel has been shut down' })
})

test.serial(
  'a worker without Temporal stays up, says so, sends mail, and starts runs when it comes',
  async (t) => {
    const port = await freePort()
    const sink = await startSmtpSink()
    const env = { TEMPORAL_ADDRESS: `127.0.0.1:${port}`, TEMPORAL_TASK_QUEUE: `down-${process.pid}` }
    const api = await startApi(env)
    const organization = await api.organization()
    const worker = await startWorker(api, { ...env, RELAY_URL: sink.url })
    try {
      t.like(await worker.readiness(), { status: 503, body: { dependencies: { database: 'ok' } } })
      t.regex((await worker.readiness()).body.dependencies.temporal, /unreachable/)
      const to = 'ada@reader.example'
      const accepted = await api.request('POST', '/api/v1/emails', {
        token: organization.token,
        body: { to, subject: 'Your code', content: 'It is 1234' },
      })
      t.is(accepted.status, 200)
      await eventually('the email', () => sink.accepted().some(({ recipient }) => recipient === to))

      const { ids, runId } = await enter(organization)
      t.is((await organization.data('get_workflow_run', { runId })).run.status, 'QUEUED')
      const early = await organization.call('fast_forward_workflow_subscriber', ids)
      t.is(early.body.code, 'WRONG_STATE')

      const temporal = await startOwnTemporal(scratchDirectory('late'), port)
      try {
        await eventually('a ready worker', async () => (await worker.readiness()).status === 200)
        await untilStanding(organization, runId, 'first')
        await eventually('an empty outbox', () => isOutboxEmpty(api))
        const client = await api.services.temporal.client()
        const workflow = client.workflow.getHandle(runWorkflowId(ids.workflowId, ids.subscriberId, 1))
        // The database has the wait first; the workflow sets its attributes when its task ends.
        const attributes = await eventually('the attributes of its wait', async () => {
          const { searchAttributes } = await workflow.describe()
          return 'Step' in searchAttributes && searchAttributes
        })
        t.like(attributes, { SubscriberId: [ids.subscriberId], RunState: ['WAITING'], Step: ['first'] })
        t.true(worker.isUp())
        t.is(sink.accepted().length, 1)
      } finally {
        await temporal.stop()
      }
      // While Temporal is down again, email is still sent.
      const second = { to: 'bob@reader.example', subject: 'Again', content: 'Still here' }
      const { token } = organization
      t.is((await api.request('POST', '/api/v1/emails', { token, body: second })).status, 200)
      await eventually('the second email', () => sink.accepted().length === 2)
      const refused = await organization.call('fast_forward_workflow_subscriber', ids)
      t.is(refused.body.code, 'UNAVAILABLE')
      await eventually(
        'readiness to say that Temporal is gone',
        async () => (await worker.readiness()).status === 503,
      )
      t.is(await worker.stop(), IN_ORDER)
    } finally {
      await worker.kill()
      await api.close()
      await sink.close()
    }
  },
)

test.serial('a worker that never reached Temporal ends on SIGTERM within its grace', async (t) => {
  const port = await freePort()
  const env = { TEMPORAL_ADDRESS: `127.0.0.1:${port}`, TEMPORAL_TASK_QUEUE: `never-${process.pid}` }
  const api = await startApi(env)
  const organization = await api.organization()
  // A start that cannot be dispatched must not keep the process alive either.
  await enter(organization)
  const worker = await startWorker(api, env)
  try {
    t.is((await worker.readiness()).status, 503)
    t.is(await worker.stop(), IN_ORDER)
  } finally {
    await worker.kill()
    await api.close()
  }
})

test.serial(
  'a worker whose Temporal takes connections but never answers ends on SIGTERM within its grace',
  async (t) => {
    const mute = createTcpServer((socket) => socket.on('error', () => socket.destroy()))
    const address = `127.0.0.1:${await listenOnLoopback(mute)}`
    const env = { TEMPORAL_ADDRESS: address, TEMPORAL_TASK_QUEUE: `mute-${process.pid}` }
    const api = await startApi(env)
    await enter(await api.organization())
    const connected = once(mute, 'connection')
    const worker = await startWorker(api, env)
    try {
      await connected
      t.is(await worker.stop(), IN_ORDER)
    } finally {
      await worker.kill()
      await api.close()
      mute.close()
    }
  },
)

test.serial('a worker whose Temporal froze ends on SIGTERM within its grace', async (t) => {
  const temporal = await startOwnTemporal()
  const env = { TEMPORAL_ADDRESS: temporal.address, TEMPORAL_TASK_QUEUE: `frozen-${process.pid}` }
  const api = await startApi(env)
  const organization = await api.organization()
  const worker = await startWorker(api, env)
  try {
    const { ids, runId } = await enter(organization)
    await untilStanding(organization, runId, 'first')
    process.kill(temporal.pid, 'SIGSTOP')
    t.is((await organization.call('fast_forward_workflow_subscriber', ids)).body.code, 'UNAVAILABLE')
    t.is(await worker.stop(), IN_ORDER)
  } finally {
    process.kill(temporal.pid, 'SIGCONT')
    await worker.kill()
    await api.close()
    await temporal.stop()
  }
})

async function isOutboxEmpty({ services }: TestApi): Promise<boolean> {
  return (await rows(services.orm.em.fork(), sql`select 1 from outbox`)).length === 0
}

type Readiness = { status: number; body: { dependencies: { database: string; temporal: string } } }

/** Starts the worker as a separate process and waits until it answers. */
async function startWorker({ services }: TestApi, more: Record<string, string>) {
  const port = await freePort()
  const worker = startProcess(services, 'worker/main.ts', {
    env: { WORKER_PORT: String(port), LOG_LEVEL: 'fatal', ...more },
  })
  const readiness = async (): Promise<Readiness> => {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`)
    // The shape that worker/health.ts writes.
    return { status: response.status, body: (await response.json()) as Readiness['body'] }
  }
  const kill = () => endProcess(worker, 'SIGKILL')
  try {
    await eventually('the worker to answer', readiness, { withinMs: 60_000 })
  } catch (error) {
    await kill()
    throw error
  }
  return {
    readiness,
    isUp: () => isUp(worker),
    /** Sends SIGTERM and returns the exit code. */
    async stop(): Promise<number | null> {
      await endProcess(worker, 'SIGTERM')
      return worker.exitCode
    },
    kill,
  }
}

test('while PostgreSQL is away every door answers 503 and when to repeat, and people get a page', async (t) => {
  const postgres = await startOwnPostgres()
  const config = readConfig({ ...process.env, DATABASE_URL: postgres.url, LOG_LEVEL: 'silent' })
  await migrate(config)
  const { apiToken } = await seedDevelopment(config, {})
  const services = await createServices(config, 'test')
  const server = createServer(createApp(services).callback())
  const port = await listenOnLoopback(server)
  const url = `http://127.0.0.1:${port}`
  const ask = (path: string, body: object) =>
    fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiToken}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const email = { to: 'reader@example.com', subject: 'Hello', content: 'Hello' }
  try {
    t.is((await ask('/api/v1/emails', email)).status, 200)
    const callback = 'https://client.example/callback'
    const registered: unknown = await (
      await ask('/oauth/register', { redirect_uris: [callback], token_endpoint_auth_method: 'none' })
    ).json()
    const wanted = new URLSearchParams({
      client_id: String(Object(registered).client_id),
      redirect_uri: callback,
      response_type: 'code',
      code_challenge: makePkce().challenge,
      code_challenge_method: 'S256',
    })
    const authorize = `/oauth/authorize?${wanted.toString()}`
    const browser = new TestBrowser(url)
    const login = await follow(browser, await browser.open(authorize))
    t.is(login.status, 200)
    postgres.kill()
    await postgres.exited
    for (const [path, body] of [
      ['/api/v2/tools/list_tags', {}],
      ['/api/v1/emails', email],
    ] as const) {
      const answer = await ask(path, body)
      t.is(answer.status, 503)
      t.is(answer.headers.get('retry-after'), '1')
    }
    const ids = { organizationId: newId(), messageId: newId(), subscriberId: newId() }
    const token = (kind: TrackingToken['kind']) => signToken(config.secret, { kind, ...ids, position: 0 })
    for (const [path, method] of [
      [`/u/${token('unsubscribe')}`, 'GET'],
      [`/u/${token('unsubscribe')}`, 'POST'],
      [`/s/${token('confirm')}`, 'GET'],
      [`/v/${token('view')}`, 'GET'],
      [`/c/${token('click')}`, 'GET'],
    ] as const) {
      await asksToTryAgain(t, await fetch(url + path, { method }))
    }
    await asksToTryAgain(t, await browser.open(authorize))
    await asksToTryAgain(t, await browser.open(login.url))
    const credentials = { email: 'ada@team.example', password: 'x' }
    await asksToTryAgain(t, await browser.submit(login.url, credentials, { origin: config.baseUrl }))
    const client = new URLSearchParams({ client_id: 'any', token: 'any', grant_type: 'refresh_token' })
    for (const [path, body] of [
      ['/oauth/token', client],
      ['/oauth/revoke', client],
      ['/oauth/register', JSON.stringify({ redirect_uris: ['https://client.example/'] })],
    ] as const) {
      const headers = typeof body === 'string' ? { 'content-type': 'application/json' } : {}
      const answer = await fetch(url + path, { method: 'POST', body, headers })
      t.is(answer.status, 503, path)
      t.is(answer.headers.get('retry-after'), '1')
      t.like(await answer.json(), { error: 'temporarily_unavailable' })
    }
  } finally {
    server.closeAllConnections()
    server.close()
    await services.close()
  }
})

async function asksToTryAgain(t: ExecutionContext, answer: Response): Promise<void> {
  t.is(answer.status, 503, answer.url)
  t.is(answer.headers.get('retry-after'), '1')
  t.regex(answer.headers.get('content-type') ?? '', /^text\/html/)
  t.regex(await answer.text(), /Please try again in a moment/)
}

test('a statement that runs too long is cut off, answered with 503, and changes nothing', async (t) => {
  const api = await startApi()
  const organization = await api.organization()
  const { subscriber } = await organization.data('add_subscriber', { email: 'ada@reader.example' })
  const quiet = { ...api.services.config, logLevel: 'silent' }
  const impatient = await createServices(quiet, 'test', { statementTimeoutMs: 200 })
  const server = createServer(createApp(impatient).callback())
  const port = await listenOnLoopback(server)
  const url = `http://127.0.0.1:${port}`
  const rename = { subscriber: subscriber.id, name: 'Ada' }
  const answer = await api.services.orm.em.fork().transactional(async (em) => {
    await rows(em, sql`select from subscriber for update`)
    return await fetch(`${url}/api/v2/tools/update_subscriber`, {
      method: 'POST',
      headers: { authorization: `Bearer ${organization.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(rename),
    })
  })
  t.is(answer.status, 503)
  t.is(answer.headers.get('retry-after'), '10')
  t.like(await answer.json(), { success: false, code: 'UNAVAILABLE' })
  t.is((await organization.data('get_subscriber', { subscriberId: subscriber.id })).subscriber.name, null)
  t.is((await organization.call('update_subscriber', rename)).status, 200)
  server.closeAllConnections()
  server.close()
  await impatient.close()
  await api.close()
})

test('a call that gets no connection to the database in time is answered with 503', async (t) => {
  const api = await startApi()
  const organization = await api.organization()
  const quiet = { ...api.services.config, logLevel: 'silent' }
  const full = await createServices(quiet, 'test', { poolSize: 1, connectionTimeoutMs: 1_000 })
  const server = createServer(createApp(full).callback())
  const port = await listenOnLoopback(server)
  const ask = () =>
    fetch(`http://127.0.0.1:${port}/api/v2/tools/list_tags`, {
      method: 'POST',
      headers: { authorization: `Bearer ${organization.token}`, 'content-type': 'application/json' },
      body: '{}',
    })
  const answer = await full.orm.em.fork().transactional(async (em) => {
    await rows(em, sql`select 1`)
    return await ask()
  })
  t.is(answer.status, 503)
  t.is(answer.headers.get('retry-after'), '1')
  t.is((await ask()).status, 200)
  server.closeAllConnections()
  server.close()
  await full.close()
  await api.close()
})
