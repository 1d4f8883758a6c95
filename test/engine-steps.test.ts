import test from 'ava'
import { sql } from 'kysely'
import { simpleParser } from 'mailparser'

import type { Settings, Step } from '../schema/automation.ts'
import { execute, row } from '../src/database.ts'
import { enterByHand } from '../src/domain/automations/entry/enter-by-hand.ts'
import { readTimeline } from '../src/domain/automations/runs/run-records.ts'
import { pickVariant } from '../src/domain/automations/steps/choices.ts'
import { eraseSubscriber, NO_ADDRESS } from '../src/domain/subscribers/erasure.ts'
import { updateSubscriber } from '../src/domain/subscribers/subscribers.ts'
import { addSuppressions } from '../src/domain/subscribers/suppressions.ts'
import { encodeId } from '../src/ids.ts'
import {
  decisionsOf,
  edges,
  emailStep,
  makeTenant,
  publish,
  runsOf,
  step,
  type Tenant,
} from './helpers/automation.ts'
import type { TestServices } from './helpers/database.ts'
import { chain, type EngineWorld, openEngine, START, TAGGED } from './helpers/engine.ts'
import { eventually } from './helpers/eventually.ts'

let world: EngineWorld
let tenant: Tenant
let services: TestServices

test.before(async () => {
  world = await openEngine('engine-steps')
  ;({ tenant, services } = world)
})
test.after.always(() => world?.close())

const AGAIN: Partial<Settings> = { reEntry: { mode: 'EVERY_TIME' } }

test('SPLIT shares people out by weight, and the same person falls on the same variant', (t) => {
  const variants = [
    { id: 'a', weight: 3 },
    { id: 'none', weight: 0 },
    { id: 'b', weight: 1 },
  ]
  const picked = Array.from({ length: 4_000 }, (_, index) => pickVariant(variants, `person ${index}`))
  const share = (id: string) => picked.filter((each) => each === id).length
  t.is(share('none'), 0)
  t.true(Math.abs(share('a') - 3_000) < 150, `${share('a')} of 4,000`)
  t.is(pickVariant(variants, 'person 7'), picked[7] ?? '')
})

test('SPLIT: who comes again gets the earlier variant, also when the weights have changed', async (t) => {
  const split = (a: number, b: number, sticky: boolean) => ({
    steps: [
      START,
      step('test', 'SPLIT', {
        variants: [
          { id: 'a', weight: a },
          { id: 'b', weight: b },
        ],
        sticky,
        holdoutVariantId: 'a',
      }),
      TAGGED,
    ],
    edges: edges(['start', 'test'], ['test', 'b', 'tag']),
    settings: AGAIN,
  })
  const subscriberId = await tenant.subscribe()
  const first = await world.ended(split(1, 0, true), subscriberId)
  t.deepEqual(first.trail, ['start ENTERED→next', 'test DECIDED→a'])
  const { timeline } = await tenant.within((call) => readTimeline(call, encodeId('run', first.id)))
  t.deepEqual(timeline[1]?.details, { holdout: true })
  const next = { automationId: first.automationId, number: 2 }
  await publish(services, tenant, split(0, 1, true), next)
  await world.enter(first.automationId, subscriberId)
  await eventually(
    'a second run',
    async () => (await runsOf(services, tenant, first.automationId)).length === 2,
  )
  t.deepEqual((await world.endOf(first.automationId)).trail, ['start ENTERED→next', 'test DECIDED→a'])
  await publish(services, tenant, split(0, 1, false), { ...next, number: 3 })
  await world.enter(first.automationId, subscriberId)
  await eventually(
    'a third run',
    async () => (await runsOf(services, tenant, first.automationId)).length === 3,
  )
  t.deepEqual((await world.endOf(first.automationId)).trail, [
    'start ENTERED→next',
    'test DECIDED→b',
    'tag DONE→next',
  ])
})

