import { Client, Connection } from '@temporalio/client'
import test, { type ExecutionContext } from 'ava'
import { sql } from 'kysely'
import { pino } from 'pino'

import type { Call } from '../src/catalogue/tool.ts'
import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { array, execute, rows } from '../src/database.ts'
import { fire } from '../src/domain/automations/triggers/firing.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { describeFault } from '../src/log.ts'
import { triggerScheduleId } from '../temporal/contract.ts'
import { fireLate, repairSchedules } from '../worker/trigger-repair.ts'
import { decisionsOf } from './helpers/automation.ts'
import { whileRefused } from './helpers/database.ts'
import { eventually } from './helpers/eventually.ts'
import { ago, draft, HOUR, openStudio, person, type Studio } from './helpers/timed.ts'

let studio: Studio

test.before(async () => {
  studio = await openStudio('timed')
})
test.after.always(() => studio?.close())

test('DATE_FIELD lets in whoever has the date, by its filters, and once for each date', async (t) => {
  const organization = await studio.api.organization()
  const { day, time } = ago(HOUR)
  // Leap years, so that the days also exist when today is 29 February.
  const today = (year: 1984 | 1988 | 1992) => `${year}${day.slice(4)}`
  await person(organization, 'ann', { birthday: today(1992) })
  await person(organization, 'bob', { birthday: today(1984) })
  await person(organization, 'cid', { birthday: ago(100 * 24 * HOUR).day, other: today(1992) })
  await person(organization, 'dan')
  const gone = await person(organization, 'eve', { birthday: today(1988) })
  await organization.confirmed('unsubscribe', { subscriberId: gone })
  const workflowId = await studio.live(organization, {
    type: 'DATE_FIELD',
    field: 'birthday',
    direction: 'AFTER',
    anniversary: true,
    at: time,
    filters: [{ field: 'name', operator: 'not_equals', value: 'bob' }],
  })
  const stranger = await studio.api.organization()
  await person(stranger, 'fay', { birthday: today(1992) })
  await studio.fire(workflowId)
  t.is(await studio.entered(workflowId), '', 'its time was over when it was published')
  await studio.rewind(workflowId, 2 * HOUR)
  await studio.fire(workflowId)
  t.is(await studio.entered(workflowId), 'ann')
  t.deepEqual(await decisionsOf(studio.api.services, decodeId('wf', workflowId)), ['ENTRY_REFUSED FILTERS'])
  for (let round = 0; round < 2; round++) {
    await studio.rewind(workflowId, 2 * HOUR)
    await studio.fire(workflowId)
  }
  t.is(await studio.entered(workflowId), 'ann')
  const [run] = await rows<{ trigger: object; context: object }>(
    studio.api.services.orm.em.fork(),
    sql`select trigger, context from automation_run where automation_id = ${decodeId('wf', workflowId)}`,
  )
  const dueAt = `${day}T${time}:00.000Z`
  t.like(run?.trigger, { type: 'DATE_FIELD', dueAt })
  t.deepEqual(run?.context, { field: 'birthday', date: day, dueAt })
})

test('who was due longer than a day ago is told so, and does not enter', async (t) => {
  const organization = await studio.api.organization()
  const [late, later] = [ago(3 * HOUR), ago(30 * HOUR)]
  await person(organization, 'ann', { trial: `${late.day}T${late.time}:00Z` })
  await person(organization, 'bob', { trial: `${later.day}T${later.time}:00Z` })
  const workflowId = await studio.live(organization, {
    type: 'DATE_FIELD',
    field: 'trial',
    direction: 'AFTER',
    anniversary: false,
  })
  await studio.rewind(workflowId, 100 * HOUR)
  await studio.fire(workflowId)
  t.is(await studio.entered(workflowId), 'ann')
  t.deepEqual(await decisionsOf(studio.api.services, decodeId('wf', workflowId)), ['ENTRY_REFUSED MISSED'])
})

