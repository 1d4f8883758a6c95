import test from 'ava'
import { type RawBuilder, sql } from 'kysely'

import { freePort } from '../scripts/services/ports.ts'
import { Postloom } from '../sdk/src/index.ts'
import { execute, row } from '../src/database.ts'
import { decodeId } from '../src/ids.ts'
import type { TestApi, TestOrganization } from './helpers/api.ts'
import { endProcess, startProcess } from './helpers/child.ts'
import { eventually } from './helpers/eventually.ts'
import { type Stack, startStack } from './helpers/stack.ts'

let stack: Stack
let api: TestApi

test.before(async () => {
  stack = await startStack({ queue: 'quota', env: { LANE_RATE_TRANSACTIONAL: '0' } })
  api = stack.api
})
test.after.always(() => stack?.close())

const em = () => stack.em()
const limited = (emailsPerMonth: number) =>
  api.organization({ customLimits: { requestsPerMinute: 0, emailsPerMonth } })

function send({ token }: TestOrganization, number: number, headers: Record<string, string> = {}) {
  const body = { to: `reader-${number}@reader.example`, subject: 'Hi', content: 'Hello' }
  return api.request('POST', '/api/v1/emails', { token, body, headers })
}

async function setLimit({ id }: TestOrganization, emailsPerMonth: number): Promise<void> {
  await execute(
    em(),
    sql`update organization set custom_limits = ${JSON.stringify({ requestsPerMinute: 0, emailsPerMonth })}::jsonb
      where id = ${id}`,
  )
}

async function usage(organization: TestOrganization) {
  return (await organization.data('get_org_stats')).stats.emailsThisMonth
}

async function people({ id }: TestOrganization, count: number): Promise<void> {
  await execute(
    em(),
    sql`insert into subscriber (id, organization_id, email, status)
      select new_id(), ${id}, 'crowd-' || known + n || '@reader.example', 'SUBSCRIBED'
      from generate_series(1, ${count}::int) n,
        (select count(*) as known from subscriber where organization_id = ${id}) before`,
  )
}

async function draft(organization: TestOrganization): Promise<string> {
  const { campaign } = await organization.data('create_campaign', {
    subject: 'News',
    contentType: 'MARKDOWN',
    content: '[Leave]({{unsubscribeUrl}})',
  })
  return campaign.id
}

/** Runs `work` in the transaction in which the send of a campaign changes. Returns a function that ends this. */
async function onSend(
  campaignId: string,
  change: 'insert' | 'update',
  condition: string,
  work: RawBuilder<unknown>,
): Promise<() => Promise<void>> {
  const name = sql.raw(`act_${decodeId('cmp', campaignId).replaceAll('-', '')}`)
  await execute(
    em(),
    sql`create function ${name}() returns trigger language plpgsql as $fn$ begin ${work}; return new; end $fn$;
      create trigger ${name} after ${sql.raw(change)} on campaign_send for each row
        when (new.campaign_id = ${sql.lit(decodeId('cmp', campaignId))} and ${sql.raw(condition)})
        execute function ${name}()`,
  )
  return async () => {
    await execute(em(), sql`drop function ${name} cascade`)
  }
}

async function ended(organization: TestOrganization, campaignId: string) {
  return await eventually(
    'the campaign to end',
    async () => {
      const { campaign } = await organization.data('get_campaign', { campaignId })
      return ['SENT', 'FAILED'].includes(campaign.status) && campaign
    },
    { withinMs: 60_000 },
  )
}

test('of many sends at once exactly as many are accepted as are left, and only this organization waits', async (t) => {
  const organization = await limited(10)
  const other = await limited(10)
  const answers = await Promise.all(Array.from({ length: 64 }, (_, number) => send(organization, number)))
  t.is(answers.filter(({ status }) => status === 200).length, 10)
  const refused = answers.find(({ status }) => status !== 200)
  t.like(refused, { status: 429, body: { success: false } })
  t.regex(
    refused?.body.message,
    /Your plan has 10 emails a month and none is left; wait for the first of next month/,
  )
  const wait = Number(refused?.headers.get('retry-after'))
  t.true(wait > 0 && wait <= 31 * 86_400, String(wait))
  t.deepEqual(await usage(organization), { used: 10, limit: 10 })
  t.is((await send(other, 1)).status, 200)
  t.deepEqual(await usage(other), { used: 1, limit: 10 })
})

