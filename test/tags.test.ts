import test from 'ava'
import { sql } from 'kysely'

import { execute } from '../src/database.ts'
import { encodeId, newId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

async function people(organization: TestOrganization, count: number, tags: string[] = []): Promise<string[]> {
  const ids: string[] = []
  for (let number = 0; number < count; number++) {
    const { subscriber } = await organization.data('add_subscriber', {
      email: `p${number}@example.com`,
      tags,
    })
    ids.push(subscriber.id)
  }
  return ids
}

async function events(organization: TestOrganization, subscriberId: string, eventType: string) {
  const found = await organization.data('list_subscriber_events', { subscriberId, eventType, limit: 100 })
  return found.events
}

test('create_tag makes a tag, and list_tags counts who has it', async (t) => {
  const organization = await api.organization()
  const { tag } = await organization.data('create_tag', { name: 'VIP' })
  t.regex(tag.id, /^tag_/)
  t.like(tag, { name: 'VIP', subscriberCount: 0 })
  t.regex(tag.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  await people(organization, 3, ['vip', 'another'])
  const { tags } = await organization.data('list_tags')
  t.deepEqual(
    tags.map(({ name, subscriberCount }: { name: string; subscriberCount: number }) => [
      name,
      subscriberCount,
    ]),
    [
      ['another', 3],
      ['VIP', 3],
    ],
  )
})

test('a tag name in use is refused whatever its letter case', async (t) => {
  const organization = await api.organization()
  const { tag } = await organization.data('create_tag', { name: 'Élan' })
  const answer = await organization.call('create_tag', { name: 'éLAN' })
  t.is(answer.status, 409)
  t.is(answer.body.code, 'ALREADY_EXISTS')
  t.is(answer.body.details.tagId, tag.id)
})

for (const [title, name] of [
  ['an empty name', ''],
  ['a name of 101 characters', 'x'.repeat(101)],
  ['a name with a line break', 'a\nb'],
  ['a name with a tab', 'a\tb'],
  ['a name with a zero byte', 'a\u0000b'],
  ['a name with blanks around it', ' vip '],
  ['half of a surrogate pair', 'a\ud800'],
  ['a number', 12],
  ['null', null],
] as const) {
  test(`a tag name that is ${title} is refused`, async (t) => {
    const organization = await api.organization()
    for (const [tool, input] of [
      ['create_tag', { name }],
      ['get_or_create_tags', { names: ['fine', name] }],
      ['add_subscriber', { email: 'a@example.com', tags: [name] }],
    ] as const) {
      const answer = await organization.call(tool, input)
      t.is(answer.status, 400, tool)
      t.is(answer.body.code, 'INVALID_INPUT')
      t.regex(answer.body.error, /name|tags\[0\]/)
    }
    t.deepEqual((await organization.data('list_tags')).tags, [])
  })
}

test('a tag name of 100 characters beyond the basic plane is fine', async (t) => {
  const organization = await api.organization()
  const { tag } = await organization.data('create_tag', { name: '🎈'.repeat(100) })
  t.is([...tag.name].length, 100)
})

test('get_or_create_tags makes what is missing, says how many, and answers in the order of the names', async (t) => {
  const organization = await api.organization()
  await organization.data('create_tag', { name: 'One' })
  const first = await organization.data('get_or_create_tags', { names: ['one', 'Two', 'TWO', 'three'] })
  t.is(first.created, 2)
  const namesOf = ({ tags }: { tags: { name: string }[] }) => tags.map(({ name }) => name)
  t.deepEqual(namesOf(first), ['One', 'Two', 'three'])
  const again = await organization.data('get_or_create_tags', { names: ['two', 'three', 'one', 'Two'] })
  t.is(again.created, 0)
  t.deepEqual(namesOf(again), ['Two', 'three', 'One'])
  const tooMany = Array.from({ length: 101 }, (_, index) => `t${index}`)
  t.is((await organization.call('get_or_create_tags', { names: tooMany })).status, 400)
  t.is((await organization.call('get_or_create_tags', { names: [] })).status, 400)
})

test('many calls at once for the same new tags make each once', async (t) => {
  const organization = await api.organization()
  const names = ['a', 'b', 'c', 'd', 'e']
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      organization.data('get_or_create_tags', { names: index % 2 ? names : names.toReversed() }),
    ),
  )
  t.is(
    answers.reduce((sum, { created }) => sum + created, 0),
    5,
  )
  t.is((await organization.data('list_tags')).tags.length, 5)
})

