import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'

import test from 'ava'
import { sql } from 'kysely'

import type { StepConfigs } from '../schema/automation-steps.ts'
import type { Step } from '../schema/automation.ts'
import { crossOrganization } from '../src/catalogue/unit-of-work.ts'
import { execute, row, rows } from '../src/database.ts'
import { readTimeline } from '../src/domain/automations/runs/run-records.ts'
import { cancelRuns } from '../src/domain/automations/runs/runs.ts'
import {
  type ClaimedWebhook,
  claimWebhooks,
  reportWebhook,
} from '../src/domain/automations/webhooks/webhooks.ts'
import { webhookSecret } from '../src/domain/webhooks/signature.ts'
import { encodeId } from '../src/ids.ts'
import { decisionsOf, edges, runsOf, step, type Tenant, trailOf } from './helpers/automation.ts'
import type { TestServices } from './helpers/database.ts'
import { chain, type EngineWorld, openEngine, START, TAGGED } from './helpers/engine.ts'
import { eventually } from './helpers/eventually.ts'
import { listenOnLoopback } from './helpers/listen.ts'

type Received = { method: string; path: string; headers: IncomingHttpHeaders; body: string }

let world: EngineWorld
let tenant: Tenant
let services: TestServices
let server: Server
let base: string
const received: Received[] = []
/** The responses of each path in order; the last one is repeated. */
const answers = new Map<string, { status: number; body?: string; location?: string }[]>()

test.before(async () => {
  server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const path = request.url ?? ''
      const { method = '', headers } = request
      received.push({ method, path, headers, body: Buffer.concat(parts).toString('utf8') })
      const planned = answers.get(path.split('?')[0] ?? '') ?? [{ status: 200 }]
      const answer = planned.length > 1 ? planned.shift() : planned[0]
      const { status = 200, body = '', location } = answer ?? {}
      if (status !== 0) response.writeHead(status, location === undefined ? {} : { location }).end(body)
    })
  })
  const port = await listenOnLoopback(server)
  base = `http://127.0.0.1:${port}`
  world = await openEngine('engine-webhooks', { WEB_ALLOW_PRIVATE: `127.0.0.1:${port}` })
  ;({ tenant, services } = world)
})
test.after.always(async () => {
  await world?.close()
  server?.close()
  server?.closeAllConnections()
})

const at = (path: string) => received.filter((each) => each.path.split('?')[0] === path)

function hook(path: string, more: Partial<StepConfigs['WEBHOOK']> = {}, members: Partial<Step> = {}): Step {
  const config = { url: base + path, method: 'POST' as const, timeoutSeconds: 5, retries: 0, ...more }
  return step('hook', 'WEBHOOK', config, members as Pick<Step, 'onError'>)
}

