import test from 'ava'
import { sql } from 'kysely'

import type { WaitUntilConfigs } from '../schema/automation-steps.ts'
import type { Step } from '../schema/automation.ts'
import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { execute, row, rows } from '../src/database.ts'
import { updateStatus } from '../src/domain/automations/definition/status.ts'
import { endConditionWaits, noteTimedConditions } from '../src/domain/automations/runs/conditions.ts'
import { nudgeRuns } from '../src/domain/automations/runs/nudge.ts'
import { readTimeline } from '../src/domain/automations/runs/run-records.ts'
import { resumeHeldRuns } from '../src/domain/automations/runs/runs.ts'
import { fieldDateDue, windowOpens } from '../src/domain/automations/runs/schedule.ts'
import { decideWindow } from '../src/domain/automations/steps/timing.ts'
import { recordEvents } from '../src/domain/events.ts'
import { updateSubscriber } from '../src/domain/subscribers/subscribers.ts'
import { addTags, ensureTags } from '../src/domain/subscribers/tags.ts'
import { encodeId, newId } from '../src/ids.ts'
import { FAST_FORWARD, type FastForward, type FastForwarded, runWorkflowId } from '../temporal/contract.ts'
import { reconcile } from '../worker/reconciler.ts'
import { settleAll } from '../worker/visits.ts'
import {
  CLOSED,
  decisionsOf,
  edges,
  emailStep,
  makeTenant,
  OPEN,
  passWait,
  runsOf,
  step,
  type Tenant,
  trailOf,
} from './helpers/automation.ts'
import type { TestServices } from './helpers/database.ts'
import { chain, type EngineWorld, openEngine, START, TAGGED } from './helpers/engine.ts'
import { eventually } from './helpers/eventually.ts'

let world: EngineWorld
let tenant: Tenant
let services: TestServices

test.before(async () => {
  world = await openEngine('engine-waits', { LOG_LEVEL: 'warn' }, { watching: true })
  ;({ tenant, services } = world)
})
test.after.always(() => world?.close())

const LONG = step('pause', 'WAIT', { amount: 3, unit: 'DAYS' })
const EMAIL = emailStep('hello')
const VIP = [{ field: 'tags', operator: 'has_any' as const, value: ['vip'] }]

type Config<Mode extends keyof WaitUntilConfigs> = Omit<WaitUntilConfigs[Mode], 'mode' | 'onTimeout'> & {
  onTimeout?: 'EXIT'
}
function until<Mode extends keyof WaitUntilConfigs>(mode: Mode, config: Config<Mode>): Step {
  // The signature guarantees that mode and members match.
  const whole = { onTimeout: 'CONTINUE', ...config, mode } as unknown as WaitUntilConfigs[Mode]
  return step('until', 'WAIT_UNTIL', whole)
}
const FIELD = {
  direction: 'AFTER' as const,
  anniversary: false,
  ifMissing: 'CONTINUE' as const,
  ifPast: 'CONTINUE' as const,
}

/** Returns a graph with this step in the middle: its port `timeout` leads to an EXIT, `next` to a tag. */
function around(middle: Step) {
  return {
    steps: [START, middle, TAGGED, step('late', 'EXIT', {})],
    edges: edges(['start', 'until', 'tag'], ['until', 'timeout', 'late']),
  }
}

/** Returns the kind and the end of a run's wait. */
async function waitOf(runId: string): Promise<{ waitKind: string; wakeAt: string; until: string } | null> {
  return await row(
    services.orm.em.fork(),
    sql`select run.wait_kind as "waitKind", run.wake_at as "wakeAt", step.outcome ->> 'until' as until
      from automation_run run join run_step step on step.run_id = run.id and step.visit = run.visit
      where run.id = ${runId}`,
  )
}

async function setStatus(automationId: string, status: 'ACTIVE' | 'PAUSED'): Promise<void> {
  await tenant.within((call) => updateStatus(call, encodeId('wf', automationId), status))
}

async function setField(subscriberId: string, fields: Record<string, unknown>): Promise<void> {
  await tenant.within((call) => updateSubscriber(call, encodeId('sub', subscriberId), { fields }))
}

