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

type Leaf = { field: string; operator: string; value?: unknown }
const named = (...ids: string[]): Leaf => ({ field: 'segment', operator: 'has_any', value: ids })
const NAMED = { field: 'name', operator: 'is_set' }

async function segment(organization: TestOrganization, name: string, ...filters: unknown[]): Promise<string> {
  const made = await organization.data('create_segment', { name, filters })
  return made.segment.id
}

test('a segment is made, counted, changed, copied and deleted', async (t) => {
  const organization = await api.organization()
  for (const name of ['Ann', 'Bob', '']) {
    await organization.data('add_subscriber', { email: `x${name}@example.com`, name })
  }
  const { segment: made } = await organization.data('create_segment', { name: ' Named ', filters: [NAMED] })
  t.like(made, { name: 'Named', filters: [NAMED] })
  t.regex(made.id, /^seg_/)
  const { segment: read } = await organization.data('get_segment', { segmentId: made.id })
  t.like(read, { ...made, subscriberCount: 2, problem: null })
  t.regex(read.countedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

  const { segment: renamed } = await organization.data('update_segment', { segmentId: made.id, name: 'All' })
  t.like(renamed, { name: 'All', filters: [NAMED] })
  t.true(renamed.updatedAt > made.updatedAt)
  await organization.data('update_segment', { segmentId: made.id, filters: [] })
  t.is((await organization.data('get_segment', { segmentId: made.id })).segment.subscriberCount, 3)

  const { segment: copy } = await organization.data('duplicate_segment', { segmentId: made.id })
  t.like(copy, { name: 'All (copy)', filters: [] })
  t.not(copy.id, made.id)
  const { segment: other } = await organization.data('duplicate_segment', {
    segmentId: made.id,
    newName: 'Other',
  })
  t.is(other.name, 'Other')

  const asked = await organization.call('delete_segment', { segmentId: made.id })
  t.is(asked.status, 428)
  t.like(asked.body.summary, { action: 'delete_segment', target: `the segment "All" (${made.id})` })
  t.is((await organization.confirmed('delete_segment', { segmentId: made.id })).status, 200)
  const gone = await organization.call('get_segment', { segmentId: made.id })
  t.deepEqual([gone.status, gone.body.code], [404, 'NOT_FOUND'])
})

test('a copy of the longest name still has a name that fits', async (t) => {
  const organization = await api.organization()
  const segmentId = await segment(organization, 'é'.repeat(200))
  const { segment: copy } = await organization.data('duplicate_segment', { segmentId })
  t.is([...copy.name].length, 200)
  t.true(copy.name.endsWith('é (copy)'))
})

test('list_segments pages newest first, by a part of the name, and a cursor belongs to its query', async (t) => {
  const organization = await api.organization()
  for (const name of ['One', 'Two 100%', 'Three', 'Two a', 'Two b']) await segment(organization, name)
  const pages: string[][] = []
  let cursor: string | null = null
  do {
    const page = await organization.data('list_segments', {
      query: 'two',
      limit: 2,
      ...(cursor !== null && { cursor }),
    })
    pages.push(page.segments.map(({ name }: { name: string }) => name))
    t.is(page.hasMore, page.nextCursor !== null)
    cursor = page.nextCursor
  } while (cursor !== null)
  t.deepEqual(pages, [['Two b', 'Two a'], ['Two 100%']])
  const percent = await organization.data('list_segments', { query: '0%' })
  t.is(percent.segments.length, 1)
  const first = await organization.data('list_segments', { limit: 1 })
  const foreign = await organization.call('list_segments', { query: 'two', cursor: first.nextCursor })
  t.deepEqual([foreign.status, foreign.body.details[0].path], [400, 'cursor'])
})

for (const [title, input, path] of [
  ['a blank name', { name: ' ', filters: [] }, 'name'],
  ['a name of 201 characters', { name: 'x'.repeat(201), filters: [] }, 'name'],
  ['a name of two lines', { name: 'a\nb', filters: [] }, 'name'],
  ['no filters', { name: 'a' }, 'filters'],
  ['an unknown field', { name: 'a', filters: [{ ...NAMED, field: 'nmae' }] }, 'filters[0].field'],
  [
    'a tag that does not exist',
    { name: 'a', filters: [{ field: 'tags', operator: 'has_any', value: ['no'] }] },
    'filters[0].value',
  ],
  [
    'what a run was started with',
    { name: 'a', filters: [{ ...NAMED, field: 'entry.a' }] },
    'filters[0].field',
  ],
] as const) {
  test(`create_segment refuses ${title}`, async (t) => {
    const organization = await api.organization()
    const answer = await organization.call('create_segment', input)
    t.deepEqual([answer.status, answer.body.code], [400, 'INVALID_INPUT'])
    t.is(answer.body.details[0].path, path)
  })
}

test("another organization's segment is a missing one, by id and in filters", async (t) => {
  const [mine, theirs] = [await api.organization(), await api.organization()]
  const foreign = await segment(theirs, 'Theirs')
  const own = await segment(mine, 'Mine')
  const unknown = encodeId('seg', newId())
  for (const [tool, input] of [
    ['get_segment', {}],
    ['update_segment', { name: 'x' }],
    ['duplicate_segment', {}],
    ['delete_segment', {}],
  ] as const) {
    const [a, b] = [
      await mine.call(tool, { ...input, segmentId: foreign }),
      await mine.call(tool, { ...input, segmentId: unknown }),
    ]
    t.is(a.status, 404)
    t.is(a.body.error.replace(foreign, ''), b.body.error.replace(unknown, ''))
  }
  for (const [tool, input] of [
    ['create_segment', { name: 'x' }],
    ['update_segment', { segmentId: own }],
  ] as const) {
    const [a, b] = [
      await mine.call(tool, { ...input, filters: [named(foreign)] }),
      await mine.call(tool, { ...input, filters: [named(unknown)] }),
    ]
    t.is(a.status, 400)
    t.is(a.body.error.replace(foreign, ''), b.body.error.replace(unknown, ''))
  }
  const { segments } = await mine.data('list_segments')
  t.is(segments.length, 1)
})

test('segments that lead back to themselves are refused, also over others and by two calls at once', async (t) => {
  const organization = await api.organization()
  const [a, b, c] = [
    await segment(organization, 'a'),
    await segment(organization, 'b'),
    await segment(organization, 'c'),
  ]
  await organization.data('update_segment', { segmentId: a, filters: [{ not: named(b) }] })
  await organization.data('update_segment', { segmentId: b, filters: [{ any: [NAMED, named(c)] }] })
  for (const [segmentId, to] of [
    [c, a],
    [c, b],
    [b, a],
    [a, a],
  ] as const) {
    const answer = await organization.call('update_segment', { segmentId, filters: [named(to)] })
    t.deepEqual([answer.status, answer.body.code], [400, 'INVALID_INPUT'])
    t.regex(answer.body.error, /must not lead back to themselves/)
  }
  for (let round = 0; round < 5; round++) {
    const [x, y] = [await segment(organization, 'x'), await segment(organization, 'y')]
    const answers = await Promise.all([
      organization.call('update_segment', { segmentId: x, filters: [named(y)] }),
      organization.call('update_segment', { segmentId: y, filters: [named(x)] }),
    ])
    t.deepEqual(answers.map(({ status }) => String(status)).toSorted(), ['200', '400'])
  }
})

test('segments nest five levels deep, counted from below and from above', async (t) => {
  const organization = await api.organization()
  const chain = [await segment(organization, 's1', NAMED)]
  for (let level = 2; level <= 5; level++) {
    chain.push(await segment(organization, `s${level}`, named(chain.at(-1) ?? '')))
  }
  const deepest = chain.at(-1) ?? ''
  await organization.data('add_subscriber', { email: 'a@example.com', name: 'Ann' })
  t.is((await organization.data('get_segment', { segmentId: deepest })).segment.subscriberCount, 1)
  const above = await organization.call('create_segment', { name: 's6', filters: [named(deepest)] })
  t.is(above.status, 400)
  t.regex(above.body.error, /more than 5 levels deep/)
  const extra = await segment(organization, 'extra', NAMED)
  const below = await organization.call('update_segment', { segmentId: chain[0], filters: [named(extra)] })
  t.is(below.status, 400)
  t.regex(below.body.error, /more than 5 levels deep/)
})

test('filters come to a thousand conditions at most with those of the segments they name', async (t) => {
  const organization = await api.organization()
  const hundred = Array.from({ length: 100 }, () => NAMED)
  const inner: string[] = []
  for (let index = 0; index < 11; index++) inner.push(await segment(organization, `i${index}`, NAMED))
  const outer = await segment(organization, 'outer', named(...inner))
  for (const segmentId of inner) await organization.data('update_segment', { segmentId, filters: hundred })
  const { segment: read } = await organization.data('get_segment', { segmentId: outer })
  t.is(read.subscriberCount, null)
  t.regex(read.problem, /more than 1000 conditions/)
  const more = await organization.call('create_segment', { name: 'more', filters: [named(...inner)] })
  t.deepEqual([more.status, more.body.details[0].path], [400, 'filters[0].value'])
})

test('segments that share segments at every level are judged and refused at once', async (t) => {
  const organization = await api.organization()
  let level = [await segment(organization, 'base')]
  for (let depth = 2; depth <= 3; depth++) {
    const below = level
    level = []
    for (let index = 0; index < 30; index++) {
      level.push(await segment(organization, `${depth}/${index}`, named(...below)))
    }
  }
  const top = await segment(organization, 'top', named(...level))
  const refused = await organization.call('create_segment', {
    name: 'over',
    filters: [named(top), named(top)],
  })
  t.deepEqual([refused.status, refused.body.details[0].path], [400, 'filters'])
})

test('a segment in use cannot be deleted, and the refusal names its users', async (t) => {
  const organization = await api.organization()
  const segmentId = await segment(organization, 'Used')
  const outer = await segment(organization, 'Outer', { not: { all: [named(segmentId)] } })
  const { workflow } = await organization.data('create_workflow', { name: 'Series' })
  const steps = [
    { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL', filters: [named(segmentId)] } },
    { id: 'tag', type: 'ADD_TAG', config: { tagNames: ['seen'] } },
  ]
  const edges = [{ from: 'start', to: 'tag' }]
  const draft = await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    steps,
    edges,
  })
  await organization.confirmed('publish_workflow', { workflowId: workflow.id })
  const campaignId = newId()
  await execute(
    api.services.orm.em.fork(),
    sql`insert into campaign (id, organization_id, kind, name, recipient_filters)
      values (${campaignId}, ${organization.id}, 'BROADCAST', 'Spring', ${JSON.stringify([named(segmentId)])}::jsonb)`,
  )
  const refused = async () => {
    const answer = await organization.call('delete_segment', { segmentId })
    if (answer.status === 428) return []
    t.deepEqual([answer.status, answer.body.code], [409, 'WRONG_STATE'])
    const { usedBy } = answer.body.details
    for (const { id, name } of usedBy) t.true(answer.body.error.includes(`"${name}" (${id})`))
    return usedBy.map(({ type, id }: { type: string; id: string }) => `${type} ${id}`)
  }
  const campaign = `campaign ${encodeId('cmp', campaignId)}`
  t.deepEqual(await refused(), [campaign, `segment ${outer}`, `workflow ${workflow.id}`])
  // The draft no longer uses the segment, but the published version does.
  await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: (await organization.data('get_workflow', { workflowId: workflow.id })).workflow
      .updatedAt,
    steps: [{ ...steps[0], config: { type: 'MANUAL' } }, steps[1]],
    edges,
  })
  t.deepEqual(await refused(), [campaign, `segment ${outer}`, `workflow ${workflow.id}`])
  await organization.confirmed('publish_workflow', { workflowId: workflow.id })
  await execute(
    api.services.orm.em.fork(),
    sql`update campaign set status = 'SENT' where organization_id = ${organization.id} and id = ${campaignId}`,
  )
  t.deepEqual(await refused(), [`segment ${outer}`])
  await organization.data('update_segment', { segmentId: outer, filters: [] })
  t.deepEqual(await refused(), [])
  t.is((await organization.confirmed('delete_segment', { segmentId })).status, 200)
  t.truthy(draft.workflow)
})

test('a segment whose filters name what is gone can be read and repaired', async (t) => {
  const organization = await api.organization()
  await organization.data('create_tag', { name: 'vip' })
  const segmentId = await segment(organization, 'Vips', {
    field: 'tags',
    operator: 'has_any',
    value: ['vip'],
  })
  await organization.confirmed('delete_tag', { name: 'vip' })
  const { segment: read } = await organization.data('get_segment', { segmentId })
  t.is(read.subscriberCount, null)
  t.regex(read.problem, /"vip"/)
  await organization.data('update_segment', { segmentId, filters: [] })
  t.is((await organization.data('get_segment', { segmentId })).segment.problem, null)
})
