import test from 'ava'

import { Postloom, type Challenge, type Result } from '../sdk/src/index.ts'
import type { TestOrganization } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import { type Stack, startStack } from './helpers/stack.ts'

/** A timeout for busy machines. */
const LONG = { withinMs: 180_000 }

let stack: Stack

test.before(async () => {
  stack = await startStack({ queue: 'sdk' })
})
test.after.always(() => stack?.close())

async function newClient(): Promise<{ client: Postloom; organization: TestOrganization }> {
  const organization = await stack.api.organization()
  return { client: new Postloom(organization.token, { baseUrl: stack.api.url }), organization }
}

/** Returns the data of a result; throws on an error. */
function given<Data>({ data, error }: Result<Data>): Data {
  if (error) throw new Error(JSON.stringify(error))
  return data
}

test('from a token to a campaign that was sent, with the SDK alone', async (t) => {
  t.timeout(240_000)
  const { client, organization } = await newClient()
  t.like(given(await client.tokens.current()), { permissions: ['emails', 'subscribers'] })
  const people = ['ada', 'bob', 'cyd'].map((name) => `${name}@campaign-reader.example`)
  for (const email of people) given(await client.subscribers.create({ email, tags: ['readers'] }))
  const campaign = given(
    await client.campaigns.create({
      subject: 'Spring is here',
      contentType: 'MARKDOWN',
      content: 'Hello {{email}}.\n\n[Unsubscribe]({{unsubscribeUrl}})',
    }),
  )
  const filters = [{ field: 'tags', operator: 'has_any', value: ['readers'] }]
  given(await client.campaigns.update(campaign.id, { recipientFilters: filters }))
  const sent = given(await client.campaigns.send(campaign.id))
  t.true(['SCHEDULED', 'SENDING', 'SENT'].includes(sent.status))
  const progress = await eventually(
    'the campaign to be sent',
    async () => {
      const read = given(await client.tools.get_campaign_progress({ campaignId: campaign.id }))
      return read.progress.status === 'SENT' && read.progress
    },
    LONG,
  )
  t.like(progress, { total: 3, sent: 3, failed: 0 })
  const arrived = stack.sink.accepted().map(({ recipient }) => recipient)
  t.deepEqual(arrived.filter((email) => people.includes(email)).toSorted(), people)
  t.is((await client.campaigns.delete(campaign.id)).error?.name, 'wrong_state')
  t.is(sent.sender?.email, `hello@${organization.domain}`)
})

test('an email is sent once under its key, and its story can be read', async (t) => {
  const { client, organization } = await newClient()
  const from = `hello@${organization.domain}`
  const email = { from, to: 'dan@receipt-reader.example', subject: 'Receipt', markdown: 'Thank you.' }
  const first = await client.emails.send(email, { idempotencyKey: 'receipt-1' })
  const again = await client.emails.send(email, { idempotencyKey: 'receipt-1' })
  t.deepEqual(given(again), given(first))
  t.truthy(first.headers['x-request-id'])
  const other = await client.emails.send({ ...email, subject: 'Other' }, { idempotencyKey: 'receipt-1' })
  t.like(other.error, { name: 'invalid_idempotent_request', statusCode: 409 })
  const { data: batch } = given(await client.emails.batch([email, { ...email, subject: 'Two' }]))
  t.is(batch.length, 2)
  const { id } = given(first)
  await eventually(
    'the receipt to be sent',
    async () => {
      return given(await client.emails.get(id)).last_event === 'sent'
    },
    LONG,
  )
  const refused = await client.emails.send({ ...email, to: 'nobody', from: 'x@foreign.example' })
  t.like(refused.error, { statusCode: 422 })
  t.true(Array.isArray(refused.error?.details))
  t.is(given(await client.emails.verify({ email: 'nobody@' })).status, 'invalid')
})

test('an answer that is lost on its way is asked for again, and the email goes out once', async (t) => {
  const { organization } = await newClient()
  let lost = 0
  const client = new Postloom(organization.token, {
    baseUrl: stack.api.url,
    retries: 1,
    fetch: async (...request) => {
      const answer = await fetch(...request)
      if (lost++ > 0) return answer
      await answer.text()
      throw new TypeError('the connection broke')
    },
  })
  const email = {
    from: `hello@${organization.domain}`,
    to: 'hal@lost-reader.example',
    subject: 'Once',
    html: 'Once',
  }
  given(await client.emails.send(email, { idempotencyKey: 'once' }))
  t.is(lost, 2)
  t.is(given(await client.emails.list()).data.length, 1)
})

test('a walk goes through every page once, and ends with the error of a page that cannot be read', async (t) => {
  const { client, organization } = await newClient()
  const other = await newClient()
  given(await other.client.tags.create({ name: 'foreign' }))
  const names = Array.from({ length: 7 }, (_, index) => `tag-${index}`)
  for (const name of names) given(await client.tags.create({ name }))
  const walked: string[] = []
  for await (const { data: tag, error, headers } of client.tags.each({ limit: 3 })) {
    t.is(error, null)
    t.truthy(headers['ratelimit-limit'] ?? headers['x-request-id'])
    if (tag) walked.push(tag.name)
  }
  t.deepEqual(walked, names.toReversed())

  const results: string[] = []
  for await (const { data, error } of client.tags.each({ limit: 3 })) {
    results.push(data ? data.name : error.name)
    // The token is deleted in the middle of the walk.
    if (results.length === 2) given(await client.tokens.delete(given(await client.tokens.current()).id))
  }
  t.deepEqual(results, ['tag-6', 'tag-5', 'tag-4', 'invalid_api_key'])
  t.is(given(await other.client.tags.list()).data.length, 1)
  t.is((await organization.call('list_tags')).status, 401)
})