test('a window of hours is open, or opens next: over midnight, on its days, across daylight saving', (t) => {
  const zone = { timezone: 'Europe/Paris' }
  const at = (now: string, window: Parameters<typeof windowOpens>[0]) =>
    new Date(windowOpens(window, { now: Date.parse(now), ...zone })).toISOString()
  const office = { start: '09:00', end: '17:00', days: ['MON' as const, 'TUE' as const] }
  t.is(at('2026-01-05T10:00:00Z', office), '2026-01-05T10:00:00.000Z')
  t.is(at('2026-01-05T07:00:00Z', office), '2026-01-05T08:00:00.000Z')
  t.is(at('2026-01-06T16:00:00Z', office), '2026-01-12T08:00:00.000Z')
  const night = { start: '22:00', end: '06:00', days: ['SAT' as const] }
  t.is(at('2026-01-11T03:00:00Z', night), '2026-01-11T03:00:00.000Z')
  t.is(at('2026-01-11T05:00:00Z', night), '2026-01-17T21:00:00.000Z')
  // On 29 March 2026, clocks go from 02:00 to 03:00.
  t.is(at('2026-03-29T00:30:00Z', { start: '02:30', end: '05:00' }), '2026-03-29T01:30:00.000Z')
  t.is(at('2026-01-05T10:00:00Z', { ...office, timezone: 'America/New_York' }), '2026-01-05T14:00:00.000Z')
})

test('the date of a field is moved by its offset; an anniversary is the next one, also of 29 February', (t) => {
  const due = (
    value: unknown,
    config: Partial<WaitUntilConfigs['FIELD_DATE']>,
    now = '2026-06-15T12:00:00Z',
  ) => {
    const whole = {
      mode: 'FIELD_DATE' as const,
      field: 'x',
      ...FIELD,
      onTimeout: 'CONTINUE' as const,
      ...config,
    }
    const moment = fieldDateDue(value, whole, { now: Date.parse(now), timezone: 'Europe/Paris' })
    return moment === null ? null : new Date(moment).toISOString()
  }
  const days = (amount: number) => ({ offset: { amount, unit: 'DAYS' as const } })
  t.is(due('2026-07-01', {}), '2026-06-30T22:00:00.000Z')
  t.is(due('2026-07-01', { ...days(3), direction: 'BEFORE' }), '2026-06-27T22:00:00.000Z')
  t.is(due('2026-10-24T10:00:00.000Z', days(1)), '2026-10-25T11:00:00.000Z')
  t.is(due('1990-06-15', { anniversary: true }), '2027-06-14T22:00:00.000Z')
  t.is(due('1990-06-20', { anniversary: true, ...days(7), direction: 'BEFORE' }), '2027-06-12T22:00:00.000Z')
  t.is(due('1990-06-10', { anniversary: true, ...days(7) }), '2026-06-16T22:00:00.000Z')
  t.is(due('1992-02-29', { anniversary: true }), '2027-02-27T23:00:00.000Z')
  t.is(due('2030-06-20', { anniversary: true }), '2030-06-19T22:00:00.000Z')
  t.is(due('1992-02-29', { anniversary: true }, '2027-06-01T00:00:00Z'), '2028-02-28T23:00:00.000Z')
  t.is(due('soon', {}), null)
  t.is(due(undefined, {}), null)
})

test('FIELD_DATE waits for the date, follows the field when it moves, and says what to do without one', async (t) => {
  const subscriberId = await tenant.subscribe()
  await setField(subscriberId, { visit: '2099-01-01' })
  const id = await world.publish(around(until('FIELD_DATE', { field: 'visit', ...FIELD })))
  await world.enter(id, subscriberId)
  const run = await world.runWhen(id, { status: 'WAITING', waitKind: 'TIME' })
  await setField(subscriberId, { other: 1 })
  await setField(subscriberId, { visit: '2098-01-01' })
  await eventually('the wait to move', async () => {
    const [visit] = await rows<{ until: string }>(
      services.orm.em.fork(),
      sql`select outcome ->> 'until' as until from run_step where run_id = ${run.id} and step_id = 'until'`,
    )
    return visit?.until.startsWith('2098-01-01')
  })
  await setField(subscriberId, { visit: '2020-01-01' })
  t.deepEqual((await world.endOf(id)).trail, ['start ENTERED→next', 'until SKIPPED→next', 'tag DONE→next'])
  t.deepEqual(await decisionsOf(services, id), ['STEP_SKIPPED PAST'])
  t.deepEqual(await rows(services.orm.em.fork(), sql`select 1 from run_wait where run_id = ${run.id}`), [])

  const gone = until('FIELD_DATE', { field: 'nothing', ...FIELD, ifMissing: 'TIMEOUT' })
  const person = await tenant.subscribe()
  const without = await world.ended(around(gone), person)
  t.deepEqual(without.trail.slice(1), ['until SKIPPED→timeout', 'late EXIT'])
  t.deepEqual(await decisionsOf(services, without.automationId), ['STEP_SKIPPED MISSING'])
  const past = until('FIELD_DATE', { field: 'visit', ...FIELD, ifPast: 'EXIT' })
  const left = await world.ended(around(past), subscriberId)
  t.deepEqual([left.exitReason, left.trail.at(-1)], ['EXPIRED', 'until EXIT'])
})

