import test from 'ava'
import { sql } from 'kysely'

import { execute } from '../src/database.ts'
import { claimRecheck } from '../src/domain/segments/recheck.ts'
import { decodeId } from '../src/ids.ts'
import { reconcile } from '../worker/reconciler.ts'
import type { TestOrganization } from './helpers/api.ts'
import { runsOf, step } from './helpers/automation.ts'
import { backUp } from './helpers/back-up.ts'
import { eventually } from './helpers/eventually.ts'
import { type Stack, startStack } from './helpers/stack.ts'
import { fastForward, publishWorkflow } from './helpers/workflow.ts'

let stack: Stack

test.before(async () => {
  stack = await startStack({ queue: 'restored' })
})
test.after.always(() => stack?.close())

const STEPS = [
  { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
  step('first', 'WAIT', { amount: 3, unit: 'DAYS' }),
  step('second', 'WAIT', { amount: 30, unit: 'DAYS' }),
]

test('work whose workflows are ahead of a restored database is done again to its end', async (t) => {
  const { api } = stack
  const organization = await api.organization()
  const runs = (id: string) => runsOf(api.services, organization, decodeId('wf', id))
  const places = async (...ids: string[]) => {
    const found = await Promise.all(ids.map(runs))
    return found
      .flat()
      .map(({ stepId }) => stepId)
      .join()
  }
  const [behind, done] = [await subscribe(organization, 'behind'), await subscribe(organization, 'done')]
  const workflowId = await publishWorkflow(organization, STEPS)
  for (const subscriberId of [behind, done]) {
    await organization.data('add_subscriber_to_workflow', { workflowId, subscriberId })
  }
  await eventually('both to wait', async () => (await places(workflowId)) === 'first,first')

  await stack.engine.stop()
  const { campaign } = await organization.data('create_campaign', {
    subject: 'News',
    contentType: 'MARKDOWN',
    content: 'Hi {{name}}, [leave]({{unsubscribeUrl}}).',
  })
  await organization.confirmed('schedule_campaign', { campaignId: campaign.id })
  const intakeId = await publishWorkflow(organization, STEPS, { name: 'For all' })
  await organization.confirmed('add_subscribers_to_workflow', { workflowId: intakeId, filters: [] })
  const list = await fetch(`${api.url}/api/v2/imports`, {
    method: 'POST',
    headers: { authorization: `Bearer ${organization.token}`, 'content-type': 'text/csv' },
    body: 'email,name\nbehind@reader.example,Behind\n',
  })
  const { id: importId } = (await list.json()) as { id: string }
  const restore = await backUp(stack.em())

  await stack.engine.start()
  const statusOf = {
    campaign: async () =>
      (await organization.data('get_campaign_progress', { campaignId: campaign.id })).progress.status,
    list: async () =>
      (await api.request('GET', `/api/v2/imports/${importId}`, { token: organization.token })).body.status,
  }
  const isAllDone = async () =>
    (await statusOf.campaign()) === 'SENT' &&
    (await statusOf.list()) === 'COMPLETED' &&
    (await places(intakeId)) === 'first,first'
  await eventually('the background work to be done', isAllDone)
  const forward = (subscriberId: string, expectedStepId: string) =>
    fastForward(organization, { workflowId, subscriberId, expectedStepId })
  await forward(behind, 'first')
  await forward(done, 'first')
  await forward(done, 'second')
  t.deepEqual(
    (await runs(workflowId)).map(({ status }) => status),
    ['WAITING', 'COMPLETED'],
  )

  await stack.engine.stop()
  await stack.lanes.stop()
  await restore()
  t.is(await statusOf.campaign(), 'SCHEDULED')
  t.is(await statusOf.list(), 'PENDING')
  t.is(await places(workflowId, intakeId), 'first,first')
  await makeDue(workflowId)
  await stack.lanes.start()
  await stack.engine.start()
  await eventually('the background work to be done again', async () => {
    await reconcile(api.services, 0)
    return await isAllDone()
  })
  await makeDue(intakeId)
  await eventually('every run to go on', async () => {
    await reconcile(api.services, 0)
    return (await places(workflowId, intakeId)) === 'second,second,second,second'
  })
  t.deepEqual(
    stack.sink
      .accepted()
      .map(({ recipient }) => recipient)
      .toSorted(),
    ['behind@reader.example', 'behind@reader.example', 'done@reader.example', 'done@reader.example'],
  )
})

test('a comparison of a segment that the server of before was asked for is made', async (t) => {
  const organization = await stack.api.organization()
  const filters = [{ field: 'name', operator: 'equals', value: 'Ada' }]
  const { segment } = await organization.data('create_segment', { name: 'Adas', filters })
  const start = { id: 'start', type: 'TRIGGER', config: { type: 'SEGMENT_ENTERED', segmentId: segment.id } }
  await publishWorkflow(organization, [start, step('tag', 'ADD_TAG', { tagNames: ['Ada'] })])
  const ask = async (age: string) => {
    await execute(
      stack.em(),
      sql`update watched_segment set recheck_after = '900000000000', recheck_at = now() - ${age}::interval
        where organization_id = ${organization.id}`,
    )
    return (await claimRecheck(stack.em()))?.segmentId ?? null
  }
  // Within a minute it may be a transaction that began after the snapshot.
  t.is(await ask('0 minutes'), null)
  t.is(await ask('2 minutes'), decodeId('seg', segment.id))
  t.is(await claimRecheck(stack.em()), null)
})

async function subscribe(organization: TestOrganization, name: string): Promise<string> {
  const email = `${name}@reader.example`
  return (await organization.data('add_subscriber', { email })).subscriber.id
}

async function makeDue(workflowId: string): Promise<void> {
  await execute(
    stack.em(),
    sql`update automation_run set wake_at = now() - interval '1 hour'
      where automation_id = ${decodeId('wf', workflowId)}`,
  )
}
