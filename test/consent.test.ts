import test from 'ava'
import { sql } from 'kysely'

import { SUBSCRIBER_STATUSES, type SubscriberStatus } from '../schema/values.ts'
import { execute } from '../src/database.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

const LETTERS: Record<string, SubscriberStatus> = {
  P: 'PENDING_CONFIRMATION',
  S: 'SUBSCRIBED',
  U: 'UNSUBSCRIBED',
  B: 'BOUNCED',
  X: 'BANNED',
  C: 'COMPLAINED',
  T: 'TRANSACTIONAL',
}
const COLUMNS = [null, 'P', 'S', 'U', 'B', 'X', 'C', 'T']

/**
 * The state table with every combination, written by hand. Each row has the tool, whether the organization uses double
 * opt-in, `resubscribe` and `skipDoubleOptIn` (`-` means omitted), then the status after the call for a subscriber who
 * was new, Pending, Subscribed, Unsubscribed, Bounced, banned (X), Complained or Transactional.
 */
const TABLE = `
  tool    opt-in  resub  skip   |  new  P  S  U  B  X  C  T
  add     off     -      -      |   S   P  S  S  B  X  C  S
  add     off     -      false  |   S   P  S  S  B  X  C  S
  add     off     -      true   |   S   S  S  S  B  X  C  S
  add     off     false  -      |   S   P  S  U  B  X  C  S
  add     off     false  false  |   S   P  S  U  B  X  C  S
  add     off     false  true   |   S   S  S  U  B  X  C  S
  add     off     true   -      |   S   P  S  S  B  X  C  S
  add     off     true   false  |   S   P  S  S  B  X  C  S
  add     off     true   true   |   S   S  S  S  B  X  C  S
  add     on      -      -      |   P   P  S  S  B  X  C  P
  add     on      -      false  |   P   P  S  S  B  X  C  P
  add     on      -      true   |   S   S  S  S  B  X  C  S
  add     on      false  -      |   P   P  S  U  B  X  C  P
  add     on      false  false  |   P   P  S  U  B  X  C  P
  add     on      false  true   |   S   S  S  U  B  X  C  S
  add     on      true   -      |   P   P  S  S  B  X  C  P
  add     on      true   false  |   P   P  S  S  B  X  C  P
  add     on      true   true   |   S   S  S  S  B  X  C  S
  update  off     -      -      |   .   P  S  U  B  X  C  T
  update  off     -      false  |   .   P  S  U  B  X  C  T
  update  off     -      true   |   .   S  S  U  B  X  C  T
  update  off     false  -      |   .   P  S  U  B  X  C  T
  update  off     false  false  |   .   P  S  U  B  X  C  T
  update  off     false  true   |   .   S  S  U  B  X  C  T
  update  off     true   -      |   .   P  S  S  B  X  C  T
  update  off     true   false  |   .   P  S  S  B  X  C  T
  update  off     true   true   |   .   S  S  S  B  X  C  T
  update  on      -      -      |   .   P  S  U  B  X  C  T
  update  on      -      false  |   .   P  S  U  B  X  C  T
  update  on      -      true   |   .   S  S  U  B  X  C  T
  update  on      false  -      |   .   P  S  U  B  X  C  T
  update  on      false  false  |   .   P  S  U  B  X  C  T
  update  on      false  true   |   .   S  S  U  B  X  C  T
  update  on      true   -      |   .   P  S  S  B  X  C  T
  update  on      true   false  |   .   P  S  S  B  X  C  T
  update  on      true   true   |   .   S  S  S  B  X  C  T
`

type Row = {
  tool: string
  doubleOptIn: boolean
  flags: Record<string, boolean>
  after: string[]
  text: string
}

function readTable(): Row[] {
  const lines = TABLE.trim().split('\n').slice(1)
  return lines.map((line) => {
    const [left = '', right = ''] = line.split('|')
    const [tool = '', optIn, resubscribe, skipDoubleOptIn] = left.trim().split(/\s+/)
    const given = Object.entries({ resubscribe, skipDoubleOptIn }).filter(([, flag]) => flag !== '-')
    return {
      tool: `${tool}_subscriber`,
      doubleOptIn: optIn === 'on',
      flags: Object.fromEntries(given.map(([name, flag]) => [name, flag === 'true'])),
      after: right.trim().split(/\s+/),
      text: left.trim().replaceAll(/\s+/g, ' '),
    }
  })
}