test('JUMP goes back as often as it may, then on; conditions can skip it', async (t) => {
  const subscriberId = await tenant.subscribe('jump@reader.example', { tries: 0 })
  const run = await world.ended(
    chain([
      step('count', 'UPDATE_FIELD', { increment: { tries: 1 } }),
      step('back', 'JUMP', { toStepId: 'count', maxTimes: 2 }),
      step(
        'never',
        'JUMP',
        { toStepId: 'count', maxTimes: 9 },
        { conditions: [{ field: 'status', operator: 'equals', value: 'BANNED' }] },
      ),
      TAGGED,
    ]),
    subscriberId,
  )
  t.deepEqual(run.trail, [
    'start ENTERED→next',
    'count DONE→next',
    'back JUMPED→jump',
    'count DONE→next',
    'back JUMPED→jump',
    'count DONE→next',
    'back EXHAUSTED→next',
    'never SKIPPED→next',
    'tag DONE→next',
  ])
  t.deepEqual(await world.fieldsOf(subscriberId), { tries: 3 })
})

test('UPDATE_FIELD sets, adds and clears, and tells of what changed', async (t) => {
  const subscriberId = await tenant.subscribe('field@reader.example')
  await tenant.within((call) =>
    updateSubscriber(call, encodeId('sub', subscriberId), { fields: { plan: 'free', points: 5, gone: 'x' } }),
  )
  const config = { set: { plan: 'pro' }, increment: { points: -2, visits: 1 }, clear: ['gone'] }
  const run = await world.ended(chain([step('change', 'UPDATE_FIELD', config)]), subscriberId)
  t.is(run.status, 'COMPLETED')
  t.deepEqual(await world.fieldsOf(subscriberId), { plan: 'pro', points: 3, visits: 1 })
  const told = await world.eventsOf(subscriberId, 'FIELD_UPDATED')
  t.deepEqual(
    told.filter(({ cause }) => cause.kind === 'run').map(({ data }) => [data['field'], data['to']]),
    [
      ['plan', 'pro'],
      ['points', 3],
      ['visits', 1],
      ['gone', null],
    ],
  )
})

test('a change that is refused is the failure of its step, as its onError says, and leaves nothing behind', async (t) => {
  const subscriberId = await tenant.subscribe('refused@reader.example')
  await tenant.within((call) =>
    updateSubscriber(call, encodeId('sub', subscriberId), { fields: { level: 'low' } }),
  )
  const wrong = (onError: Step['onError']) =>
    chain([
      step('before', 'UPDATE_FIELD', { set: { seen: onError } }),
      step('wrong', 'UPDATE_FIELD', { set: { other: 'x' }, increment: { level: 1 } }, { onError }),
      TAGGED,
    ])
  const failed = await world.ended(wrong('FAIL'), subscriberId)
  t.is(failed.status, 'FAILED')
  t.regex(failed.error ?? '', /Step wrong failed: .*increment\.level.*not a number field/)
  const left = await world.ended(wrong('EXIT'), subscriberId)
  t.deepEqual([left.status, left.exitReason], ['COMPLETED', 'ERROR'])
  t.deepEqual(await decisionsOf(services, left.automationId), [
    'STEP_FAILED INVALID_INPUT',
    'RUN_ENDED ERROR',
  ])
  const gone = await world.ended(wrong('CONTINUE'), subscriberId)
  t.deepEqual(gone.trail.slice(1), ['before DONE→next', 'wrong FAILED→next', 'tag DONE→next'])
  t.deepEqual(await world.fieldsOf(subscriberId), { level: 'low', seen: 'CONTINUE' })
  t.deepEqual(await decisionsOf(services, gone.automationId), ['STEP_FAILED INVALID_INPUT'])
})

test('SUBSCRIPTION unsubscribes, which ends the run itself unless its workflow says otherwise', async (t) => {
  const leaving = [step('leave', 'SUBSCRIPTION', { action: 'UNSUBSCRIBE', reason: 'no interest' }), TAGGED]
  const subscriberId = await tenant.subscribe()
  const run = await world.ended(chain(leaving), subscriberId)
  t.deepEqual([run.status, run.exitReason], ['CANCELED', 'UNSUBSCRIBED'])
  t.deepEqual(run.trail, ['start ENTERED→next', 'leave DONE→next'])
  const [told] = await world.eventsOf(subscriberId, 'UNSUBSCRIBED')
  t.like(told?.data, { source: 'workflow', reason: 'no interest' })
  t.is((await world.eventsOf(subscriberId, 'WORKFLOW_CANCELED')).length, 1)
  t.is((await world.eventsOf(subscriberId, 'WORKFLOW_COMPLETED')).length, 0)

  const staying = await world.ended(chain(leaving, { exitOnUnsubscribe: false }), await tenant.subscribe())
  t.deepEqual([staying.status, staying.exitReason], ['COMPLETED', 'END'])
  t.deepEqual(staying.trail.slice(1), ['leave DONE→next', 'tag DONE→next'])
})

