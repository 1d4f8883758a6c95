import { createHmac, randomUUID } from 'node:crypto'

import test from 'ava'
import { sql } from 'kysely'

import type { Settings } from '../schema/automation.ts'
import { rows } from '../src/database.ts'
import { decodeId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { decisionsOf, runsOf, step } from './helpers/automation.ts'

let api: TestApi

test.before(async () => {
  api = await startApi({ TEMPORAL_TASK_QUEUE: `webhooks-${process.pid}` })
})
test.after.always(async () => {
  await api?.close()
})

type Webhook = { stepId: string; slug: string; url: string; secret: string | null }

const EVERY_TIME: Partial<Settings> = { reEntry: { mode: 'EVERY_TIME' } }
const PAUSE = step('pause', 'WAIT', { amount: 1, unit: 'DAYS' })

async function publish(organization: TestOrganization, workflowId: string): Promise<Webhook[]> {
  const answer = await organization.confirmed('publish_workflow', { workflowId })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return answer.body.data.inboundWebhooks
}

async function draft(
  organization: TestOrganization,
  settings: Partial<Settings> = EVERY_TIME,
  workflowId?: string,
  type: 'INBOUND_WEBHOOK' | 'MANUAL' = 'INBOUND_WEBHOOK',
): Promise<string> {
  const { workflow } = workflowId
    ? await organization.data('get_workflow', { workflowId })
    : await organization.data('create_workflow', { name: 'Orders' })
  const filters = [{ field: 'entry.total', operator: 'gte', value: 10 }]
  await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    settings,
    steps: [
      { id: 'start', type: 'TRIGGER', config: { type, ...(type === 'MANUAL' ? {} : { filters }) } },
      PAUSE,
    ],
    edges: [{ from: 'start', to: 'pause' }],
  })
  return workflow.id
}

type Sending = { id?: string; at?: number; secret?: string; raw?: string }