test('no wait is for a moment beyond the year 9999, which nobody could read or look for', async (t) => {
  const last = '9999-12-31T23:59:59.000Z'
  const subscriberId = await tenant.subscribe()
  await setField(subscriberId, { end: '9999-12-31' })
  const offset = { amount: 5, unit: 'WEEKS' as const }
  const client = await services.temporal.client()
  for (const wait of [
    until('FIELD_DATE', { field: 'end', ...FIELD, offset }),
    until('FIELD_DATE', { field: 'end', ...FIELD, offset, timeout: { amount: 1, unit: 'DAYS' } }),
  ]) {
    const id = await world.publish(around(wait))
    await world.enter(id, subscriberId)
    const { id: runId, waitKind } = await world.runWhen(id, { status: 'WAITING' })
    const { timeline, run } = await tenant.within((call) => readTimeline(call, encodeId('run', runId)))
    t.is(timeline[1]?.details['until'], last)
    if (waitKind === 'TIME') t.is(run.nextStepAt, last)
    const handle = client.workflow.getHandle(
      runWorkflowId(encodeId('wf', id), encodeId('sub', subscriberId), 1),
    )
    await eventually('the workflow to wait', async () => {
      const { searchAttributes } = await handle.describe()
      return searchAttributes['RunState']?.[0] === 'WAITING'
    })
    await world.fastForward(id, subscriberId)
    t.is((await world.endOf(id)).status, 'COMPLETED')
  }
})

test('FIELD_DATE lasts no longer than its time-out, however often the field is changed', async (t) => {
  const soon = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
  const subscriberId = await tenant.subscribe()
  await setField(subscriberId, { arrival: soon(10) })
  const timeout = { amount: 1, unit: 'HOURS' as const }
  const id = await world.publish(around(until('FIELD_DATE', { field: 'arrival', ...FIELD, timeout })))
  await world.enter(id, subscriberId)
  const run = await world.runWhen(id, { status: 'WAITING', waitKind: 'LIMIT' })
  const first = await waitOf(run.id)
  for (const date of [soon(12), soon(0.02), soon(14)]) {
    const before = await waitOf(run.id)
    await setField(subscriberId, { arrival: date })
    await eventually('the wait to move', async () => (await waitOf(run.id))?.until !== before?.until)
  }
  t.like(await waitOf(run.id), { waitKind: 'LIMIT', wakeAt: first?.wakeAt })
})

test('a wait for a date or an hour lasts no longer than its time-out', async (t) => {
  const timeout = { amount: 1, unit: 'SECONDS' as const }
  const person = await tenant.subscribe()
  const late = await world.ended(around(until('DATE', { date: '2099-01-01', timeout })), person)
  t.deepEqual(late.trail.slice(1), ['until TIMEOUT→timeout', 'late EXIT'])
  const shut = await world.ended(
    around(until('TIME_WINDOW', { ...CLOSED, timeout, onTimeout: 'EXIT' })),
    person,
  )
  t.deepEqual([shut.exitReason, shut.trail.at(-1)], ['EXPIRED', 'until TIMEOUT'])
  const open = await world.ended(around(until('TIME_WINDOW', { ...OPEN, timezone: 'UTC' })), person)
  t.is(open.trail[1], 'until ELAPSED→next')
  const id = await world.publish(around(until('TIME_WINDOW', CLOSED)))
  await world.enter(id, person)
  await world.runWhen(id, { status: 'WAITING' })
  await world.fastForward(id, person)
  t.is((await world.endOf(id)).trail[1], 'until FAST_FORWARD→next')
})

test('a window that is open is not waited for, also at a fraction of a millisecond', (t) => {
  const now = Date.parse('2027-01-04T10:00:00Z') + 0.4
  const moment = { run: { id: newId(), now }, clock: { now, timezone: 'UTC' } }
  const hours = { mode: 'TIME_WINDOW', start: '09:00', end: '17:00', onTimeout: 'CONTINUE' } as const
  t.like(decideWindow(moment, hours), { kind: 'left', port: 'next' })
  t.like(decideWindow(moment, { ...hours, start: '11:00' }), { kind: 'waits' })
})