async function put(organization: TestOrganization, status: SubscriberStatus): Promise<string> {
  const email = `${status.toLowerCase()}-${Math.random().toString(36).slice(2)}@example.com`
  await organization.data('add_subscriber', { email, skipDoubleOptIn: true })
  await execute(
    api.services.orm.em.fork(),
    sql`update subscriber set status = ${status} where organization_id = ${organization.id} and email = ${email}`,
  )
  return email
}

async function subscriptions(organization: TestOrganization, email: string): Promise<number> {
  const { events } = await organization.data('list_subscriber_events', { email, eventType: 'SUBSCRIBED' })
  return events.length
}

test('every status moves as the table says, under every combination, and a subscription is recorded once', async (t) => {
  const organizations = [await api.organization(), await api.organization({ doubleOptIn: true })]
  const table = readTable()
  t.is(table.length, 36)
  for (const { tool, doubleOptIn, flags, after, text } of table) {
    const organization = organizations[Number(doubleOptIn)]
    if (!organization) throw new Error('no organization')
    await Promise.all(
      COLUMNS.map(async (letter, column) => {
        const expected = LETTERS[after[column] ?? '']
        const before = letter === null ? null : LETTERS[letter]
        if (!expected || before === undefined) return t.is(after[column], '.', text)
        const email = before === null ? `new-${Math.random()}@example.com` : await put(organization, before)
        const subscribedBefore = before === null ? 0 : 1
        const named = tool === 'add_subscriber' ? { email } : { subscriber: email, name: 'Ada' }
        const { subscriber } = await organization.data(tool, { ...named, ...flags })
        const message = `${text}, was ${before}`
        t.is(subscriber.status, expected, message)
        const isNews = expected === 'SUBSCRIBED' && before !== 'SUBSCRIBED'
        t.is(await subscriptions(organization, email), subscribedBefore + Number(isNews), message)
      }),
    )
  }
})

test('a patch of the name does not subscribe anybody again', async (t) => {
  const organization = await api.organization()
  const email = await put(organization, 'UNSUBSCRIBED')
  const { subscriber } = await organization.data('update_subscriber', { subscriber: email, name: 'Ada' })
  t.is(subscriber.status, 'UNSUBSCRIBED')
})

test('unsubscribe moves every status, asks first, and records it once', async (t) => {
  const organization = await api.organization()
  for (const before of SUBSCRIBER_STATUSES) {
    const email = await put(organization, before)
    const asked = await organization.call('unsubscribe', { email, reason: 'too many' })
    t.is(asked.status, 428)
    t.is(asked.body.code, 'CONFIRMATION_REQUIRED')
    t.is(asked.body.summary.target, email)
    t.true(asked.body.summary.effects.length > 0)
    const unchanged = await organization.data('get_subscriber', { email })
    t.is(unchanged.subscriber.status, before)
    const { confirmationCode } = asked.body
    const done = await organization.call('unsubscribe', { email, reason: 'too many', confirmationCode })
    t.is(done.status, 200, JSON.stringify(done.body))
    t.is(done.body.data.subscriber.status, 'UNSUBSCRIBED')
    const again = await organization.confirmed('unsubscribe', { email })
    t.is(again.status, 200)
    const { events } = await organization.data('list_subscriber_events', { email, eventType: 'UNSUBSCRIBED' })
    t.is(events.length, before === 'UNSUBSCRIBED' ? 0 : 1)
    if (events[0]) t.like(events[0].data, { reason: 'too many', from: before, source: 'api' })
  }
})

test('a confirmation code of unsubscribe is bound to its input and works once', async (t) => {
  const organization = await api.organization()
  const [one, other] = [await put(organization, 'SUBSCRIBED'), await put(organization, 'SUBSCRIBED')]
  const { confirmationCode } = (await organization.call('unsubscribe', { email: one })).body
  t.is((await organization.call('unsubscribe', { email: other, confirmationCode })).status, 428)
  t.is((await organization.data('get_subscriber', { email: other })).subscriber.status, 'SUBSCRIBED')
  t.is((await organization.call('unsubscribe', { email: one, confirmationCode })).status, 200)
  t.is((await organization.call('unsubscribe', { email: one, confirmationCode })).status, 428)
})

test('unsubscribe refuses somebody unknown before it asks for a code', async (t) => {
  const organization = await api.organization()
  const answer = await organization.call('unsubscribe', { email: 'nobody@example.com' })
  t.is(answer.status, 404)
  t.is(answer.body.code, 'NOT_FOUND')
})
