import test from 'ava'
import { sql } from 'kysely'

import type { TriggerConfig } from '../schema/automation-triggers.ts'
import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { execute, row } from '../src/database.ts'
import { enterByHand } from '../src/domain/automations/entry/enter-by-hand.ts'
import { continueIntake } from '../src/domain/automations/entry/intake.ts'
import { advanceRun } from '../src/domain/automations/runs/advance.ts'
import { fire } from '../src/domain/automations/triggers/firing.ts'
import { recordEvents } from '../src/domain/events.ts'
import { decodeId, encodeId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { edges, makeTenant, publish, runsOf, step } from './helpers/automation.ts'
import { UNFOLLOWED } from './helpers/control.ts'
import { watchStatements } from './helpers/statements.ts'

let api: TestApi
let sent = 0

test.before(async () => {
  watchStatements((text) => {
    // This notification is sent after the answer, so it belongs to no call.
    if (!text.includes('pg_notify')) sent += 1
  })
  // Without an engine, nothing else sends statements.
  api = await startApi({ TEMPORAL_TASK_QUEUE: `cost-${process.pid}` })
})
test.after.always(async () => {
  await api?.close()
})

/** Returns the number of statements that `work` sends. */
async function statements(work: () => Promise<unknown>): Promise<number> {
  const before = sent
  await work()
  return sent - before
}

async function live(organization: TestOrganization, config: TriggerConfig): Promise<string> {
  const { workflow } = await organization.data('create_workflow', { name: config.type })
  await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    settings: { timezone: 'UTC', reEntry: { mode: 'EVERY_TIME' } },
    steps: [step('start', 'TRIGGER', config), step('seen', 'ADD_TAG', { tagNames: ['seen'] })],
    edges: [{ from: 'start', to: 'seen' }],
  })
  await organization.confirmed('publish_workflow', { workflowId: workflow.id })
  return workflow.id
}

async function person(organization: TestOrganization, name: string): Promise<string> {
  const { subscriber } = await organization.data('add_subscriber', { email: `${name}@example.com`, name })
  return subscriber.id
}

test.serial('what an event costs does not grow with the workflows that it concerns', async (t) => {
  const counts: number[] = []
  for (const size of [4, 50]) {
    const organization = await api.organization()
    for (let number = 0; number < size; number++) {
      await live(organization, {
        type: 'EVENT',
        eventType: 'SUBSCRIBER_PAYMENT',
        where: [{ path: 'amount', operator: 'gte', value: number < size / 2 ? 10 : 1000 }],
        filters: [{ field: 'name', operator: 'equals', value: number % 2 ? 'Ann' : 'Bob' }],
      })
    }
    const subscriberId = await person(organization, 'Ann')
    const payment = { subscriberId, eventType: 'SUBSCRIBER_PAYMENT', amount: 50, currency: 'EUR' }
    const pay = () => organization.data('create_event', payment)
    await pay()
    counts.push(await statements(pay))
    const { runs } = await organization.data('get_subscriber_workflow_runs', { subscriberId, limit: 100 })
    t.is(runs.length, 2 * Math.floor(size / 4))
  }
  t.log(`statements for 4 and for 50 workflows: ${counts.join(', ')}`)
  t.is(counts[0], counts[1])
})

test.serial(
  'what an event costs does not grow with the goals and exit rules that it meets, nor with their conditions',
  async (t) => {
    const counts: number[] = []
    for (const size of [4, 40]) {
      const tenant = await makeTenant(api.services)
      const subscriberId = await tenant.subscribe()
      const reached: string[] = []
      for (let number = 0; number < size; number++) {
        const { id } = await publish(api.services, tenant, {
          steps: [
            step('start', 'TRIGGER', { type: 'MANUAL' }),
            step('rest', 'WAIT', { amount: 1, unit: 'DAYS' }),
          ],
          edges: edges(['start', 'rest']),
          ...(number % 2 === 0
            ? {
                successGoals: [
                  {
                    id: `bought-${number}`,
                    name: 'Bought',
                    event: 'SUBSCRIBER_PAYMENT',
                    where: paid(number),
                    windowDays: 30,
                    countFrom: 'ENTRY',
                    exitOnReach: true,
                  },
                ],
              }
            : {
                settings: {
                  exitRules: [{ id: `paid-${number}`, on: 'SUBSCRIBER_PAYMENT', where: paid(number) }],
                },
              }),
        })
        reached.push(id)
        const run = await tenant.within((call) =>
          enterByHand(call, { workflowId: encodeId('wf', id), subscriberId: encodeId('sub', subscriberId) }),
        )
        await tenant.within((call) =>
          advanceRun(call, decodeId('run', run.id), { execution: 'none', attempt: 'none' }),
        )
      }
      counts.push(
        await statements(() =>
          tenant.within((call) =>
            recordEvents(call, [{ subscriberId, type: 'SUBSCRIBER_PAYMENT', data: { amount: 100 } }]),
          ),
        ),
      )
      for (const [number, id] of reached.entries()) {
        const exitReason = number % 2 === 0 ? 'GOAL' : 'EXIT_RULE'
        t.like(await runsOf(api.services, tenant, id), [{ exitReason }])
      }
    }
    t.log(`statements for 4 and for 40 goals and rules: ${counts.join(', ')}`)
    t.is(counts[0], counts[1])
  },
)