test('a schedule follows its workflow: made, paused, resumed, changed and deleted with it', async (t) => {
  const organization = await studio.api.organization()
  await person(organization, 'ann', { birthday: '1990-01-01' })
  await organization.data('update_organization_settings', { timezone: 'Europe/Paris' })
  const config = {
    type: 'DATE_FIELD',
    field: 'birthday',
    direction: 'AFTER',
    anniversary: true,
    at: '09:30',
  } as const
  const workflowId = await studio.live(organization, config, {})
  const handle = await studio.handleOf(workflowId)
  const is = (what: string, expected: object) =>
    eventually(what, async () => {
      const { state, spec } = await handle.describe()
      const [{ hour, minute } = {}] = spec.calendars ?? []
      const seen = {
        paused: state.paused,
        hour: hour?.[0]?.start,
        minute: minute?.[0]?.start,
        zone: spec.timezone,
      }
      return Object.entries(expected).every(([key, value]) => Reflect.get(seen, key) === value)
    })
  await is('a running schedule', { paused: false, hour: 9, minute: 30, zone: 'Europe/Paris' })
  const { action } = await handle.describe()
  t.true(
    JSON.stringify(action.typedSearchAttributes).includes(workflowId),
    'what it starts can be searched for',
  )
  const status = (next: string) =>
    organization.confirmed('update_workflow_status', { workflowId, status: next })
  await status('PAUSED')
  await is('a paused one', { paused: true })
  t.is((await studio.rowOf(workflowId))?.nextAt, null)
  await studio.rewind(workflowId, HOUR)
  const before = Date.now()
  await status('ACTIVE')
  await is('a running one again', { paused: false })
  t.true(
    Date.parse((await studio.rowOf(workflowId))?.lookedUntil ?? '') > before - 1_000,
    'the pause is not made up for',
  )
  await organization.data('update_organization_settings', { timezone: 'Asia/Tokyo' })
  await is('another zone', { paused: false, zone: 'Asia/Tokyo' })
  await handle.pause('an operator knows why')
  await organization.data('update_organization_settings', { timezone: 'UTC' })
  await is('what an operator paused', { paused: true, zone: 'UTC' })
  await handle.unpause()
  await status('ARCHIVED')
  await eventually('no schedule', () =>
    handle.describe().then(
      () => false,
      () => true,
    ),
  )
  t.is(await studio.rowOf(workflowId), null)
  await status('PAUSED')
  await is('a paused one out of the archive', { paused: true })
})

test('a trigger by a date needs a date field, and every fault is told at once', async (t) => {
  const organization = await studio.api.organization()
  await person(organization, 'ann', { birthday: '1990-01-01', plan: 'pro' })
  const faults = async (config: object) => {
    const answer = await draft(organization, config)
    t.is(answer.status, 400)
    const details: { path: string; message: string }[] = answer.body.details
    return details.map(({ path, message }) => `${path}: ${message}`).join('\n')
  }
  const date = { type: 'DATE_FIELD', field: 'birthday' }
  t.regex(
    await faults({ ...date, field: 'birthdya' }),
    /config\.field: there is no custom field .*"birthday"/,
  )
  t.regex(await faults({ ...date, field: 'plan' }), /config\.field: needs a date field/)
  const many = await faults({
    ...date,
    at: '9:00',
    direction: 'ASIDE',
    offset: { amount: 10_000, unit: 'DAYS' },
    zone: 'UTC',
  })
  for (const path of ['at', 'direction', 'offset.amount', 'zone'])
    t.true(many.includes(`config.${path}:`), many)
})