test('bulk_add_tags gives each tag once, with one event for each real change', async (t) => {
  const organization = await api.organization()
  const [first, second] = await people(organization, 2)
  await organization.data('bulk_add_tags', { subscriberIds: [first], tagNames: ['old'] })
  const { added } = await organization.data('bulk_add_tags', {
    subscriberIds: [first, second, first],
    tagNames: ['OLD', 'new', 'New'],
  })
  t.is(added, 3)
  t.is((await events(organization, first ?? '', 'TAG_ADDED')).length, 2)
  const [event] = await events(organization, second ?? '', 'TAG_ADDED')
  t.regex(event.data.tagId, /^tag_/)
  const { subscriber } = await organization.data('get_subscriber', { subscriberId: second })
  t.deepEqual(subscriber.tags, ['new', 'old'])
})

test('bulk_remove_tags takes only what is there, with one event for each real change', async (t) => {
  const organization = await api.organization()
  const [first, second] = await people(organization, 2, ['keep', 'drop'])
  const input = { subscriberIds: [first, second], tagNames: ['DROP', 'unknown'] }
  t.is((await organization.data('bulk_remove_tags', input)).removed, 2)
  t.is((await organization.data('bulk_remove_tags', input)).removed, 0)
  const removed = await events(organization, first ?? '', 'TAG_REMOVED')
  t.is(removed.length, 1)
  t.is(removed[0].data.tag, 'drop')
  t.deepEqual((await organization.data('get_subscriber', { subscriberId: first })).subscriber.tags, ['keep'])
})

test('bulk calls refuse more than 100 subscribers or 20 tags, and none', async (t) => {
  const organization = await api.organization()
  const [id] = await people(organization, 1)
  const ids = (count: number) => Array.from({ length: count }, () => id)
  const names = (count: number) => Array.from({ length: count }, (_, index) => `t${index}`)
  for (const tool of ['bulk_add_tags', 'bulk_remove_tags']) {
    for (const [subscribers, tags] of [
      [101, 1],
      [1, 21],
      [0, 1],
      [1, 0],
    ] as const) {
      const answer = await organization.call(tool, { subscriberIds: ids(subscribers), tagNames: names(tags) })
      t.is(answer.status, 400, `${tool} ${subscribers} ${tags}`)
      t.is(answer.body.code, 'INVALID_INPUT')
    }
    t.is((await organization.call(tool, { subscriberIds: ids(100), tagNames: names(20) })).status, 200)
  }
})

test('a bulk call with an unknown, foreign or malformed id changes nothing and names the id', async (t) => {
  const [organization, stranger] = [await api.organization(), await api.organization()]
  const [mine] = await people(organization, 1)
  const [theirs] = await people(stranger, 1)
  for (const bad of [theirs, encodeId('sub', newId()), 'sub_x', 'nonsense', '']) {
    for (const tool of ['bulk_add_tags', 'bulk_remove_tags']) {
      const answer = await organization.call(tool, { subscriberIds: [mine, bad], tagNames: ['vip'] })
      t.is(answer.status, 404)
      t.is(answer.body.code, 'NOT_FOUND')
      t.deepEqual(answer.body.details.missing, [bad])
    }
  }
  t.deepEqual((await organization.data('get_subscriber', { subscriberId: mine })).subscriber.tags, [])
  t.deepEqual((await stranger.data('list_tags')).tags, [])
})