test('what is refused, repeated, rolled back or only judged takes nothing, and neither does a test', async (t) => {
  const organization = await limited(3)
  const headers = { 'idempotency-key': 'one' }
  for (let time = 0; time < 3; time++) t.is((await send(organization, 1, headers)).status, 200)
  await api.request('POST', '/api/v1/emails', {
    token: organization.token,
    body: { to: 'ada@reader.example', from: 'x@elsewhere.example', subject: 'Hi', content: 'Hello' },
  })
  const email = { email: 'ada@reader.example', subject: 'Hi', content: 'Hello' }
  t.is((await organization.call('send_email', email)).status, 428)
  await organization.data('send_test_email', {
    campaignId: await draft(organization),
    emails: ['a@reader.example'],
  })
  const broken = em().transactional(async (within) => {
    await row(within, sql`select take_emails(${organization.id}, 2)`)
    throw new Error('a crash in the middle')
  })
  await t.throwsAsync(broken, { message: 'a crash in the middle' })
  t.deepEqual(await usage(organization), { used: 1, limit: 3 })
  t.is((await organization.confirmed('send_email', email)).status, 200)
  t.is((await send(organization, 2)).status, 200)
  t.like(await organization.call('send_email', email), { status: 429, body: { code: 'QUOTA_EXCEEDED' } })
})

test('a batch that the month has no room for is refused as a whole, by what is left', async (t) => {
  const organization = await limited(3)
  const email = {
    from: `hello@${organization.domain}`,
    to: 'a@reader.example',
    subject: 'Hi',
    html: '<p>Hi</p>',
  }
  const batch = [email, { ...email, to: 'b@reader.example' }, { ...email, to: 'c@reader.example' }]
  const { token } = organization
  t.is((await send(organization, 1)).status, 200)
  const refused = await api.request('POST', '/api/v2/emails/batch', { token, body: batch })
  t.like(refused.body, {
    name: 'monthly_quota_exceeded',
    statusCode: 429,
    message:
      'Your plan has 3 emails a month and 2 emails are left, and 3 are needed; wait for the first of next month (UTC), or ask for a larger plan.',
    details: { allowed: 3, left: 2 },
  })
  t.truthy(refused.headers.get('retry-after'))
  const fits = await api.request('POST', '/api/v2/emails/batch', { token, body: batch.slice(1) })
  t.is(fits.status, 200, JSON.stringify(fits.body))
})

test('a batch that no month has room for is refused for good, and nothing repeats it', async (t) => {
  const organization = await limited(2)
  const { token, domain } = organization
  const batch = ['a', 'b', 'c'].map((name) => ({
    from: `hello@${domain}`,
    to: `${name}@reader.example`,
    subject: 'Hi',
    html: '<p>Hi</p>',
  }))
  const refused = await api.request('POST', '/api/v2/emails/batch', { token, body: batch })
  t.like(refused, { status: 409, body: { name: 'wrong_state', details: { allowed: 2, left: 2 } } })
  t.is(refused.headers.get('retry-after'), null)
  t.regex(refused.body.message, /no month has room for so many, so leave at most 2 of them in emails/)
  let requests = 0
  const client = new Postloom(token, {
    baseUrl: api.url,
    retries: 2,
    fetch: (...request) => {
      requests += 1
      return fetch(...request)
    },
  })
  const { error } = await client.emails.batch(batch)
  t.like(error, { name: 'wrong_state', message: refused.body.message })
  t.is(requests, 1)
  t.deepEqual(await usage(organization), { used: 0, limit: 2 })
})

test('plans have limits, what was sent before a limit counts, and a month ends', async (t) => {
  const free = await api.organization({ plan: 'FREE', customLimits: {} })
  t.is((await usage(free)).limit, 3_000)
  t.is((await usage(await api.organization({ plan: 'PREMIUM' }))).limit, 100_000)
  const organization = await api.organization()
  for (const number of [1, 2, 3]) t.is((await send(organization, number)).status, 200)
  t.deepEqual(await usage(organization), { used: 3, limit: null })
  await setLimit(organization, 4)
  t.is((await send(organization, 4)).status, 200)
  t.is((await send(organization, 5)).status, 429)
  await execute(
    em(),
    sql`update email_count set month = month - interval '1 month' where organization_id = ${organization.id}`,
  )
  await execute(em(), sql`insert into email_count values (${organization.id}, quota_month(), 0, 0)`)
  t.is((await send(organization, 6)).status, 200)
  t.deepEqual(await usage(organization), { used: 1, limit: 4 })
})