test('INACTIVITY takes whoever has become silent, once for each silence', async (t) => {
  const organization = await studio.api.organization()
  const [ann, bob] = [await person(organization, 'ann'), await person(organization, 'bob')]
  await person(organization, 'cid')
  const pay = (subscriberId: string) =>
    organization.data('create_event', { subscriberId, eventType: 'SUBSCRIBER_PAYMENT', amount: 5 })
  await pay(ann)
  await pay(bob)
  const inactiveFor = { amount: 2, unit: 'SECONDS' } as const
  const config = { type: 'INACTIVITY', eventType: 'SUBSCRIBER_PAYMENT', inactiveFor } as const
  const workflowId = await studio.live(organization, {
    ...config,
    filters: [{ field: 'name', operator: 'in', value: ['ann', 'bob'] }],
  })
  // All people exist already; the workflow appears to have been published a minute earlier.
  await studio.rewind(workflowId, 60_000)
  await eventually(
    'both to be silent for long enough',
    async () => {
      await studio.rewind(workflowId, 60_000)
      await studio.fire(workflowId)
      return (await studio.entered(workflowId)) === 'ann bob'
    },
    { withinMs: 90_000 },
  )
  t.true(
    (await decisionsOf(studio.api.services, decodeId('wf', workflowId))).includes('ENTRY_REFUSED FILTERS'),
  )
  await studio.rewind(workflowId, 60_000)
  await studio.fire(workflowId)
  t.is(await studio.entered(workflowId), 'ann bob')
  // A new period of inactivity for ann, but not for bob.
  await pay(ann)
  await eventually(
    'the silence of ann alone',
    async () => {
      await studio.rewind(workflowId, 60_000)
      await studio.fire(workflowId)
      return (await studio.entered(workflowId)) === 'ann ann bob'
    },
    { withinMs: 90_000 },
  )
  // The same period of inactivity must not count again when its length changes.
  const { workflow } = await organization.data('get_workflow', { workflowId })
  const [start, seen] = workflow.draft.steps
  await organization.data('configure_workflow_draft', {
    workflowId,
    expectedUpdatedAt: workflow.updatedAt,
    steps: [{ ...start, config: { ...start.config, inactiveFor: { amount: 1, unit: 'SECONDS' } } }, seen],
    edges: workflow.draft.edges,
  })
  await organization.confirmed('publish_workflow', { workflowId })
  await studio.rewind(workflowId, 60_000)
  await studio.fire(workflowId)
  t.is(await studio.entered(workflowId), 'ann ann bob')
})

test('SCHEDULE takes everybody whom its filters hold for, once each time, and who is there in time', async (t) => {
  const organization = await studio.api.organization()
  for (const name of ['ann', 'bob', 'vip']) await person(organization, name)
  const gone = await person(organization, 'gone')
  await organization.confirmed('unsubscribe', { subscriberId: gone })
  const { time } = ago(60_000)
  const workflowId = await studio.live(organization, {
    type: 'SCHEDULE',
    cron: `${Number(time.slice(3))} ${Number(time.slice(0, 2))} * * *`,
    filters: [{ field: 'name', operator: 'not_equals', value: 'vip' }],
  })
  await studio.fire(workflowId)
  t.is(await studio.entered(workflowId), '')
  for (let round = 0; round < 3; round++) {
    await studio.rewind(workflowId, 40 * HOUR)
    await studio.fire(workflowId)
  }
  t.is(await studio.entered(workflowId), 'ann bob', 'the last time alone, and that once')
  t.deepEqual(await decisionsOf(studio.api.services, decodeId('wf', workflowId)), [])
  const intakes = await rows<{ looked: number; entered: number }>(
    studio.api.services.orm.em.fork(),
    sql`select looked, entered from automation_intake where automation_id = ${decodeId('wf', workflowId)}`,
  )
  t.deepEqual(intakes, [{ looked: 2, entered: 2 }])
})

test('a range of days may end with Sunday, and a zone may be written in any letter case', async (t) => {
  const organization = await studio.api.organization()
  const config = { type: 'SCHEDULE', cron: '30 9 * * FRI-SUN' } as const
  const workflowId = await studio.live(organization, config, { timezone: 'europe/paris' })
  const handle = await studio.handleOf(workflowId)
  const { spec } = await eventually('the schedule', () => handle.describe())
  t.is(spec.timezone, 'Europe/Paris')
  const days = spec.calendars?.[0]?.dayOfWeek?.flatMap(({ start, end }) => [start, end])
  t.deepEqual([...new Set(days)].toSorted(), ['FRIDAY', 'SATURDAY', 'SUNDAY'])
})

test('a schedule comes by itself, every minute when it says so', async (t) => {
  const organization = await studio.api.organization()
  await person(organization, 'ann')
  const workflowId = await studio.live(organization, { type: 'SCHEDULE', cron: '* * * * *' })
  await eventually('the next minute', async () => (await studio.entered(workflowId)) !== '', {
    withinMs: 90_000,
  })
  t.regex(await studio.entered(workflowId), /^ann( ann)?$/)
})