test('a step that ends its own run gives no reason to the step before it', async (t) => {
  const leave = step('leave', 'SUBSCRIPTION', { action: 'UNSUBSCRIBE' })
  const run = await world.ended(chain([emailStep('goodbye'), leave]), await tenant.subscribe())
  t.is(run.exitReason, 'UNSUBSCRIBED')
  const { timeline } = await tenant.within((call) => readTimeline(call, encodeId('run', run.id)))
  t.deepEqual(
    timeline.map(({ result, port, details }) => [result, port, details['reason']]),
    [
      ['ENTERED', 'next', undefined],
      ['SENT', 'next', undefined],
      ['DONE', 'next', undefined],
    ],
  )
})

test('a person whose address is suppressed goes on without the email, unless a rule ends the run', async (t) => {
  const suppress = (address: string) =>
    tenant.within((call) => addSuppressions(call, [address], { reason: 'COMPLAINT', source: 'api' }))
  const blocked = await tenant.subscribe('blocked@reader.example')
  await suppress('blocked@reader.example')
  const run = await world.ended(chain([emailStep('hello'), TAGGED]), blocked)
  t.deepEqual([run.status, run.exitReason], ['COMPLETED', 'END'])
  t.deepEqual(run.trail.slice(1), ['hello SKIPPED→next', 'tag DONE→next'])
  t.deepEqual(await decisionsOf(services, run.automationId), ['SEND_EMAIL SUPPRESSED'])

  const complaining = await tenant.subscribe()
  const exitRules = [{ id: 'spam', on: 'EMAIL_COMPLAINED' }]
  const id = await world.publish(
    chain([step('pause', 'WAIT', { amount: 3, unit: 'DAYS' }), TAGGED], { exitRules }),
  )
  await world.enter(id, complaining)
  await world.runWhen(id, { status: 'WAITING' })
  await world.happened(complaining, 'EMAIL_COMPLAINED')
  t.is((await world.endOf(id)).exitReason, 'EXIT_RULE')
})

test('CREATE_EVENT starts what answers to it, wakes who waits for it, and a payment counts as revenue', async (t) => {
  const answering = await publish(services, tenant, {
    steps: [
      step('heard', 'TRIGGER', {
        type: 'EVENT',
        eventType: 'LEAD_SCORED',
        where: [{ path: 'metadata.score', operator: 'gte', value: 10 }],
      }),
    ],
    edges: [],
  })
  const waiting = await publish(
    services,
    tenant,
    chain([
      step('wait', 'WAIT_UNTIL', {
        mode: 'EVENT',
        eventType: 'LEAD_SCORED',
        scope: 'STEP',
        onTimeout: 'CONTINUE',
      }),
    ]),
  )
  const subscriberId = await tenant.subscribe()
  await world.enter(waiting.id, subscriberId)
  await world.runWhen(waiting.id, { status: 'WAITING' })
  const run = await world.ended(
    chain([
      step('score', 'CREATE_EVENT', { eventType: 'LEAD_SCORED', metadata: { score: 12 } }),
      step('paid', 'CREATE_EVENT', { eventType: 'SUBSCRIBER_PAYMENT', amount: 20.5, currency: 'EUR' }),
      step('wrong', 'CREATE_EVENT', { eventType: 'SUBSCRIBER_PAYMENT', amount: -1 }, { onError: 'CONTINUE' }),
    ]),
    subscriberId,
  )
  t.deepEqual(run.trail.slice(1), ['score DONE→next', 'paid DONE→next', 'wrong FAILED→next'])
  t.is((await world.endOf(answering.id)).status, 'COMPLETED')
  t.deepEqual((await world.endOf(waiting.id)).trail.slice(1), ['wait EVENT→next'])
  const stat = await row<{ revenue: string }>(
    services.orm.em.fork(),
    sql`select revenue from subscriber_stat where organization_id = ${tenant.id} and subscriber_id = ${subscriberId}`,
  )
  t.is(Number(stat?.revenue), 20.5)
  t.deepEqual((await world.eventsOf(subscriberId, 'LEAD_SCORED'))[0]?.data, { metadata: { score: 12 } })
})