/** Returns a different condition for each amount. */
function paid(atLeast: number) {
  return [{ path: 'amount', operator: 'gte' as const, value: atLeast }]
}

test.serial('2,000 tag changes in one call cost as few statements as two', async (t) => {
  const organization = await api.organization()
  const tagNames = Array.from({ length: 20 }, (_, number) => `tag ${number}`)
  const workflowId = await live(organization, { type: 'TAG_ADDED', tagNames })
  const subscriberIds: string[] = []
  for (let number = 0; number < 102; number++) subscriberIds.push(await person(organization, `p${number}`))
  const add = (ids: string[], names: string[]) =>
    statements(() => organization.data('bulk_add_tags', { subscriberIds: ids, tagNames: names }))
  await add(subscriberIds.slice(101), tagNames)
  const few = await add(subscriberIds.slice(100, 101), tagNames.slice(0, 2))
  const many = await add(subscriberIds.slice(0, 100), tagNames)
  t.log(`statements for 2 and for 2,000 changes: ${few}, ${many}`)
  t.is(many, few)
  t.is((await runsOf(api.services, organization, decodeId('wf', workflowId))).length, 2022)
})

/** Creates `size` subscribers. Every second one has a date an hour ago, an event ten minutes ago and none since. */
async function crowd(organization: TestOrganization, size: number): Promise<void> {
  await person(organization, 'first')
  await organization.data('update_subscriber', {
    subscriber: 'first@example.com',
    fields: { day: '2000-01-01' },
  })
  const day = new Date(Date.now() - 3_600_000).toISOString()
  await execute(
    api.services.orm.em.fork(),
    sql`with made as (
        insert into subscriber (id, organization_id, email, name, status, fields)
        select new_id(), ${organization.id}, 'p' || number || '@reader.example', 'p' || number, 'SUBSCRIBED',
          case when number % 2 = 0 then jsonb_build_object('day', ${day}::text) else '{}' end
        from generate_series(1, ${size}::int) as number returning id, name)
      insert into subscriber_event (id, organization_id, subscriber_id, type, created_at)
      select new_id(), ${organization.id}, id, 'SUBSCRIBER_PAYMENT', now() - interval '10 minutes' from made
      where substr(name, 2)::int % 2 = 0`,
  )
}

const MINUTE = 60_000
const lastHour = `${new Date(Date.now() - 30 * MINUTE).getUTCMinutes()} * * * *`
const TIMED: Record<string, { config: TriggerConfig; share: number }> = {
  'a date': {
    config: { type: 'DATE_FIELD', field: 'day', direction: 'AFTER', anniversary: false },
    share: 1 / 2,
  },
  'a silence': {
    config: {
      type: 'INACTIVITY',
      eventType: 'SUBSCRIBER_PAYMENT',
      inactiveFor: { amount: 5, unit: 'MINUTES' },
    },
    share: 1 / 2,
  },
  'a schedule': { config: { type: 'SCHEDULE', cron: lastHour }, share: 1 },
}

for (const [what, { config, share }] of Object.entries(TIMED)) {
  test.serial(`the statements of ${what} do not grow with the people who are due`, async (t) => {
    const counts: number[] = []
    for (const size of [4, 400]) {
      const organization = await api.organization()
      await crowd(organization, size)
      const filters = [{ field: 'name', operator: 'not_equals' as const, value: 'first' }]
      const workflowId = await live(organization, { ...config, filters })
      const automationId = decodeId('wf', workflowId)
      await execute(
        api.services.orm.em.fork(),
        sql`update automation_schedule set looked_until = now() - interval '2 hours'
          where automation_id = ${automationId}`,
      )
      const scope = {
        organizationId: organization.id,
        actor: { kind: 'system', id: 'test', name: 'test' } as const,
      }
      const work = async () => {
        await unitOfWork(api.services, scope, (call) => fire(call, automationId, 'start'))
        const intake = await row<{ id: string }>(
          api.services.orm.em.fork(),
          sql`select id from automation_intake where automation_id = ${automationId}`,
        )
        await continueIntake(api.services, organization.id, intake?.id ?? '', UNFOLLOWED)
      }
      counts.push(await statements(work))
      t.is((await runsOf(api.services, organization, automationId)).length, size * share)
    }
    t.log(`statements for 4 and for 400 people: ${counts.join(', ')}`)
    t.is(counts[0], counts[1])
  })
}