test('CONDITION ends when its filters begin to hold, whatever made them hold, or by its time-out', async (t) => {
  const already = await tenant.subscribe()
  await tenant.within((call) => addTags(call, [already], ['vip']))
  t.is(
    (await world.ended(around(until('CONDITION', { filters: VIP })), already)).trail[1],
    'until CONDITION→next',
  )

  const waiting = await tenant.subscribe()
  const other = await tenant.subscribe()
  const id = await world.publish(around(until('CONDITION', { filters: VIP })))
  await world.enter(id, waiting)
  await world.runWhen(id, { status: 'WAITING', waitKind: 'CONDITION' })
  await world.enter(id, other)
  await eventually('both to wait', async () =>
    (await runsOf(services, tenant, id)).every(({ status }) => status === 'WAITING'),
  )
  await world.happened(waiting, 'NEWS')
  await tenant.within((call) => addTags(call, [waiting], ['vip']))
  const done = await eventually('the first to go on', async () => {
    const [first] = await runsOf(services, tenant, id)
    return first?.status === 'COMPLETED' ? first : null
  })
  t.is((await trailOf(services, done.id))[1], 'until CONDITION→next')
  t.is((await runsOf(services, tenant, id))[1]?.status, 'WAITING')
  await world.fastForward(id, other)
  t.is((await world.endOf(id)).trail[1], 'until FAST_FORWARD→timeout')

  const timeout = { amount: 1, unit: 'SECONDS' as const }
  const late = await world.ended(
    around(until('CONDITION', { filters: VIP, timeout })),
    await tenant.subscribe(),
  )
  t.is(late.trail[1], 'until TIMEOUT→timeout')
})

test('CONDITION is ended by a repeated open, which is no event', async (t) => {
  const em = services.orm.em.fork()
  const [subscriberId, messageId] = [await tenant.subscribe(), newId()]
  await execute(
    em,
    sql`insert into message (id, organization_id, class, marketing, subscriber_id, recipient, from_email, status, sent_at)
      values (${messageId}, ${tenant.id}, 'CAMPAIGN', true, ${subscriberId}, 'ann@reader.example', 'news@shop.example',
        'SENT', now() - interval '1 hour')`,
  )
  const open = async () => {
    await execute(
      em,
      sql`insert into pending_visit (organization_id, id, message_id, machine, user_agent, created_at)
        values (${tenant.id}, new_id(), ${messageId}, false, 'Firefox', now())`,
    )
    await settleAll(services)
  }
  await open()
  await execute(
    em,
    sql`update subscriber_stat set last_opened_at = '2020-01-01' where subscriber_id = ${subscriberId}`,
  )
  const filters = [{ field: 'lastOpenedAt', operator: 'after' as const, value: '2021-01-01' }]
  const id = await world.publish(around(until('CONDITION', { filters })))
  await world.enter(id, subscriberId)
  await world.runWhen(id, { status: 'WAITING', waitKind: 'CONDITION' })
  // The reconciler looks at young waits again.
  await execute(
    em,
    sql`update run_wait set began_at = began_at - interval '1 hour' where subscriber_id = ${subscriberId}`,
  )
  await open()
  t.is((await world.eventsOf(subscriberId, 'EMAIL_OPENED')).length, 1)
  t.is((await world.endOf(id)).trail[1], 'until CONDITION→next')
})

test('a condition that names something deleted fails its step, and the next wait of the run is not ended for it', async (t) => {
  const filters = [{ field: 'customFields.doomed', operator: 'equals' as const, value: 'x' }]
  const condition = { ...until('CONDITION', { filters }), onError: 'CONTINUE' as const }
  const subscriberId = await tenant.subscribe()
  await setField(subscriberId, { doomed: 'y' })
  const id = await world.publish(chain([condition, LONG]))
  await world.enter(id, subscriberId)
  const run = await world.runWhen(id, { status: 'WAITING', waitKind: 'CONDITION' })
  const own = sql`organization_id = ${tenant.id}`
  await tenant.within(async (call) => {
    await execute(call.em, sql`delete from custom_field where ${own} and name = 'doomed'`)
    await nudgeRuns(call.em, tenant.id, [run.id])
  })
  await world.runWhen(id, { status: 'WAITING', stepId: 'pause' })
  const left = await row(
    services.orm.em.fork(),
    sql`select from run_wait where ${own} and run_id = ${run.id}`,
  )
  t.is(left, null)
  const wakeReason = await tenant.within(async (call) => {
    await endConditionWaits(call, [subscriberId])
    return await row(call.em, sql`select wake_reason as reason from automation_run where id = ${run.id}`)
  })
  t.deepEqual(wakeReason, { reason: null })
  t.deepEqual((await trailOf(services, run.id)).slice(1), ['until FAILED→next', 'pause WAITING'])
})