test('an expression that is none is refused where it stands, with what to write', async (t) => {
  const organization = await studio.api.organization()
  const refused = async (config: object) => {
    const { body } = await draft(organization, config)
    const details: { path: string; message: string }[] = body.details
    return details.map(({ path, message }) => `${path} ${message}`)
  }
  const [cron = ''] = await refused({ type: 'SCHEDULE', cron: 'every monday' })
  t.regex(cron, /^steps\[0\]\.config\.cron has 2 fields; write five/)
  const inactiveFor = { amount: 1, unit: 'YEARS' }
  const silence = await refused({ type: 'INACTIVITY', eventType: 'x', inactiveFor })
  t.deepEqual(
    silence.map((fault) => fault.split(' ')[0]),
    ['steps[0].config.eventType', 'steps[0].config.inactiveFor.unit'],
  )
})

test('looks that race, and one that dies before its commit, begin one intake', async (t) => {
  const organization = await studio.api.organization()
  const { day, time } = ago(HOUR)
  await person(organization, 'ann', { trial: `${day}T${time}:00Z` })
  const date = { type: 'DATE_FIELD', field: 'trial', direction: 'AFTER', anniversary: false } as const
  const workflowId = await studio.live(organization, date)
  await studio.rewind(workflowId, 2 * HOUR)
  const scope = {
    organizationId: organization.id,
    actor: { kind: 'system', id: 'test', name: 'test' } as const,
  }
  const look = (call: Call) => fire(call, decodeId('wf', workflowId), 'start')
  const dies = unitOfWork(studio.api.services, scope, async (call) => {
    t.is((await look(call)).state, 'FIRED')
    throw new Error('killed')
  })
  await t.throwsAsync(dies, { message: 'killed' })
  const looks = await Promise.all([1, 2, 3, 4].map(() => unitOfWork(studio.api.services, scope, look)))
  t.deepEqual(looks.map(({ state }) => state).toSorted(), ['FIRED', 'NOTHING', 'NOTHING', 'NOTHING'])
  await studio.settled(workflowId)
  t.is(await studio.entered(workflowId), 'ann')
})

test.serial('what passes a schedule by is looked at all the same, and schedules are put right', async (t) => {
  const organization = await studio.api.organization()
  await person(organization, 'ann')
  const { time } = ago(60_000)
  const cron = `${Number(time.slice(3))} ${Number(time.slice(0, 2))} * * *`
  const workflowId = await studio.live(organization, { type: 'SCHEDULE', cron })
  const handle = await studio.handleOf(workflowId)
  await eventually('the schedule', () => handle.describe())
  const makeLate = async () => {
    await studio.rewind(workflowId, HOUR)
    await execute(
      studio.api.services.orm.em.fork(),
      sql`update automation_schedule set next_at = now() - interval '4 minutes'
        where automation_id = ${decodeId('wf', workflowId)}`,
    )
  }
  await makeLate()
  await eventually('an outbox that is told', async () => {
    const left = await rows(
      studio.api.services.orm.em.fork(),
      sql`select from outbox where organization_id = ${organization.id} and kind = 'schedule'`,
    )
    return left.length === 0
  })
  await handle.pause('an operator knows why')
  t.is(await fireLate(studio.api.services, 120), 0)
  await handle.delete()
  t.is(await fireLate(studio.api.services, 120), 1)
  await eventually('ann', async () => (await studio.entered(workflowId)) === 'ann')
  await eventually('the schedule again', () => handle.describe())
  t.is(await fireLate(studio.api.services, 120), 0)

  const client = await studio.api.services.temporal.client()
  const { action, spec } = await handle.describe()
  const queue = studio.api.services.config.temporal.taskQueue
  const left = triggerScheduleId(queue, encodeId('wf', newId()), 'start')
  if (action.type !== 'startWorkflow') throw new Error('a schedule starts a workflow')
  await client.schedule.create({
    scheduleId: left,
    spec: { calendars: spec.calendars ?? [] },
    action: { type: 'startWorkflow', workflowType: action.workflowType, taskQueue: queue, args: [{}] },
  })
  await handle.delete()
  await eventually(
    'both to be put right',
    async () => {
      await repairSchedules(studio.api.services)
      const isThere = (id: string) =>
        client.schedule
          .getHandle(id)
          .describe()
          .then(
            () => true,
            () => false,
          )
      return !(await isThere(left)) && (await isThere(handle.scheduleId))
    },
    { withinMs: 90_000 },
  )
})