test('a webhook carries what it is told, signed, and its answer is read by the steps after it', async (t) => {
  answers.set('/score', [{ status: 201, body: '{"score": 12, "tags": ["a"]}' }])
  const subscriberId = await tenant.subscribe('hook@reader.example', { plan: 'pro' })
  const run = await world.ended(
    {
      steps: [
        START,
        hook('/score?email={{email}}', {
          method: 'PUT',
          headers: { 'X-Plan': '{{plan}}', Authorization: 'Bearer abc' },
          body: {
            who: '{{name}}',
            order: '{{entry.order.id}}: {{entry.order.lines.0.name}}',
            none: "{{nothing | 'nobody'}}",
            n: 1,
          },
          saveResponseAs: 'crm',
        }),
        step('high', 'BRANCH', {
          paths: [{ id: 'yes', filters: [{ field: 'entry.crm.score', operator: 'gte', value: 10 }] }],
        }),
        TAGGED,
      ],
      edges: edges(['start', 'hook', 'high'], ['high', 'yes', 'tag']),
    },
    subscriberId,
    { order: { id: 'A-1', lines: [{ name: 'Tea' }] } },
  )
  t.deepEqual(run.trail.slice(1), ['hook DONE→next', 'high DECIDED→yes', 'tag DONE→next'])
  const [request, ...more] = at('/score')
  t.is(more.length, 0)
  t.like(request, { method: 'PUT', path: '/score?email=hook%40reader.example' })
  t.deepEqual(JSON.parse(request?.body ?? ''), { who: 'Reader', order: 'A-1: Tea', none: 'nobody', n: 1 })
  t.like(request?.headers, {
    'x-plan': 'pro',
    authorization: 'Bearer abc',
    'content-type': 'application/json',
  })
  const secret = webhookSecret(services.config.secret, tenant.id)
  const headers: IncomingHttpHeaders = request?.headers ?? {}
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${request?.body}`
  const mac = createHmac('sha256', Buffer.from(secret.replace('whsec_', ''), 'base64')).update(signed)
  t.is(headers['webhook-signature'], `v1,${mac.digest('base64')}`)
  const [told] = await world.eventsOf(subscriberId, 'WEBHOOK_EXECUTED')
  t.like(told?.data, { stepId: 'hook', status: 201, attempts: 1, succeeded: true })
  const { timeline } = await tenant.within((call) => readTimeline(call, encodeId('run', run.id)))
  t.like(timeline[1]?.details, { status: 201, attempts: 1 })
})

test('without a body the subscriber and the run are sent; GET has none; text is kept and cut', async (t) => {
  answers.set('/plain', [{ status: 200, body: 'x'.repeat(20_000) }])
  const subscriberId = await tenant.subscribe('who@reader.example')
  const run = await world.ended(
    chain([hook('/plain', { saveResponseAs: 'text' }), { ...hook('/get', { method: 'GET' }), id: 'get' }]),
    subscriberId,
    { source: 'shop' },
  )
  t.is(run.status, 'COMPLETED')
  t.like(JSON.parse(at('/plain')[0]?.body ?? ''), {
    subscriberId: encodeId('sub', subscriberId),
    runId: encodeId('run', run.id),
    stepId: 'hook',
    subscriber: { email: 'who@reader.example', id: encodeId('sub', subscriberId) },
    entry: { source: 'shop' },
  })
  t.deepEqual([at('/get')[0]?.method, at('/get')[0]?.body], ['GET', ''])
  const [stored] = await rows<{ length: number }>(
    services.orm.em.fork(),
    sql`select length(context ->> 'text') as length from automation_run where id = ${run.id}`,
  )
  t.is(stored?.length, 4_096)
})

const DEEP = '['.repeat(8_000) + ']'.repeat(8_000)
const LONG = `${'x'.repeat(4_095)}😀${'y'.repeat(20_000)}`
for (const [name, body, kept, note] of [
  [
    'nul',
    String.raw`{"a":"x\u0000y"}`,
    String.raw`{"a":"x\u0000y"}`,
    /^kept as text: holds a control character/,
  ],
  ['half', String.raw`{"a":"\ud800"}`, String.raw`{"a":"\ud800"}`, /^kept as text: holds half of a UTF-16/],
  [
    'key',
    '{"__proto__":{"a":1}}',
    '{"__proto__":{"a":1}}',
    /^kept as text: the key "__proto__" is not allowed/,
  ],
  ['deep', DEEP, DEEP, /^kept as text: is nested deeper than 32 levels/],
  ['long', LONG, 'x'.repeat(4_095), /^cut to 4096 characters of text/],
] as const) {
  test(`an answer that no run can carry as JSON is kept as text, and asked for once: ${name}`, async (t) => {
    answers.set(`/${name}`, [{ status: 200, body }])
    const graph = chain([hook(`/${name}`, { saveResponseAs: 'crm' }), TAGGED])
    const run = await world.ended(graph, await tenant.subscribe())
    t.deepEqual(run.trail.slice(1), ['hook DONE→next', 'tag DONE→next'])
    t.is(at(`/${name}`).length, 1)
    const stored = await row<{ crm: unknown }>(
      services.orm.em.fork(),
      sql`select context -> 'crm' as crm from automation_run where id = ${run.id}`,
    )
    t.is(stored?.crm, kept)
    const { timeline } = await tenant.within((call) => readTimeline(call, encodeId('run', run.id)))
    t.regex(String(timeline[1]?.details['note']), note)
  })
}

test('a report that the database refuses ends the request, and the run says why', async (t) => {
  const em = services.orm.em.fork()
  await execute(
    em,
    sql`create function refuse_answer() returns trigger language plpgsql as $fn$
      begin raise exception 'refused'; end $fn$`,
  )
  await execute(
    em,
    sql`create trigger refuse_answer before update on automation_run for each row
      when (new.context ->> 'unkept' is not null) execute function refuse_answer()`,
  )
  answers.set('/unkept', [{ status: 200, body: '"anything"' }])
  const run = await world.ended(
    chain([hook('/unkept', { saveResponseAs: 'unkept', retries: 3 })]),
    await tenant.subscribe(),
  )
  t.is(run.status, 'FAILED')
  t.regex(run.error ?? '', /unkept was asked, but what came of it cannot be kept \(P0001\)/)
  t.is(at('/unkept').length, 1)
})

test('what may pass is tried again under the same id; the last failure leaves by failed, or as onError says', async (t) => {
  answers.set('/flaky', [{ status: 503 }, { status: 200 }])
  const flaky = await world.ended(chain([hook('/flaky', { retries: 1 }), TAGGED]), await tenant.subscribe())
  t.deepEqual(flaky.trail.slice(1), ['hook DONE→next', 'tag DONE→next'])
  const ids = at('/flaky').map(({ headers }) => headers['webhook-id'])
  t.deepEqual([ids.length, new Set(ids).size], [2, 1])

  answers.set('/down', [{ status: 500 }])
  const graph = {
    steps: [START, hook('/down', { retries: 1 }), TAGGED, step('sad', 'EXIT', {})],
    edges: edges(['start', 'hook', 'tag'], ['hook', 'failed', 'sad']),
  }
  const person = await tenant.subscribe()
  const down = await world.ended(graph, person)
  t.deepEqual(down.trail.slice(1), ['hook FAILED→failed', 'sad EXIT'])
  t.is(at('/down').length, 2)
  t.like((await world.eventsOf(person, 'WEBHOOK_EXECUTED'))[0]?.data, { status: 500, succeeded: false })

  answers.set('/gone', [{ status: 410 }])
  const gone = await world.ended(chain([hook('/gone', { retries: 5 }), TAGGED]), await tenant.subscribe())
  t.is(gone.status, 'FAILED')
  t.regex(
    gone.error ?? '',
    /^Step hook failed: POST http:\/\/127\.0\.0\.1:\d+\/gone answered 410; put the receiver right/,
  )
  t.is(at('/gone').length, 1)
  const onward = await world.ended(
    chain([hook('/gone', {}, { onError: 'CONTINUE' }), TAGGED]),
    await tenant.subscribe(),
  )
  t.deepEqual(onward.trail.slice(1), ['hook FAILED→next', 'tag DONE→next'])
  t.deepEqual(await decisionsOf(services, onward.automationId), ['STEP_FAILED REQUEST_FAILED'])
  const left = await world.ended(chain([hook('/gone', {}, { onError: 'EXIT' })]), await tenant.subscribe())
  t.deepEqual([left.status, left.exitReason], ['COMPLETED', 'ERROR'])
})

test('a request that is over stays what it was where its own event ends the run', async (t) => {
  const on = 'WEBHOOK_EXECUTED'
  const rule = { exitRules: [{ id: 'told', on }] }
  answers.set('/ends', [{ status: 200 }])
  const ruled = await world.ended(chain([hook('/ends'), TAGGED], rule), await tenant.subscribe())
  t.deepEqual([ruled.exitReason, ruled.trail.at(-1)], ['EXIT_RULE', 'hook DONE'])
  const goal = { id: 'told', name: 'Told', windowDays: 1, countFrom: 'ENTRY', exitOnReach: true, event: on }
  const reached = await world.ended(
    { ...chain([hook('/ends'), TAGGED]), successGoals: [goal] },
    await tenant.subscribe(),
  )
  t.deepEqual([reached.exitReason, reached.trail.at(-1)], ['GOAL', 'hook DONE'])
  answers.set('/fails', [{ status: 410 }])
  const failed = await world.ended(chain([hook('/fails'), TAGGED], rule), await tenant.subscribe())
  t.deepEqual([failed.exitReason, failed.trail.at(-1)], ['EXIT_RULE', 'hook FAILED'])
})

test('an address inside, and one that never answers, fail in time and say why', async (t) => {
  answers.set('/silent', [{ status: 0 }])
  const silent = await world.ended(chain([hook('/silent', { timeoutSeconds: 1 })]), await tenant.subscribe())
  t.regex(silent.error ?? '', /did not answer within 1 seconds/)
  const inside = {
    ...hook(''),
    config: { url: 'http://169.254.169.254/x', method: 'GET', timeoutSeconds: 1, retries: 0 },
  }
  const refused = await world.ended(chain([inside as Step]), await tenant.subscribe())
  t.regex(refused.error ?? '', /does not lead to a public address/)
})

test('a redirect is not followed: what a request carries is for the address that the author named', async (t) => {
  answers.set('/moved', [{ status: 302, location: '/elsewhere' }])
  const headers = { Authorization: 'Bearer abc' }
  for (const method of ['GET', 'POST'] as const) {
    const run = await world.ended(
      chain([hook('/moved', { method, headers, retries: 3 })]),
      await tenant.subscribe(),
    )
    t.regex(run.error ?? '', /moved answered 302: redirects are not followed, name the address they lead to;/)
  }
  t.is(at('/moved').length, 2)
  t.deepEqual(at('/elsewhere'), [])
})

test.serial('a run that leaves takes its request with it; a paused workflow sends none', async (t) => {
  answers.set('/never', [{ status: 503 }])
  const subscriberId = await tenant.subscribe()
  const exitRules = [{ id: 'left', on: 'LEFT_NOW' }]
  const id = await world.publish(chain([hook('/never', { retries: 10 })], { exitRules }))
  await world.enter(id, subscriberId)
  const run = await world.runWhen(id, { waitKind: 'WEBHOOK' })
  t.is(run.status, 'ACTIVE')
  await eventually('a first attempt', () => Promise.resolve(at('/never').length > 0))
  await world.happened(subscriberId, 'LEFT_NOW')
  t.is((await world.endOf(id)).exitReason, 'EXIT_RULE')
  t.deepEqual(await rows(services.orm.em.fork(), sql`select 1 from run_webhook where run_id = ${run.id}`), [])

  const paused = await world.publish(chain([hook('/paused', { retries: 10 })]))
  answers.set('/paused', [{ status: 503 }])
  await world.enter(paused, subscriberId)
  await eventually('a first attempt', () => Promise.resolve(at('/paused').length > 0))
  await execute(services.orm.em.fork(), sql`update automation set status = 'PAUSED' where id = ${paused}`)
  await execute(
    services.orm.em.fork(),
    sql`update run_webhook set next_attempt_at = now() - interval '1 day'`,
  )
  t.deepEqual(await claimWebhooks(crossOrganization(services), 10), [])
})

test.serial('many requests of a paused workflow keep no other workflow waiting', async (t) => {
  const em = services.orm.em.fork()
  const paused = await world.publish(chain([hook('/crowd', { retries: 10 })]))
  answers.set('/crowd', [{ status: 503 }])
  await world.enter(paused, await tenant.subscribe())
  await eventually('a first attempt', () => Promise.resolve(at('/crowd').length > 0))
  await execute(em, sql`update automation set status = 'PAUSED' where id = ${paused}`)
  await execute(
    em,
    sql`insert into run_webhook (organization_id, automation_id, run_id, visit, request, next_attempt_at)
      select webhook.organization_id, webhook.automation_id, webhook.run_id, webhook.visit + more, webhook.request, now() - interval '1 day'
      from run_webhook webhook join automation_run run on run.id = webhook.run_id, generate_series(1, 1000) more
      where run.automation_id = ${paused}`,
  )
  const live = await world.publish(chain([hook('/beside')]))
  await world.enter(live, await tenant.subscribe())
  t.deepEqual((await world.endOf(live)).trail.slice(1), ['hook DONE→next'])
})

/** Starts a run at its request to this path, and claims the request as a worker that then does nothing. */
async function claimed(path: string) {
  const subscriberId = await tenant.subscribe()
  const id = await world.publish(chain([hook(path), TAGGED]))
  const em = services.orm.em.fork()
  await execute(
    em,
    sql`create or replace function hold_webhook() returns trigger language plpgsql as $fn$
      begin new.next_attempt_at := now() + interval '1 hour'; new.attempt := 1; return new; end $fn$`,
  )
  await execute(
    em,
    sql`create trigger hold_webhook before insert on run_webhook for each row
      when (new.request ->> 'url' like ${sql.lit(`%${path}`)}) execute function hold_webhook()`,
  )
  await world.enter(id, subscriberId)
  const run = await world.runWhen(id, { waitKind: 'WEBHOOK' })
  await execute(em, sql`drop trigger hold_webhook on run_webhook`)
  const [found] = await rows<Pick<ClaimedWebhook, 'visit' | 'attempt' | 'request'>>(
    em,
    sql`select visit, attempt, request from run_webhook where run_id = ${run.id}`,
  )
  if (!found) throw new Error('no request was written down')
  return { id, subscriberId, claim: { organizationId: tenant.id, runId: run.id, ...found } }
}

test.serial(
  'a worker that died with a request leaves it to another, and what it reports late changes nothing',
  async (t) => {
    const { id, subscriberId, claim } = await claimed('/twice')
    answers.set('/twice', [{ status: 200 }])
    await execute(
      services.orm.em.fork(),
      sql`update run_webhook set next_attempt_at = now() where run_id = ${claim.runId}`,
    )
    t.deepEqual((await world.endOf(id)).trail.slice(1), ['hook DONE→next', 'tag DONE→next'])
    const late = { status: 500, fault: null, reason: 'late', retryMs: null, response: null }
    await tenant.within((call) => reportWebhook(call, claim, late))
    t.is((await world.eventsOf(subscriberId, 'WEBHOOK_EXECUTED')).length, 1)
    t.is((await runsOf(services, tenant, id))[0]?.status, 'COMPLETED')
  },
)

test.serial('a request whose outcome nobody could note ten times is sent no more', async (t) => {
  const { id, claim } = await claimed('/lost')
  await execute(
    services.orm.em.fork(),
    sql`update run_webhook set attempt = 11, next_attempt_at = now() where run_id = ${claim.runId}`,
  )
  const run = await world.endOf(id)
  t.is(run.status, 'FAILED')
  t.regex(run.error ?? '', /lost was asked, but what came of it could not be noted after 12 attempts/)
  t.is(at('/lost').length, 0)
})

test.serial(
  'a report that comes while its run is being ended waits for its turn, so that neither is done again',
  async (t) => {
    const { id, claim } = await claimed('/ended')
    const result = { status: 200, fault: null, reason: null, retryMs: null, response: null }
    const tries = { ending: 0, reporting: 0 }
    let reporting: Promise<unknown> | undefined
    await tenant.within(async (call) => {
      tries.ending += 1
      await row(call.em, sql`select 1 from automation_run where id = ${claim.runId} for no key update`)
      const own = await row<{ pid: number }>(call.em, sql`select pg_backend_pid() as pid`)
      reporting ??= tenant.within((beside) => {
        tries.reporting += 1
        return reportWebhook(beside, claim, result)
      })
      if (tries.ending === 1) {
        await eventually('the report to wait', () =>
          row(
            services.orm.em.fork(),
            sql`select 1 from pg_stat_activity
            where datname = current_database() and ${own?.pid ?? 0} = any(pg_blocking_pids(pid)) limit 1`,
          ),
        )
      }
      await cancelRuns(call, [claim.runId], 'MANUAL')
    })
    await reporting
    t.deepEqual(tries, { ending: 1, reporting: 1 })
    t.like((await runsOf(services, tenant, id))[0], { status: 'CANCELED', exitReason: 'MANUAL' })
  },
)

test.serial('a request that was under way when its run ended is told once, and moves nobody', async (t) => {
  const { id, subscriberId, claim } = await claimed('/late')
  await tenant.within((call) => cancelRuns(call, [claim.runId], 'GROUP_CONFLICT'))
  const result = { status: 200, fault: null, reason: null, retryMs: null, response: null }
  for (let round = 0; round < 2; round++) await tenant.within((call) => reportWebhook(call, claim, result))
  const told = await world.eventsOf(subscriberId, 'WEBHOOK_EXECUTED')
  t.is(told.length, 1)
  t.like(told[0]?.data, { stepId: 'hook', status: 200, attempts: 1, succeeded: true })
  const [run] = await runsOf(services, tenant, id)
  t.like(run, { status: 'CANCELED', exitReason: 'GROUP_CONFLICT' })
  t.deepEqual((await trailOf(services, claim.runId)).at(-1), 'hook CANCELED')
})