test('a wait of a paused workflow is not left by a look that somebody asks for, whatever holds', async (t) => {
  await tenant.within((call) => ensureTags(call, ['vip']))
  const id = await world.publish(around(until('CONDITION', { filters: VIP })))
  const subscriberId = await tenant.subscribe()
  await world.enter(id, subscriberId)
  const run = await world.runWhen(id, { waitKind: 'CONDITION' })
  const em = services.orm.em.fork()
  await execute(em, sql`update automation set status = 'PAUSED' where id = ${id}`)
  // Inserts the tag directly, so that the run is not informed.
  await execute(
    em,
    sql`insert into subscriber_tag (organization_id, subscriber_id, tag_id)
      select organization_id, ${subscriberId}, id from tag where organization_id = ${tenant.id} and lower(name) = 'vip'`,
  )
  const client = await services.temporal.client()
  const workflowId = runWorkflowId(encodeId('wf', id), encodeId('sub', subscriberId), 1)
  const look = { stepId: 'until', visit: 2 }
  const handle = client.workflow.getHandle(workflowId)
  const answer = await handle.executeUpdate<FastForwarded, [FastForward]>(FAST_FORWARD, { args: [look] })
  t.like(answer, { stepId: 'until', state: 'WAITING' })
  t.deepEqual(await trailOf(services, run.id), ['start ENTERED→next', 'until WAITING'])
})

test('an event ends a wait of a paused workflow when it comes before the time-out, and not after it', async (t) => {
  const timeout = { amount: 1, unit: 'HOURS' as const }
  const graph = around(until('EVENT', { eventType: 'BOUGHT', scope: 'STEP', timeout }))
  const [early, late] = [await world.publish(graph), await world.publish(graph)]
  const subscriberId = await tenant.subscribe()
  for (const id of [early, late]) {
    await world.enter(id, subscriberId)
    await world.runWhen(id, { status: 'WAITING', waitKind: 'EVENT' })
    await setStatus(id, 'PAUSED')
  }
  const [over] = await runsOf(services, tenant, late)
  await passWait(services, tenant, over?.id ?? '', 5)
  await world.runWhen(late, { held: true })
  await world.happened(subscriberId, 'BOUGHT')
  for (const id of [early, late]) await setStatus(id, 'ACTIVE')
  t.is((await world.endOf(early)).trail[1], 'until EVENT→next')
  t.is((await world.endOf(late)).trail[1], 'until TIMEOUT→timeout')
})

test('hours that have closed again in a pause are waited for anew, no longer than the time-out lets', async (t) => {
  const timeout = { amount: 5, unit: 'DAYS' as const }
  const id = await world.publish(around(until('TIME_WINDOW', { ...CLOSED, timeout })))
  const subscriberId = await tenant.subscribe()
  await world.enter(id, subscriberId)
  const run = await world.runWhen(id, { status: 'WAITING', waitKind: 'TIME' })
  const first = await waitOf(run.id)
  const pause = async () => {
    await setStatus(id, 'PAUSED')
    await passWait(services, tenant, run.id, 5)
    await world.runWhen(id, { held: true })
    await setStatus(id, 'ACTIVE')
  }
  await pause()
  await eventually(
    'the wait for the next opening',
    async () => String((await waitOf(run.id))?.wakeAt) === String(first?.wakeAt),
  )
  t.deepEqual(await trailOf(services, run.id), ['start ENTERED→next', 'until WAITING'])
  // Makes the time-out pass as well.
  await execute(
    services.orm.em.fork(),
    sql`update run_step set outcome = outcome || jsonb_build_object('atMostUntil', now() - interval '1 hour')
      where run_id = ${run.id} and step_id = 'until'`,
  )
  await pause()
  t.is((await world.endOf(id)).trail[1], 'until TIMEOUT→timeout')
})

