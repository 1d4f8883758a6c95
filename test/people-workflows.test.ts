import test from 'ava'

import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { publishWorkflow } from './helpers/workflow.ts'

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

/** Publishes a workflow that waits a day after its trigger. */
async function publish(
  organization: TestOrganization,
  name: string,
  trigger: object,
  settings: object = {},
): Promise<string> {
  const steps = [
    { id: 'start', type: 'TRIGGER', config: trigger },
    { id: 'wait', type: 'WAIT', config: { amount: 1, unit: 'DAYS' } },
  ]
  return await publishWorkflow(organization, steps, { name, settings })
}

async function runs(
  organization: TestOrganization,
  email: string,
): Promise<{ id: string; status: string; exitReason: string }[]> {
  return (await organization.data('get_subscriber_workflow_runs', { email })).runs
}

test('a new subscriber enters, unless the call says not to start workflows', async (t) => {
  const organization = await api.organization()
  await publish(organization, 'Welcome', { type: 'SUBSCRIBED' })
  await organization.data('add_subscriber', { email: 'quiet@example.com', triggerWorkflows: false })
  await organization.data('add_subscriber', { email: 'loud@example.com' })
  t.is((await runs(organization, 'quiet@example.com')).length, 0)
  t.is((await runs(organization, 'loud@example.com')).length, 1)
})

test('what has just happened is within the last of any length for the filters of the trigger it fires', async (t) => {
  const organization = await api.organization()
  const filters = [{ field: 'createdAt', operator: 'within_last', value: { amount: 1, unit: 'DAYS' } }]
  await publish(organization, 'Fresh', { type: 'SUBSCRIBED', filters })
  // Timestamps are stored in milliseconds and half of them are rounded up, so one person would not be enough.
  const emails = Array.from({ length: 12 }, (_, index) => `fresh-${index}@example.com`)
  for (const email of emails) {
    await organization.data('add_subscriber', { email })
    t.is((await runs(organization, email)).length, 1, email)
  }
})

test('somebody who has not confirmed enters when the confirmation is skipped', async (t) => {
  const organization = await api.organization({ doubleOptIn: true })
  await publish(organization, 'Welcome', { type: 'SUBSCRIBED' })
  const { subscriber } = await organization.data('add_subscriber', { email: 'a@example.com' })
  t.is(subscriber.status, 'PENDING_CONFIRMATION')
  t.is((await runs(organization, 'a@example.com')).length, 0)
  await organization.data('update_subscriber', { subscriber: subscriber.id, skipDoubleOptIn: true })
  t.is((await runs(organization, 'a@example.com')).length, 1)
})

test('a tag starts a workflow from each tool that adds it, once for each real change', async (t) => {
  const organization = await api.organization()
  await publish(organization, 'Tagged', { type: 'TAG_ADDED', tagNames: ['VIP'] })
  const { subscriber } = await organization.data('add_subscriber', { email: 'a@example.com', tags: ['vip'] })
  t.is((await runs(organization, 'a@example.com')).length, 1)
  await organization.data('bulk_add_tags', { subscriberIds: [subscriber.id], tagNames: ['Vip'] })
  t.is((await runs(organization, 'a@example.com')).length, 1)
  const other = await organization.data('add_subscriber', { email: 'b@example.com' })
  await organization.data('update_subscriber', {
    subscriber: 'b@example.com',
    tags: ['vip'],
    triggerWorkflows: false,
  })
  t.is((await runs(organization, 'b@example.com')).length, 0)
  const ids = { subscriberIds: [other.subscriber.id], tagNames: ['vip'] }
  await organization.data('bulk_remove_tags', ids)
  await organization.data('bulk_add_tags', ids)
  t.is((await runs(organization, 'b@example.com')).length, 1)
})

test('deleting a tag starts no workflow, and taking it does', async (t) => {
  const organization = await api.organization()
  await publish(organization, 'Lost', { type: 'TAG_REMOVED', tagNames: ['vip'] })
  for (const email of ['a@example.com', 'b@example.com']) {
    await organization.data('add_subscriber', { email, tags: ['vip'] })
  }
  await organization.data('update_subscriber', { subscriber: 'a@example.com', tags: [], replaceTags: true })
  t.is((await runs(organization, 'a@example.com')).length, 1)
  const asked = await organization.call('delete_tag', { name: 'vip' })
  t.true(asked.body.summary.warnings.some((text: string) => text.includes('"Lost"')))
  t.is((await organization.confirmed('delete_tag', { name: 'vip' })).status, 200)
  t.is((await runs(organization, 'b@example.com')).length, 0)
})