test('a gated tool runs when it is confirmed, and tells what it would do', async (t) => {
  const { client } = await newClient()
  const email = 'eve@gate-reader.example'
  given(await client.subscribers.create({ email }))
  const asked = await client.tools.unsubscribe({ email })
  t.like(asked.error, { name: 'CONFIRMATION_REQUIRED', statusCode: 428 })
  t.regex(asked.error?.challenge?.confirmationCode ?? '', /^\d{5}$/)
  const heard: Challenge[] = []
  const refused = await client.tools.unsubscribe(
    { email },
    { confirm: (challenge) => heard.push(challenge) > 9 },
  )
  t.is(refused.error?.name, 'CONFIRMATION_REQUIRED')
  t.true(heard[0]?.summary.target.includes(email))
  const failing = await client.tools.unsubscribe(
    { email },
    { confirm: () => Promise.reject(new Error('closed')) },
  )
  t.like(failing.error, { name: 'aborted', cause: { message: 'closed' } })
  t.is(given(await client.subscribers.get(email)).status, 'SUBSCRIBED')
  const done = await client.tools.unsubscribe({ email }, { confirm: true, idempotencyKey: 'gone' })
  t.is(given(done).subscriber.status, 'UNSUBSCRIBED')
  const again = await client.tools.unsubscribe({ email }, { confirm: true, idempotencyKey: 'gone' })
  t.deepEqual(again.data, done.data)
  const byHand = await client.tools.delete_tag({ name: 'nothing' }, { confirm: true })
  t.like(byHand.error, { name: 'NOT_FOUND', statusCode: 404 })
})

test('the tools can be learned from the service', async (t) => {
  const { client } = await newClient()
  const { tools, total } = given(await client.catalogue.list())
  t.is(tools.length, total)
  t.like(given(await client.catalogue.get('unsubscribe')), { requiresConfirmation: true })
  t.deepEqual(given(await client.catalogue.run('list_tags')), { tags: [] })
  const { error } = await client.catalogue.run('list_tag')
  t.like(error, { name: 'TOOL_NOT_FOUND', statusCode: 404 })
  t.true(error?.message.includes('list_tags'))
})

test('people, their tags and events, files of them, and webhooks', async (t) => {
  t.timeout(600_000)
  const { client } = await newClient()
  const email = 'fay+list@people-reader.example'
  const created = given(await client.subscribers.create({ email, name: 'Fay' }))
  given(await client.subscribers.tags.add(email, { tags: ['vip', 'new'] }))
  t.deepEqual(given(await client.subscribers.tags.remove(created.id, { tags: ['new'] })).tags, ['vip'])
  t.is(given(await client.tags.update('vip', { name: 'regular' })).name, 'regular')
  given(await client.events.create({ email, eventType: 'ORDER_PLACED', metadata: { order: 7 } }))
  const seen: string[] = []
  for await (const { data } of client.subscribers.events.each(email, { limit: 2 }))
    seen.push(data?.type ?? '')
  t.true(seen.includes('ORDER_PLACED') && seen.includes('TAG_REMOVED'))
  t.is(given(await client.subscribers.unsubscribe(email)).status, 'UNSUBSCRIBED')
  t.is(given(await client.subscribers.export(email)).subscriber.id, created.id)
  t.like(given(await client.subscribers.delete(email)), { id: created.id, deleted: true })
  t.like((await client.subscribers.get(email)).error, { name: 'not_found', statusCode: 404 })

  const rows = 'E-mail,Plan\ngil@people-reader.example,pro\nnobody,free\n'
  const files = [rows, new TextEncoder().encode(rows), new Blob([rows]).stream()]
  for (const file of files) {
    const query = { mapping: { 'E-mail': 'email', Plan: 'fields.plan' }, tags: ['file', 'csv'] }
    const { id } = given(await client.imports.create(file, query))
    await eventually(
      'the file to be imported',
      async () => {
        return given(await client.imports.get(id)).status === 'COMPLETED'
      },
      LONG,
    )
    t.regex(given(await client.imports.rejected(id)), /nobody/)
  }
  const imported = given(await client.subscribers.get('gil@people-reader.example'))
  t.like(imported, { customFields: { plan: 'pro' } })
  t.deepEqual(imported.tags.toSorted(), ['csv', 'file'])

  const webhook = given(
    await client.webhooks.create({ url: 'https://hooks.example/postloom', eventTypes: ['EMAIL_SENT'] }),
  )
  t.regex(webhook.secret ?? '', /^whsec_/)
  given(await client.webhooks.ping(webhook.id))
  t.is(given(await client.webhooks.deliveries.list(webhook.id)).data.length, 1)
  given(await client.webhooks.delete(webhook.id))
})