test("CONDITION reads what the run began with and its own emails, and time's passing", async (t) => {
  const filters = [
    { field: 'entry.plan', operator: 'equals' as const, value: 'pro' },
    { field: 'campaign', operator: 'received' as const, value: { stepId: 'hello' } },
    { field: 'customFields.trial', operator: 'before' as const, value: '2050-01-01' },
  ]
  const [pro, free] = [await tenant.subscribe(), await tenant.subscribe()]
  await setField(pro, { trial: '2099-01-01' })
  await setField(free, { trial: '2099-01-01' })
  const id = await world.publish(chain([EMAIL, until('CONDITION', { filters }), TAGGED]))
  await world.enter(id, pro, { plan: 'pro' })
  await world.enter(id, free, { plan: 'free' })
  await eventually('both to wait', async () =>
    (await runsOf(services, tenant, id)).every(({ waitKind }) => waitKind === 'CONDITION'),
  )
  await setField(pro, { trial: '2040-01-01' })
  await setField(free, { trial: '2040-01-01' })
  await eventually('the one to go on', async () => {
    const [first, second] = await runsOf(services, tenant, id)
    return first?.status === 'COMPLETED' && second?.status === 'WAITING'
  })

  const timed = [
    { field: 'createdAt', operator: 'more_than_ago' as const, value: { amount: 1, unit: 'DAYS' as const } },
  ]
  const person = await tenant.subscribe()
  const byTime = await world.publish(around(until('CONDITION', { filters: timed })))
  await world.enter(byTime, person)
  await world.runWhen(byTime, { status: 'WAITING', waitKind: 'CONDITION' })
  await execute(
    services.orm.em.fork(),
    sql`update subscriber set created_at = now() - interval '2 days' where id = ${person}`,
  )
  const scope = { organizationId: tenant.id, actor: { kind: 'system' as const, id: 'test', name: 'test' } }
  t.is(await unitOfWork(services, scope, noteTimedConditions), 1)
  t.is((await world.endOf(byTime)).trail[1], 'until CONDITION→next')

  // Changes that bypass the locks of waits are found by the reconciler.
  const byStatus = until('CONDITION', { filters: [{ field: 'country', operator: 'equals', value: 'FR' }] })
  const missed = await tenant.subscribe()
  const late = await world.publish(around(byStatus))
  await world.enter(late, missed)
  await world.runWhen(late, { status: 'WAITING', waitKind: 'CONDITION' })
  await execute(services.orm.em.fork(), sql`update subscriber set country = 'FR' where id = ${missed}`)
  await reconcile(services)
  t.is((await world.endOf(late)).trail[1], 'until CONDITION→next')
})

test('an exit rule ends a run at once in any wait, by its conditions; others and strangers stay', async (t) => {
  const exitRules = [
    {
      id: 'bought',
      on: 'SUBSCRIBER_PAYMENT',
      where: [{ path: 'amount', operator: 'gte' as const, value: 10 }],
    },
    { id: 'moved', on: 'TAG_ADDED' },
  ]
  const waits: Step[] = [
    LONG,
    until('EVENT', { eventType: 'SUBSCRIBER_PAYMENT', scope: 'STEP' }),
    until('CONDITION', { filters: VIP }),
    until('DATE', { date: '2099-01-01' }),
  ]
  for (const wait of waits) {
    const subscriberId = await tenant.subscribe()
    const id = await world.publish(chain([wait, TAGGED], { exitRules }))
    await world.enter(id, subscriberId)
    await world.runWhen(id, { status: 'WAITING' })
    await world.happened(await tenant.subscribe(), 'SUBSCRIBER_PAYMENT', { amount: 50 })
    t.is((await runsOf(services, tenant, id))[0]?.status, 'WAITING')
    await world.happened(subscriberId, 'SUBSCRIBER_PAYMENT', { amount: 50 })
    const run = await world.endOf(id)
    t.deepEqual(
      [run.status, run.exitReason, run.trail.at(-1)],
      ['CANCELED', 'EXIT_RULE', `${wait.id} CANCELED`],
    )
    const [told] = await world.eventsOf(subscriberId, 'WORKFLOW_CANCELED')
    t.like(told?.data, { exitReason: 'EXIT_RULE', reason: 'bought' })
    t.deepEqual(await rows(services.orm.em.fork(), sql`select 1 from run_wait where run_id = ${run.id}`), [])
  }
  // A step of the run itself can trigger the exit rule; no later step is executed then.
  const itself = await world.ended(chain([TAGGED, LONG], { exitRules }), await tenant.subscribe())
  t.deepEqual([itself.status, itself.exitReason], ['CANCELED', 'EXIT_RULE'])
  t.deepEqual(itself.trail, ['start ENTERED→next', 'tag DONE→next'])
  // Small payments do not match the rule, and the event that started a run does not end it.
  const rules = { exitRules: [{ id: 'again', on: 'ORDERED' }], reEntry: { mode: 'EVERY_TIME' as const } }
  const byEvent = await world.publish({
    steps: [step('start', 'TRIGGER', { type: 'EVENT', eventType: 'ORDERED' }), LONG],
    edges: edges(['start', 'pause']),
    settings: rules,
  })
  const buyer = await tenant.subscribe()
  await world.happened(buyer, 'ORDERED')
  await world.runWhen(byEvent, { status: 'WAITING' })
  await world.happened(buyer, 'ORDERED')
  await eventually('the first run to end, the second to wait', async () => {
    const [first, second] = await runsOf(services, tenant, byEvent)
    return first?.exitReason === 'EXIT_RULE' && second?.status === 'WAITING'
  })
})