test('a payment starts the workflow that waits for it', async (t) => {
  const organization = await api.organization()
  await publish(organization, 'Thanks', { type: 'EVENT', eventType: 'SUBSCRIBER_PAYMENT' })
  await organization.data('add_subscriber', { email: 'a@example.com' })
  await organization.data('create_event', {
    email: 'a@example.com',
    eventType: 'SUBSCRIBER_REFUND',
    amount: 1,
  })
  t.is((await runs(organization, 'a@example.com')).length, 0)
  await organization.data('create_event', {
    email: 'a@example.com',
    eventType: 'SUBSCRIBER_PAYMENT',
    amount: 1,
  })
  t.is((await runs(organization, 'a@example.com')).length, 1)
})

test('unsubscribe tells which runs end, and they end', async (t) => {
  const organization = await api.organization()
  await publish(organization, 'Leaves', { type: 'SUBSCRIBED' })
  await publish(organization, 'Stays', { type: 'SUBSCRIBED' }, { exitOnUnsubscribe: false })
  await organization.data('add_subscriber', { email: 'a@example.com' })
  t.is((await runs(organization, 'a@example.com')).length, 2)
  const asked = await organization.call('unsubscribe', { email: 'a@example.com' })
  t.true(asked.body.summary.effects.some((text: string) => text.includes('"Leaves"')))
  t.true(asked.body.summary.warnings.some((text: string) => text.includes('"Stays"')))
  t.is((await organization.confirmed('unsubscribe', { email: 'a@example.com' })).status, 200)
  const after = await runs(organization, 'a@example.com')
  t.is(after.filter(({ exitReason }) => exitReason === 'UNSUBSCRIBED').length, 1)
  t.is(after.filter(({ status }) => status === 'CANCELED').length, 1)
})

test('who was kept out by a change that starts no workflows, or was taken out by hand, is told so', async (t) => {
  const organization = await api.organization()
  const welcome = await publish(organization, 'Welcome', { type: 'SUBSCRIBED' })
  const tagged = await publish(organization, 'Tagged', {
    type: 'TAG_ADDED',
    tagNames: ['vip'],
    filters: [{ field: 'country', operator: 'equals', value: 'FR' }],
  })
  const email = 'a@example.com'
  await organization.data('add_subscriber', {
    email,
    country: 'FR',
    tags: ['vip'],
    triggerWorkflows: false,
  })
  await organization.data('import_subscribers', { subscribers: [{ email: 'b@example.com', tags: ['vip'] }] })
  const told = async (workflowId: string, of: string) => {
    const { reasons } = await organization.data('explain_delivery', { workflowId, email: of })
    return reasons
      .filter(({ at }: { at: string | null }) => at !== null)
      .map(({ outcome, code }: { outcome: string; code: string }) => `${outcome} ${code}`)
  }
  t.deepEqual(await told(welcome, email), ['AGAINST SILENT'])
  t.deepEqual(await told(tagged, email), ['AGAINST SILENT'])
  t.deepEqual(await told(welcome, 'b@example.com'), ['AGAINST SILENT'])
  // A person whom the filters exclude is not reported as silent.
  t.deepEqual(await told(tagged, 'b@example.com'), ['AGAINST FILTERS'])

  await organization.data('add_subscriber', { email: 'c@example.com' })
  const taken = { workflowId: welcome, email: 'c@example.com' }
  await organization.data('remove_subscriber_from_workflow', { ...taken, reason: 'asked by telephone' })
  t.deepEqual(await told(welcome, 'c@example.com'), ['FOR ENTERED', 'AGAINST MANUAL'])
  const { reasons } = await organization.data('explain_delivery', taken)
  t.regex(JSON.stringify(reasons), /taken out of the workflow by hand: “asked by telephone”\./)
  const [run] = await runs(organization, 'c@example.com')
  const { decisions } = await organization.data('get_workflow_run', { runId: run?.id })
  t.like(decisions, [{ action: 'RUN_ENDED', reason: 'MANUAL', data: { reason: 'asked by telephone' } }])
})