test('far from the limit nobody waits for anybody, and the totals are right', async (t) => {
  const organization = await limited(1_000_000)
  t.is((await send(organization, 0)).status, 200)
  await em().transactional(async (within) => {
    await row(within, sql`select take_emails(${organization.id}, 1)`)
    t.is((await send(organization, 1)).status, 200)
  })
  t.is((await usage(organization)).used, 3)
})

test('kill -9 between taking an email of the month and its commit neither loses nor doubles any', async (t) => {
  const organization = await limited(20)
  const port = await freePort()
  const server = startProcess(api.services, 'api/main.ts', {
    env: { API_PORT: String(port), LOG_LEVEL: 'fatal' },
  })
  t.teardown(() => endProcess(server))
  const url = `http://127.0.0.1:${port}`
  await eventually('the API', async () => (await fetch(`${url}/healthz`)).ok, { withinMs: 60_000 })
  const key = (number: number) => ({ 'idempotency-key': `email ${number}` })
  const headers = { authorization: `Bearer ${organization.token}`, 'content-type': 'application/json' }
  const ask = async (number: number) =>
    await fetch(`${url}/api/v1/emails`, {
      method: 'POST',
      headers: { ...headers, ...key(number) },
      body: JSON.stringify({ to: `reader-${number}@reader.example`, subject: 'Hi', content: 'Hello' }),
    })
  t.is((await ask(0)).status, 200)
  const waiting = async () =>
    await row<{ count: number }>(
      em(),
      sql`select count(*)::int as count from pg_locks where locktype = 'advisory' and classid = 7305120 and not granted
        and objid::bigint = hashtext(${organization.id}::text)::bigint & 4294967295`,
    )
  // Holds the lock that another transaction would hold while it takes the last emails of the quota.
  await em().transactional(async (within) => {
    await execute(within, sql`select pg_advisory_xact_lock(7305120, hashtext(${organization.id}::text))`)
    const cut = [1, 2, 3].map(async (number) => await t.throwsAsync(ask(number)))
    await eventually('three to be in the middle', async () => (await waiting())?.count === 3)
    await endProcess(server)
    await Promise.all(cut)
  })
  await eventually('what the database has of them to end', async () => (await waiting())?.count === 0)
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, number) => send(organization, number, key(number))),
  )
  t.is(answers.filter(({ status }) => status === 200).length, 20)
  const stored = await row<{ emails: number }>(
    em(),
    sql`select count(*)::int as emails from message where organization_id = ${organization.id}`,
  )
  t.is(stored?.emails, 20)
  t.deepEqual(await usage(organization), { used: 20, limit: 20 })
})

test('a campaign that would exceed the month is refused with what is left, and one that fits takes what it sends', async (t) => {
  const organization = await limited(12)
  await people(organization, 5)
  const [first, second, third] = [
    await draft(organization),
    await draft(organization),
    await draft(organization),
  ]
  t.is((await organization.confirmed('schedule_campaign', { campaignId: first })).status, 200)
  t.is((await ended(organization, first)).status, 'SENT')
  t.deepEqual(await usage(organization), { used: 5, limit: 12 })
  t.is((await organization.confirmed('schedule_campaign', { campaignId: second })).status, 200)
  t.is((await ended(organization, second)).status, 'SENT')
  const refused = await organization.call('schedule_campaign', { campaignId: third })
  t.like(refused, { status: 429, body: { code: 'QUOTA_EXCEEDED', details: { allowed: 12, left: 2 } } })
  t.regex(refused.body.error, /12 emails a month and 2 emails are left, and 5 are needed/)
  const path = `/api/v2/campaigns/${third}/send`
  const { token } = organization
  t.like(await api.request('POST', path, { token }), {
    status: 429,
    body: { name: 'monthly_quota_exceeded' },
  })
  const later = new Date(Date.now() + 32 * 86_400_000).toISOString()
  await people(organization, 8)
  for (const date of [undefined, later]) {
    const asked = { token, body: { campaignId: third, ...(date && { date }) } }
    const never = await api.request('POST', '/api/v2/tools/schedule_campaign', asked)
    t.like(never, { status: 409, body: { code: 'WRONG_STATE' } })
    t.is(never.headers.get('retry-after'), null)
    t.regex(
      never.body.error,
      /no month has room for so many, so narrow recipientFilters \(update_campaign_filters\)/,
    )
  }
  await organization.data('update_campaign_filters', {
    campaignId: third,
    filters: [{ field: 'email', operator: 'contains', value: 'crowd-1@' }],
  })
  t.is((await organization.confirmed('schedule_campaign', { campaignId: third, date: later })).status, 200)
})