test('adding and removing at once over the same people ends in order, without a fault', async (t) => {
  const organization = await api.organization()
  const ids = await people(organization, 10)
  const tagNames = ['a', 'b', 'c']
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, index) =>
      organization.call(index % 3 === 0 ? 'bulk_remove_tags' : 'bulk_add_tags', {
        subscriberIds: index % 2 ? ids : ids.toReversed(),
        tagNames: index % 2 ? tagNames : tagNames.toReversed(),
      }),
    ),
  )
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  for (const id of ids) {
    const added = await events(organization, id, 'TAG_ADDED')
    const removed = await events(organization, id, 'TAG_REMOVED')
    const { subscriber } = await organization.data('get_subscriber', { subscriberId: id })
    t.is(added.length - removed.length, subscriber.tags.length)
  }
})

test('delete_tag says whom and what it touches, then takes the tag from everybody', async (t) => {
  const organization = await api.organization()
  const ids = await people(organization, 3, ['Beta', 'stays'])
  const em = api.services.orm.em.fork()
  const filters = JSON.stringify([{ any: [{ field: 'tags', operator: 'has_any', value: ['beta'] }] }])
  await execute(
    em,
    sql`insert into segment (id, organization_id, name, filters)
      values (${newId()}, ${organization.id}, 'Testers', ${filters}::jsonb)`,
  )
  const draft = JSON.stringify({
    steps: [{ id: 's', type: 'ADD_TAG', config: { tagNames: ['BETA'] } }],
    edges: [],
  })
  await execute(
    em,
    sql`insert into automation (id, organization_id, name, draft)
      values (${newId()}, ${organization.id}, 'Onboarding', ${draft}::jsonb)`,
  )
  const asked = await organization.call('delete_tag', { name: 'beta' })
  t.is(asked.status, 428)
  t.regex(asked.body.summary.effects[0], /3 of 3 subscribers/)
  t.deepEqual(
    asked.body.summary.warnings.map((text: string) => /"(\w+)"/.exec(text)?.[1]),
    ['Testers', 'Onboarding'],
  )
  t.is((await organization.data('list_tags')).tags.length, 2)
  const done = await organization.call('delete_tag', {
    name: 'beta',
    confirmationCode: asked.body.confirmationCode,
  })
  t.is(done.status, 200)
  t.like(done.body.data, { name: 'Beta', subscriberCount: 3 })
  for (const id of ids) {
    t.deepEqual((await organization.data('get_subscriber', { subscriberId: id })).subscriber.tags, ['stays'])
    t.is((await events(organization, id, 'TAG_REMOVED')).length, 1)
  }
})