/** Sends a message signed according to Standard Webhooks. */
async function send({ slug, secret }: Webhook, body: unknown, sending: Sending = {}) {
  const {
    id = `msg_${randomUUID()}`,
    at = Math.floor(Date.now() / 1000),
    raw = JSON.stringify(body),
  } = sending
  const key = Buffer.from((sending.secret ?? secret ?? '').replace('whsec_', ''), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${at}.${raw}`).digest('base64')
  return await api.request('POST', `/api/v1/integrations/webhook/${slug}`, {
    raw,
    headers: {
      'webhook-id': id,
      'webhook-timestamp': String(at),
      'webhook-signature': `v1,AAAA v1,${signature}`,
    },
  })
}

async function person(organization: TestOrganization, name: string): Promise<string> {
  const { subscriber } = await organization.data('add_subscriber', { email: `${name}@example.com` })
  return subscriber.id
}

const runs = async (organization: TestOrganization, workflowId: string) =>
  (await runsOf(api.services, organization, decodeId('wf', workflowId))).length

test('a signed message lets the person it names enter with it, once for each id, by the filters', async (t) => {
  const organization = await api.organization()
  const workflowId = await draft(organization)
  const [webhook] = await publish(organization, workflowId)
  if (!webhook) throw new Error('no webhook was made')
  t.regex(webhook.secret ?? '', /^whsec_/)
  t.is(webhook.url, `${api.url}/api/v1/integrations/webhook/${webhook.slug}`)
  const subscriberId = await person(organization, 'ann')
  const first = await send(
    webhook,
    { email: 'ANN@example.com', total: 20, order: { id: 7 } },
    { id: 'msg_1' },
  )
  t.is(first.status, 200)
  t.like(first.body, { success: true, data: { entered: true, reason: null } })
  const again = await Promise.all(
    [1, 2, 3].map(() => send(webhook, { email: 'ann@example.com', total: 20 }, { id: 'msg_1' })),
  )
  for (const answer of again) t.deepEqual(answer.body, first.body)
  t.is(await runs(organization, workflowId), 1)
  t.true((await send(webhook, { subscriberId, total: 30 })).body.data.entered)
  t.is(await runs(organization, workflowId), 2)
  const small = await send(webhook, { subscriberId, total: 1 })
  t.like(small.body.data, { entered: false, runId: null, reason: 'FILTERS' })
  t.deepEqual(await decisionsOf(api.services, decodeId('wf', workflowId)), ['ENTRY_REFUSED FILTERS'])
  const { run } = await organization.data('get_workflow_run', { runId: first.body.data.runId })
  t.is(run.subscriberId, subscriberId)
})

test('the secret is told once, stays with the step, and goes with it', async (t) => {
  const organization = await api.organization()
  const workflowId = await draft(organization)
  const [made] = await publish(organization, workflowId)
  const [kept] = await publish(organization, workflowId)
  if (!made) throw new Error('no webhook was made')
  t.deepEqual(kept, { ...made, secret: null })
  await person(organization, 'ann')
  t.is((await send(made, { email: 'ann@example.com', total: 10 })).status, 200)
  await draft(organization, EVERY_TIME, workflowId, 'MANUAL')
  t.deepEqual(await publish(organization, workflowId), [])
  t.is((await send(made, { email: 'ann@example.com', total: 10 })).status, 404)
  await draft(organization, EVERY_TIME, workflowId)
  const [other] = await publish(organization, workflowId)
  t.not(other?.slug, made.slug)
  t.not(other?.secret, made.secret)
})

test('an Idempotency-Key keeps no secret: a repetition is answered without it', async (t) => {
  const organization = await api.organization()
  const workflowId = await draft(organization)
  const { body: challenge } = await organization.call('publish_workflow', { workflowId })
  const asked = {
    token: organization.token,
    headers: { 'idempotency-key': 'publish once' },
    body: { workflowId, confirmationCode: challenge.confirmationCode },
  }
  const [first, again] = [
    await api.request('POST', '/api/v2/tools/publish_workflow', asked),
    await api.request('POST', '/api/v2/tools/publish_workflow', asked),
  ]
  const [made] = first.body.data.inboundWebhooks
  t.regex(made.secret, /^whsec_/)
  t.deepEqual(again.body.data, { ...first.body.data, inboundWebhooks: [{ ...made, secret: null }] })
  const kept = await rows<{ answer: unknown }>(
    api.services.orm.em.fork(),
    sql`select * from idempotency_record where organization_id = ${organization.id}`,
  )
  t.is(kept.length, 1)
  t.false(JSON.stringify(kept).includes('whsec_'))
})

test('what is not signed, not fresh, not JSON, too large or nobody is refused and leaves no trace', async (t) => {
  const organization = await api.organization()
  const workflowId = await draft(organization)
  const [webhook] = await publish(organization, workflowId)
  const stranger = await api.organization()
  const [theirs] = await publish(stranger, await draft(stranger))
  if (!webhook || !theirs) throw new Error('no webhook was made')
  await person(stranger, 'eve')
  const ann = { email: 'ann@example.com', total: 10 }
  await person(organization, 'ann')
  const now = Math.floor(Date.now() / 1000)
  for (const [sending, status] of [
    [{ secret: theirs.secret ?? '' }, 401],
    [{ at: now - 400 }, 401],
    [{ at: now + 400 }, 401],
    [{ id: 'with space' }, 401],
    [{ raw: 'nonsense' }, 400],
    [{ raw: '[]' }, 400],
    [{ raw: '{"__proto__": {"x": 1}}' }, 422],
    [{ raw: JSON.stringify({ ...ann, more: 'x'.repeat(100_001) }) }, 413],
  ] as const) {
    t.is((await send(webhook, ann, sending)).status, status, JSON.stringify(sending).slice(0, 60))
  }
  t.is((await send(webhook, { email: 'nobody@example.com', total: 10 })).status, 404)
  t.is((await send(webhook, { email: 'eve@example.com', total: 10 })).status, 404)
  t.is((await send({ ...webhook, slug: 'whk_nonsense' }, ann)).status, 404)
  const bare = await api.request('POST', `/api/v1/integrations/webhook/${webhook.slug}`, { body: ann })
  t.is(bare.status, 401)
  await organization.data('update_workflow_status', { workflowId, status: 'PAUSED' })
  t.is((await send(webhook, ann, { id: 'msg_later' })).status, 409)
  await organization.confirmed('update_workflow_status', { workflowId, status: 'ACTIVE' })
  t.is(await runs(organization, workflowId), 0)
  t.is((await send(webhook, ann, { id: 'msg_later' })).status, 200)
  t.is(await runs(organization, workflowId), 1)
})

for (const [title, reEntry, keys, expected] of [
  ['ONCE', { mode: 'ONCE' }, ['a', 'b', 'leave', 'c'], [null, 'ALREADY_ACTIVE', 'ALREADY_ENTERED']],
  ['AFTER_EXIT', { mode: 'AFTER_EXIT' }, ['a', 'b', 'leave', 'c'], [null, 'ALREADY_ACTIVE', null]],
  ['EVERY_TIME', { mode: 'EVERY_TIME' }, ['a', 'a'], [null, null]],
  [
    'PER_KEY',
    { mode: 'PER_KEY', keyPath: 'order.id' },
    ['a', 'b', 'a', null],
    [null, null, 'ALREADY_ACTIVE', 'NO_KEY'],
  ],
  [
    'a cooldown',
    { mode: 'EVERY_TIME', cooldown: { amount: 1, unit: 'HOURS' } },
    ['a', 'b'],
    [null, 'COOLDOWN'],
  ],
  ['maxEntries', { mode: 'EVERY_TIME', maxEntries: 2 }, ['a', 'b', 'c'], [null, null, 'MAX_ENTRIES']],
] as const) {
  test(`re-entry by a webhook: ${title}`, async (t) => {
    const organization = await api.organization()
    const workflowId = await draft(organization, { reEntry })
    const [webhook] = await publish(organization, workflowId)
    if (!webhook) throw new Error('no webhook was made')
    await person(organization, 'ann')
    const reasons: (string | null)[] = []
    for (const id of keys) {
      if (id === 'leave') {
        await organization.data('remove_subscriber_from_workflow', { workflowId, email: 'ann@example.com' })
        continue
      }
      const answer = await send(webhook, {
        email: 'ann@example.com',
        total: 10,
        ...(id && { order: { id } }),
      })
      reasons.push(answer.body.data.reason)
    }
    t.deepEqual(reasons, [...expected])
    t.is(await runs(organization, workflowId), expected.filter((reason) => reason === null).length)
  })
}