test('NOTIFY tells a colleague about the subscriber, and does not count as email to the subscriber', async (t) => {
  const subscriberId = await tenant.subscribe('watched@reader.example', { plan: 'pro' })
  const config = {
    to: 'team@office.example',
    subject: '{{name}} is on {{plan}}',
    markdown: 'Write to **{{email}}** now, {{unknown | "whoever"}}.',
  }
  const run = await world.ended(chain([step('tell', 'NOTIFY', config), TAGGED]), subscriberId)
  t.deepEqual(run.trail.slice(1), ['tell DONE→next', 'tag DONE→next'])
  const mail = await eventually('the mail', () =>
    Promise.resolve(world.sink.accepted().find(({ recipient }) => recipient === 'team@office.example')),
  )
  const raw = mail.raw.toString('utf8')
  t.regex(raw, /Subject: Reader is on pro/)
  t.regex(raw, /watched@reader\.example/)
  t.regex(raw, /whoever/)
  // A colleague cannot unsubscribe, and a footer would only look as if.
  t.notRegex(raw, /unsubscribe/i)
  t.is((await world.eventsOf(subscriberId, 'EMAIL_SENT')).length, 0)

  const other = await makeTenant(services)
  await execute(
    services.orm.em.fork(),
    sql`update sender set is_default = false where id = ${other.senderId}`,
  )
  const graph = chain([step('tell', 'NOTIFY', config)])
  const automation = await publish(services, other, graph)
  const person = await other.subscribe()
  const ids = { workflowId: encodeId('wf', automation.id), subscriberId: encodeId('sub', person) }
  await other.within((call) => enterByHand(call, ids))
  const failed = await eventually('the run to fail', async () => {
    const [newest] = await runsOf(services, other, automation.id)
    return newest?.status === 'FAILED' ? newest : null
  })
  t.regex(failed.error ?? '', /Step tell failed: .*create_email_sender/)
})

test('what a subscriber writes into a field is not filled in again in the email of NOTIFY', async (t) => {
  const subscriberId = await tenant.subscribe('braces@reader.example', { plan: '{{{org-name}}}' })
  const config = { to: 'braces@office.example', subject: 'On {{plan}}', markdown: 'On {{plan}}.' }
  await world.ended(chain([step('tell', 'NOTIFY', config), TAGGED]), subscriberId)
  const mail = await eventually('the mail', () =>
    Promise.resolve(world.sink.accepted().find(({ recipient }) => recipient === 'braces@office.example')),
  )
  const { subject, text, html } = await simpleParser(mail.raw)
  t.is(subject, 'On { { {org-name}}}')
  t.regex(text ?? '', /On \{\{\{org-name\}\}\}\./)
  t.regex(html || '', /On \{&#123;\{org-name\}\}\}\./)
})

test('an erased person is in no email that NOTIFY sent about them', async (t) => {
  const subscriberId = await tenant.subscribe('forgotten@reader.example', { plan: 'pro' })
  const config = { to: 'forget@office.example', subject: '{{email}}', markdown: '{{email}} is on {{plan}}.' }
  await world.ended(chain([step('tell', 'NOTIFY', config), TAGGED]), subscriberId)
  const read = () =>
    row<{ status: string; recipient: string; subject: string | null; contents: number }>(
      services.orm.em.fork(),
      sql`select status, recipient, subject, (select count(*)::int from message_content content
          where content.organization_id = ${tenant.id} and content.message_id = message.id) as contents
        from message where organization_id = ${tenant.id} and class = 'TEST'
          and recipient in ('forget@office.example', ${NO_ADDRESS})`,
    )
  await eventually('the mail', async () => (await read())?.status === 'SENT')
  t.like(await read(), { subject: 'forgotten@reader.example', contents: 1 })
  await tenant.within((call) => eraseSubscriber(call, encodeId('sub', subscriberId)))
  t.deepEqual(await read(), { status: 'SENT', recipient: NO_ADDRESS, subject: null, contents: 0 })
})

test('what a run did is not heard by another organization', async (t) => {
  const other = await makeTenant(services)
  const foreign = await publish(services, other, {
    steps: [step('heard', 'TRIGGER', { type: 'EVENT', eventType: 'OWN_NEWS' })],
    edges: [],
  })
  await world.ended(chain([step('say', 'CREATE_EVENT', { eventType: 'OWN_NEWS' })]), await tenant.subscribe())
  t.deepEqual(await runsOf(services, other, foreign.id), [])
})