test('a tag keeps its name while a campaign, a goal of a draft or an older version with runs refers to it', async (t) => {
  const organization = await api.organization()
  const { tag } = await organization.data('create_tag', { name: 'Beta' })
  const [subscriberId] = await people(organization, 1)
  const users = async () => {
    const { token } = organization
    const answer = await api.request('PATCH', `/api/v2/tags/${tag.id}`, { token, body: { name: 'Gamma' } })
    t.is(answer.status, 409)
    return answer.body.details.usedBy.map(({ name }: { name: string }) => name)
  }
  const filters = [{ field: 'tags', operator: 'has_any', value: ['beta'] }]
  const campaignId = newId()
  await execute(
    api.services.orm.em.fork(),
    sql`insert into campaign (id, organization_id, kind, name, status, recipient_filters)
      values (${campaignId}, ${organization.id}, 'BROADCAST', 'Leaving', 'SENDING', ${JSON.stringify(filters)}::jsonb)`,
  )
  t.deepEqual(await users(), ['Leaving'])
  await execute(
    api.services.orm.em.fork(),
    sql`update campaign set status = 'SENT' where organization_id = ${organization.id} and id = ${campaignId}`,
  )
  const { workflow } = await organization.data('create_workflow', { name: 'Onboarding' })
  const workflowId = workflow.id
  const configure = async (expectedUpdatedAt: string, more: object) =>
    (
      await organization.data('configure_workflow_draft', {
        workflowId,
        expectedUpdatedAt,
        steps: [
          { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
          { id: 'wait', type: 'WAIT', config: { amount: 1, unit: 'DAYS' } },
        ],
        edges: [{ from: 'start', to: 'wait' }],
        ...more,
      })
    ).workflow.updatedAt
  await configure(workflow.updatedAt, {
    successGoals: [{ id: 'joined', name: 'Joined', filters, windowDays: 10 }],
  })
  t.deepEqual(await users(), ['Onboarding'])
  await organization.confirmed('publish_workflow', { workflowId })
  await organization.data('add_subscriber_to_workflow', { workflowId, subscriberId })
  const published = await organization.data('get_workflow', { workflowId })
  await configure(published.workflow.updatedAt, { successGoals: [] })
  await organization.confirmed('publish_workflow', { workflowId })
  t.deepEqual(await users(), ['Onboarding'])
  await organization.data('remove_subscriber_from_workflow', { workflowId, subscriberId })
  const { token } = organization
  t.like(await api.request('PATCH', `/api/v2/tags/${tag.id}`, { token, body: { name: 'Gamma' } }), {
    status: 200,
    body: { name: 'Gamma' },
  })
})

test('a tag in use takes no name that only another rule for letter case calls the same', async (t) => {
  const organization = await api.organization()
  const { tag } = await organization.data('create_tag', { name: 'ΝΕΟΣ' })
  const filters = [{ field: 'tags', operator: 'has_any', value: ['ΝΕΟΣ'] }]
  const { segment } = await organization.data('create_segment', { name: 'New', filters })
  const rename = async (name: string) =>
    (await api.request('PATCH', `/api/v2/tags/${tag.id}`, { token: organization.token, body: { name } }))
      .status
  // Its last letter is the sigma that ends words, which is no lower case of the other to the database.
  t.is(await rename('νεος'), 409)
  t.is(await rename('νεοσ'), 200)
  const { segmentId } = { segmentId: segment.id }
  t.is((await organization.data('get_segment', { segmentId })).segment.problem, null)
})

test('delete_tag takes exactly one of id and name', async (t) => {
  const organization = await api.organization()
  const { tag } = await organization.data('create_tag', { name: 'x' })
  for (const input of [{}, { tagId: tag.id, name: 'x' }]) {
    const answer = await organization.call('delete_tag', input)
    t.is(answer.status, 400)
    t.regex(answer.body.error, /exactly one/)
  }
  t.is((await organization.confirmed('delete_tag', { tagId: tag.id })).status, 200)
  t.is((await organization.call('delete_tag', { tagId: tag.id })).status, 404)
})

test("another organization's tag is not there", async (t) => {
  const [organization, stranger] = [await api.organization(), await api.organization()]
  const { tag } = await stranger.data('create_tag', { name: 'theirs' })
  for (const input of [
    { tagId: tag.id },
    { name: 'theirs' },
    { tagId: 'tag_nonsense' },
    { tagId: tag.id.slice(4) },
  ]) {
    const answer = await organization.call('delete_tag', input)
    t.is(answer.status, 404)
    t.is(answer.body.code, 'NOT_FOUND')
  }
  t.is((await stranger.data('list_tags')).tags.length, 1)
})

test('a token without the permission subscribers reads and writes no tags', async (t) => {
  const organization = await api.organization()
  const token = await organization.tokenWith(['emails'])
  const answer = await api.request('POST', '/api/v2/tools/list_tags', { token, body: {} })
  t.is(answer.status, 403)
  t.is(answer.body.code, 'FORBIDDEN')
})

test('unknown fields are refused by name', async (t) => {
  const organization = await api.organization()
  const answer = await organization.call('create_tag', { name: 'x', colour: 'red' })
  t.is(answer.status, 400)
  t.regex(answer.body.error, /colour/)
})