test('an exit rule is looked at before the first step and before each email, also for what was not heard', async (t) => {
  const exitRules = [{ id: 'bought', on: 'SUBSCRIBER_PAYMENT' }]
  const subscriberId = await tenant.subscribe('exit@reader.example')
  const early = await world.publish(chain([EMAIL], { exitRules }))
  await tenant.within(async ({ em }) => {
    // The run takes no step until this transaction ends.
    await row(em, sql`select 1 from subscriber where id = ${subscriberId} for share`)
    await world.enter(early, subscriberId)
    await world.happened(subscriberId, 'SUBSCRIBER_PAYMENT')
  })
  const first = await world.endOf(early)
  t.is(first.exitReason, 'EXIT_RULE')

  const id = await world.publish(chain([LONG, EMAIL], { exitRules }))
  await world.enter(id, subscriberId)
  const run = await world.runWhen(id, { status: 'WAITING' })
  // Simulates an event that was recorded concurrently with the wait.
  await execute(services.orm.em.fork(), sql`delete from run_wait where run_id = ${run.id}`)
  await world.happened(subscriberId, 'SUBSCRIBER_PAYMENT')
  t.is((await runsOf(services, tenant, id))[0]?.status, 'WAITING')
  await world.fastForward(id, subscriberId)
  const ended = await world.endOf(id)
  t.deepEqual([ended.status, ended.exitReason], ['CANCELED', 'EXIT_RULE'])
  t.is(ended.trail.at(-1), 'hello CANCELED')
  t.is(world.sink.accepted().filter(({ recipient }) => recipient === 'exit@reader.example').length, 0)
})

test('an email waits for its window, sends when told to, and the window of the step goes before the settings', async (t) => {
  const subscriberId = await tenant.subscribe('window@reader.example')
  const id = await world.publish(chain([EMAIL], { sendWindow: CLOSED }))
  await world.enter(id, subscriberId)
  const run = await world.runWhen(id, { status: 'WAITING', waitKind: 'TIME', stepId: 'hello' })
  t.deepEqual(await trailOf(services, run.id), ['start ENTERED→next', 'hello WAITING'])
  await world.fastForward(id, subscriberId)
  t.deepEqual((await world.endOf(id)).trail.at(-1), 'hello SENT→next')
  for (const free of [
    emailStep('hello', { sendWindow: OPEN }),
    emailStep('hello', { transactional: true }),
  ]) {
    const sent = await world.ended(chain([free], { sendWindow: CLOSED }), subscriberId)
    t.is(sent.trail.at(-1), 'hello SENT→next')
  }
  // The window is checked again when the wait ends, because a pause may have intervened.
  const again = await world.publish(chain([EMAIL], { sendWindow: CLOSED }))
  await world.enter(again, subscriberId)
  const waiting = await world.runWhen(again, { status: 'WAITING', waitKind: 'TIME' })
  await execute(
    services.orm.em.fork(),
    sql`update automation_run set wake_at = now() where id = ${waiting.id}`,
  )
  const client = await services.temporal.client()
  const workflowId = `run/${encodeId('wf', again)}/${encodeId('sub', subscriberId)}/1`
  await client.workflow.getHandle(workflowId).signal('nudge')
  await eventually('the wait for the next opening', async () => {
    const [row] = await rows<{ late: boolean }>(
      services.orm.em.fork(),
      sql`select wake_at > now() + interval '1 hour' as late from automation_run where id = ${waiting.id}`,
    )
    return row?.late
  })
  await world.fastForward(again, subscriberId)
  await world.endOf(again)
})