test.serial('a schedule that cannot be put right in one organization keeps no other waiting', async (t) => {
  const { services } = studio.api
  const em = services.orm.em.fork()
  const late = async () => {
    const organization = await studio.api.organization()
    const workflowId = await studio.live(organization, { type: 'SCHEDULE', cron: '0 0 1 1 *' })
    await eventually('the schedule', async () => (await studio.handleOf(workflowId)).describe())
    await execute(
      em,
      sql`update automation_schedule set next_at = now() - interval '1 day'
        where automation_id = ${decodeId('wf', workflowId)}`,
    )
    return { organization, workflowId }
  }
  const [sick, well] = [await late(), await late()]
  const refused = { write: 'insert', table: 'outbox', organizationId: sick.organization.id } as const
  await whileRefused(services, refused, async () => {
    t.is(await fireLate(services, 3600), 1)
    for (const { workflowId } of [sick, well]) await (await studio.handleOf(workflowId)).delete()
    await eventually(
      'the schedule of the other one',
      async () => {
        await repairSchedules(services)
        return await (await studio.handleOf(well.workflowId)).describe().catch(() => null)
      },
      { withinMs: 90_000 },
    )
  })
})

/**
 * Returns services whose client refuses all requests about one schedule: the first that is asked about. `asked` has the
 * ids of the schedules in requests, and `lines` the log.
 */
async function refusingFirst(t: ExecutionContext, method: 'deleteSchedule' | 'describeSchedule') {
  const { services } = studio.api
  const { temporal } = services.config
  const connection = await Connection.connect({ address: temporal.address })
  t.teardown(() => connection.close())
  const client = new Client({ connection, namespace: temporal.namespace })
  const asked: string[] = []
  const service = connection.workflowService
  type Request = { scheduleId?: string | null; namespace?: string | null }
  const ask: (request: Request) => Promise<unknown> = service[method].bind(service)
  Object.assign(service, {
    async [method](request: Request) {
      asked.push(request.scheduleId ?? '')
      return await ask(request.scheduleId === asked[0] ? { ...request, namespace: 'nowhere' } : request)
    },
  })
  const lines: string[] = []
  const log = pino({ serializers: { err: describeFault } }, { write: (line) => void lines.push(line) })
  const told = {
    ...services,
    log,
    temporal: { ...services.temporal, client: () => Promise.resolve(client) },
  }
  return { told, client, asked, lines }
}

test.serial('a trigger of whose schedule Temporal does not tell keeps no other waiting', async (t) => {
  const organization = await studio.api.organization()
  const late: string[] = []
  for (let count = 0; count < 3; count++) {
    const workflowId = await studio.live(organization, { type: 'SCHEDULE', cron: '0 0 1 1 *' })
    late.push(decodeId('wf', workflowId))
    await eventually('the schedule', async () => (await studio.handleOf(workflowId)).describe())
  }
  await execute(
    studio.api.services.orm.em.fork(),
    sql`update automation_schedule set next_at = now() - interval '4 minutes'
      where automation_id = any(${array(late, 'uuid')})`,
  )
  const { told, asked, lines } = await refusingFirst(t, 'describeSchedule')
  const count = await fireLate(told, 120)
  t.true(asked.length >= late.length)
  t.is(count, asked.length - 1)
  const said = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg.includes('does not say'))
  t.is(said.schedule, asked[0])
  t.regex(said.err.message, /Namespace not found: 'nowhere'/)
})