test('a campaign whose emails were used up meanwhile fails as a whole, and gives back what it took', async (t) => {
  const organization = await limited(10)
  await people(organization, 5)
  const campaignId = await draft(organization)
  const over = await onSend(
    campaignId,
    'insert',
    'true',
    sql`update organization set custom_limits = '{"requestsPerMinute": 0, "emailsPerMonth": 4}' where id = new.organization_id`,
  )
  t.is((await organization.confirmed('schedule_campaign', { campaignId })).status, 200)
  const failed = await ended(organization, campaignId)
  await over()
  t.is(failed.status, 'FAILED')
  const { progress } = await organization.data('get_campaign_progress', { campaignId })
  t.is(progress.sent, 0)
  const explained = await organization.data('explain_delivery', {
    email: 'crowd-1@reader.example',
    campaignId,
  })
  t.true(JSON.stringify(explained).includes('4 emails a month and 4 emails are left, and 5 are needed'))
  t.deepEqual(await usage(organization), { used: 0, limit: 4 })

  await setLimit(organization, 10)
  const paused = await draft(organization)
  const goOn = await onSend(
    paused,
    'update',
    'new.audience_frozen',
    sql`update campaign set paused = true where id = new.campaign_id`,
  )
  t.is((await organization.confirmed('schedule_campaign', { campaignId: paused })).status, 200)
  await eventually('its emails to be taken', async () => (await usage(organization)).used === 5)
  await goOn()
  const client = await api.services.temporal.client()
  await client.workflow.getHandle(`campaign/${paused}/1`).cancel()
  t.is((await ended(organization, paused)).status, 'FAILED')
  await eventually('them to be given back', async () => (await usage(organization)).used === 0)
})

test('an email of a workflow that the month has no room for is skipped, with its reason in the ledger', async (t) => {
  const organization = await limited(2)
  const { workflow } = await organization.data('create_workflow', { name: 'Welcome' })
  const { updatedAt } = (await organization.data('get_workflow', { workflowId: workflow.id })).workflow
  await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: updatedAt,
    steps: [
      { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
      { id: 'hello', type: 'EMAIL', config: { subject: 'Hi', content: 'Hello', contentType: 'MARKDOWN' } },
      {
        id: 'tell',
        type: 'NOTIFY',
        config: { to: 'team@office.example', subject: 'New', markdown: 'Look.' },
      },
    ],
    edges: [
      { from: 'start', to: 'hello' },
      { from: 'hello', to: 'tell' },
    ],
  })
  t.is((await organization.confirmed('publish_workflow', { workflowId: workflow.id })).status, 200)
  const outcomes: unknown[] = []
  for (const email of ['one@reader.example', 'two@reader.example']) {
    await organization.data('add_subscriber', { email })
    await organization.data('add_subscriber_to_workflow', { workflowId: workflow.id, email })
    await eventually('the run to end', async () => {
      const { runs } = await organization.data('get_subscriber_workflow_runs', { email })
      return runs[0]?.status === 'COMPLETED'
    })
    const { emails } = await organization.data('get_subscriber_emails', { email })
    const found = await row<{ skipped: string | null }>(
      em(),
      sql`select string_agg(d.step_id, ' ' order by d.id) as skipped from decision d join subscriber s on s.organization_id = d.organization_id
          and s.id = d.subscriber_id
        where d.organization_id = ${organization.id} and s.email = ${email} and d.reason = 'QUOTA_EXCEEDED'`,
    )
    outcomes.push([emails.length, found?.skipped])
  }
  t.deepEqual(outcomes, [
    [1, null],
    [0, 'hello tell'],
  ])
  t.deepEqual(await usage(organization), { used: 2, limit: 2 })
})