test('lateSend decides over email that a pause has made late; other steps and email in time are not concerned', async (t) => {
  const late = async (action: 'SEND' | 'SKIP' | 'EXIT', hours: number) => {
    const lateSend = { maxLateness: { amount: hours, unit: 'HOURS' as const }, action }
    const id = await world.publish(chain([LONG, EMAIL, TAGGED], { lateSend }))
    await world.enter(id, await tenant.subscribe())
    const { id: runId } = await world.runWhen(id, { status: 'WAITING' })
    await setStatus(id, 'PAUSED')
    await passWait(services, tenant, runId, 5)
    await world.runWhen(id, { held: true })
    await setStatus(id, 'ACTIVE')
    const run = await world.endOf(id)
    const [pause, ...decisions] = await decisionsOf(services, id)
    t.is(pause, 'STEP_DEFERRED PAUSED')
    return [run.exitReason, ...run.trail.slice(2), ...decisions]
  }
  t.deepEqual(await late('SKIP', 1), ['END', 'hello SKIPPED→next', 'tag DONE→next', 'STEP_SKIPPED LATE'])
  t.deepEqual(await late('EXIT', 1), ['EXPIRED', 'hello EXIT', 'RUN_ENDED LATE'])
  t.deepEqual(await late('SEND', 1), ['END', 'hello SENT→next', 'tag DONE→next'])
  t.deepEqual(await late('SKIP', 6), ['END', 'hello SENT→next', 'tag DONE→next'])
})

test('lateSend counts from when a wait was over, also where its time-out ended it', async (t) => {
  const timeout = { amount: 1, unit: 'DAYS' as const }
  const lateSend = { maxLateness: { amount: 1, unit: 'HOURS' as const }, action: 'SKIP' as const }
  const waits = [
    LONG,
    until('EVENT', { eventType: 'BOUGHT', scope: 'STEP', timeout }),
    until('CONDITION', { filters: VIP, timeout }),
    until('DATE', { date: '2099-01-01', timeout }),
  ]
  for (const wait of waits) {
    const id = await world.publish(chain([wait, EMAIL], { lateSend }))
    await world.enter(id, await tenant.subscribe())
    const run = await world.runWhen(id, { status: 'WAITING' })
    await passWait(services, tenant, run.id, 5)
    t.is((await world.endOf(id)).trail.at(-1), 'hello SKIPPED→next', run.waitKind ?? '')
  }
})

test('lateSend counts from when a wait was over, also where a pause held the run at the email before it', async (t) => {
  const lateSend = { maxLateness: { amount: 4, unit: 'HOURS' as const }, action: 'SKIP' as const }
  const rest = step('rest', 'WAIT', { amount: 3, unit: 'HOURS' })
  const id = await world.publish(chain([EMAIL, rest, { ...EMAIL, id: 'again' }], { lateSend }))
  await world.enter(id, await tenant.subscribe())
  const run = await world.runWhen(id, { status: 'WAITING', stepId: 'rest' })
  // As if the workflow had been paused five hours ago, right after the first email was sent.
  await tenant.within(async ({ em }) => {
    await execute(em, sql`update message set sent_at = now() - interval '5 hours' where run_id = ${run.id}`)
    await execute(em, sql`delete from run_step where run_id = ${run.id} and visit = ${run.visit}`)
    await execute(em, sql`update run_step set ended_at = null where run_id = ${run.id} and step_id = 'hello'`)
    await execute(
      em,
      sql`update automation_run set status = 'ACTIVE', current_step_id = 'hello', visit = ${run.visit - 1},
        wait_kind = 'MESSAGE', held = true, due_at = now() - interval '5 hours' where id = ${run.id}`,
    )
  })
  await tenant.within((call) => resumeHeldRuns(call, id))
  t.deepEqual((await world.endOf(id)).trail.slice(1), [
    'hello SENT→next',
    'rest ELAPSED→next',
    'again SENT→next',
  ])
})

test("another organization's events and conditions move nobody here", async (t) => {
  const other = await makeTenant(services)
  const stranger = await other.subscribe()
  const subscriberId = await tenant.subscribe()
  const exitRules = [{ id: 'bought', on: 'SUBSCRIBER_PAYMENT' }]
  const id = await world.publish(chain([until('CONDITION', { filters: VIP })], { exitRules }))
  await world.enter(id, subscriberId)
  await world.runWhen(id, { status: 'WAITING' })
  await other.within((call) => recordEvents(call, [{ subscriberId: stranger, type: 'SUBSCRIBER_PAYMENT' }]))
  await other.within((call) => addTags(call, [stranger], ['vip']))
  await other.within((call) => recordEvents(call, [{ subscriberId, type: 'SUBSCRIBER_PAYMENT' }]))
  t.is((await runsOf(services, tenant, id))[0]?.status, 'WAITING')
})