test.serial(
  'a left-over schedule that cannot be deleted is logged with the reason, and keeps no other',
  async (t) => {
    const { config } = studio.api.services
    const { told, client, asked, lines } = await refusingFirst(t, 'deleteSchedule')
    const ids = ['1', '2', '3'].map((stepId) =>
      triggerScheduleId(config.temporal.taskQueue, encodeId('wf', newId()), stepId),
    )
    for (const scheduleId of ids) {
      await client.schedule.create({
        scheduleId,
        spec: { intervals: [{ every: '1 day' }] },
        action: { type: 'startWorkflow', workflowType: 'None', taskQueue: config.temporal.taskQueue },
      })
    }
    const isThere = async (id: string) => {
      const found = client.schedule.getHandle(id).describe()
      return await found.then(
        () => true,
        () => false,
      )
    }
    await eventually(
      'the others to be deleted',
      async () => {
        await repairSchedules(told)
        const there = await Promise.all(ids.map(isThere))
        return there.filter(Boolean).length === 1
      },
      { withinMs: 90_000 },
    )
    const [sick = ''] = asked
    t.true(await isThere(sick))
    const said = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg.includes('could not be deleted'))
    t.is(said.schedule, sick)
    t.regex(said.err.message, /Namespace not found: 'nowhere'/)
  },
)

test('explain_delivery says why a trigger by time took somebody, did not, or when it will', async (t) => {
  const organization = await studio.api.organization()
  const hour = ago(HOUR)
  const at = (moment: { day: string; time: string }) => ({ trial: `${moment.day}T${moment.time}:00Z` })
  const ann = await person(organization, 'ann', at(hour))
  const bob = await person(organization, 'bob')
  const cid = await person(organization, 'cid', at(ago(9 * HOUR)))
  const dan = await person(organization, 'dan', at(ago(-9 * HOUR)))
  const eve = await person(organization, 'eve', at(ago(-9 * HOUR)))
  await organization.confirmed('unsubscribe', { subscriberId: eve })
  const codes = async (workflowId: string, subscriberId: string) => {
    const { reasons } = await organization.data('explain_delivery', { workflowId, subscriberId })
    return reasons.flatMap(({ outcome, code }: Record<string, string>) =>
      /^(NO_DATE|DATE_|SILENCE_|SCHEDULE_|NOT_SUBSCRIBED)/.test(code ?? '') ? [`${outcome} ${code}`] : [],
    )
  }
  const date = { type: 'DATE_FIELD', field: 'trial', direction: 'AFTER', anniversary: false } as const
  const dated = await studio.live(organization, date)
  await studio.rewind(dated, 2 * HOUR)
  await studio.fire(dated)
  // For people in the workflow, the explanation shows their current step, so wait until the run has ended.
  const isTold = async () => (await codes(dated, ann))[0] === 'NOTE DATE_TAKEN'
  await eventually('the end of her run', isTold, { withinMs: 90_000 })
  t.deepEqual(await codes(dated, bob), ['AGAINST NO_DATE'])
  t.deepEqual(await codes(dated, cid), ['AGAINST DATE_OVER'])
  t.deepEqual(await codes(dated, dan), ['WAITING DATE_DUE'])
  t.deepEqual(await codes(dated, eve), ['AGAINST NOT_SUBSCRIBED'])

  const inactiveFor = { amount: 1, unit: 'HOURS' } as const
  const silence = { type: 'INACTIVITY', eventType: 'SUBSCRIBER_PAYMENT', inactiveFor } as const
  const silent = await studio.live(organization, silence)
  t.deepEqual(await codes(silent, bob), ['WAITING SILENCE_DUE'])
  const { id } = organization
  await execute(
    studio.api.services.orm.em.fork(),
    sql`update subscriber set created_at = now() - interval '2 hours' where organization_id = ${id} and name = 'bob'`,
  )
  t.deepEqual(await codes(silent, bob), ['AGAINST SILENCE_BEFORE'])

  const { time } = ago(60_000)
  const cron = `${Number(time.slice(3))} ${Number(time.slice(0, 2))} * * *`
  const others = [{ field: 'name', operator: 'not_equals' as const, value: 'bob' }]
  const weekly = await studio.live(organization, { type: 'SCHEDULE', cron, filters: others })
  t.deepEqual(await codes(weekly, bob), ['WAITING SCHEDULE_NEXT'])
  await studio.rewind(weekly, HOUR)
  await studio.fire(weekly)
  t.deepEqual(await codes(weekly, bob), ['NOTE SCHEDULE_LAST', 'WAITING SCHEDULE_NEXT'])
})
