import test from 'ava'
import { sql } from 'kysely'

import { execute, row } from '../src/database.ts'
import { continueIntake } from '../src/domain/automations/entry/intake.ts'
import { claimOutbox } from '../src/domain/outbox.ts'
import { decodeId } from '../src/ids.ts'
import { performWork } from '../worker/run-work.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { step } from './helpers/automation.ts'
import { UNFOLLOWED } from './helpers/control.ts'
import { publishWorkflow } from './helpers/workflow.ts'

let api: TestApi

test.before(async () => {
  api = await startApi({ TEMPORAL_TASK_QUEUE: `archive-${process.pid}` })
})
test.after.always(() => api?.close())

const em = () => api.services.orm.em.fork()

/** Publishes a workflow in which `size` people wait. No engine runs. */
async function crowded(organization: TestOrganization, size: number): Promise<string> {
  const start = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
  const settings = { reEntry: { mode: 'AFTER_EXIT' } }
  const wait = step('pause', 'WAIT', { amount: 3, unit: 'DAYS' })
  const workflowId = await publishWorkflow(organization, [start, wait], { settings })
  await execute(
    em(),
    sql`insert into subscriber (id, organization_id, email, name, status)
      select new_id(), ${organization.id}, 'p' || number || '@reader.example', 'P', 'SUBSCRIBED'
      from generate_series(1, ${size}::int) as number`,
  )
  await organization.confirmed('add_subscribers_to_workflow', { workflowId, filters: [] })
  const intake = await row<{ id: string }>(
    em(),
    sql`select id from automation_intake where automation_id = ${decodeId('wf', workflowId)}`,
  )
  // One call lets people in for some seconds only, which may not be enough on a busy machine.
  const enter = () => continueIntake(api.services, organization.id, intake?.id ?? '', UNFOLLOWED)
  while ((await enter()).state === 'RUNNING');
  return workflowId
}

async function activeIn(organization: TestOrganization, workflowId: string): Promise<number> {
  return (await organization.data('get_workflow', { workflowId })).workflow.activeSubscribers
}

/** Returns the next page of work, claimed as a relay does. */
async function nextPage() {
  await execute(em(), sql`update outbox set available_at = now() where kind = 'work'`)
  const claimed = await claimOutbox(em(), 10_000, 15)
  return claimed.find(({ kind }) => kind === 'work')
}

test.serial('many runs are canceled page by page, each once, whoever dies or comes twice', async (t) => {
  const organization = await api.organization()
  const workflowId = await crowded(organization, 2_300)
  const archived = await organization.confirmed('update_workflow_status', { workflowId, status: 'ARCHIVED' })
  t.is(archived.body.data.canceledRuns, 2_300)
  t.is(await activeIn(organization, workflowId), 1_300)
  const page = await nextPage()
  if (!page) throw new Error('nothing is left to do')
  // Two relays process the page, as after an expired lease.
  await Promise.all([performWork(api.services, page), performWork(api.services, page)])
  t.is(await activeIn(organization, workflowId), 300)
  const last = await nextPage()
  t.not(last?.id, page.id)
  if (last) await performWork(api.services, last)
  t.is(await activeIn(organization, workflowId), 0)
  t.is(await nextPage(), undefined)
  const { statistics } = await organization.data('get_workflow', { workflowId })
  t.deepEqual(statistics.exits, { ARCHIVED: 2_300 })
  const told = await row<{ events: number; people: number; by: number }>(
    em(),
    sql`select count(*)::int as events, count(distinct subscriber_id)::int as people,
        count(distinct cause)::int as by
      from subscriber_event where organization_id = ${organization.id} and type = 'WORKFLOW_CANCELED'`,
  )
  t.deepEqual(told, { events: 2_300, people: 2_300, by: 1 })
})

test.serial('a workflow that leaves the archive half-way keeps no run, and loses no new one', async (t) => {
  const organization = await api.organization()
  const workflowId = await crowded(organization, 1_100)
  await organization.confirmed('delete_workflow', { workflowId })
  t.is(await activeIn(organization, workflowId), 100)
  const page = await nextPage()
  if (!page) throw new Error('nothing is left to do')
  await organization.data('update_workflow_status', { workflowId, status: 'PAUSED' })
  t.is(await activeIn(organization, workflowId), 0)
  await organization.confirmed('update_workflow_status', { workflowId, status: 'ACTIVE' })
  await organization.data('add_subscriber_to_workflow', { workflowId, email: 'p7@reader.example' })
  await performWork(api.services, page)
  t.is(await activeIn(organization, workflowId), 1)
})
