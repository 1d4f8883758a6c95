import anyTest, { type TestFn } from 'ava'

import { type Answer, startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

const test = anyTest as TestFn<{ api: TestApi; own: TestOrganization }>

test.before(async (t) => {
  const api = await startApi({ TEMPORAL_TASK_QUEUE: `workflow-goals-${process.pid}` })
  t.context = { api, own: await api.organization() }
})
test.after.always((t) => t.context.api?.close())

const GRAPH = {
  steps: [
    { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
    { id: 'goal', type: 'GOAL', config: { goalId: 'bought', ifUnmet: 'WAIT' } },
  ],
  edges: [{ from: 'start', to: 'goal' }],
}
const BOUGHT = { id: 'bought', name: 'Bought', event: 'SUBSCRIBER_PAYMENT', windowDays: 14 }

type Draft = { id: string; updatedAt: string }

async function made(own: TestOrganization): Promise<Draft> {
  return (await own.data('create_workflow', { name: 'Goals' })).workflow
}

function configure(own: TestOrganization, { id, updatedAt }: Draft, change: object): Promise<Answer> {
  return own.call('configure_workflow_draft', {
    workflowId: id,
    expectedUpdatedAt: updatedAt,
    ...GRAPH,
    ...change,
  })
}

function faultsOf({ body }: Answer): string[] {
  const details: { stepId?: string; path: string }[] = body.details ?? []
  return details.map(({ stepId = '-', path }) => `${stepId} ${path}`)
}

test('goals are stored with their defaults, stay when they are left out, and go when none are sent', async (t) => {
  const { own } = t.context
  const draft = await made(own)
  const first = await configure(own, draft, { successGoals: [BOUGHT] })
  t.deepEqual(first.body.data.workflow.successGoals, [{ ...BOUGHT, countFrom: 'ENTRY', exitOnReach: true }])
  const { workflow } = (await configure(own, first.body.data.workflow, {})).body.data
  t.is(workflow.successGoals.length, 1)
  const updated = await own.data('update_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    definition: GRAPH,
  })
  t.is(updated.workflow.successGoals.length, 1)
  const without = await configure(own, updated.workflow, {
    steps: GRAPH.steps.slice(0, 1),
    edges: [],
    successGoals: [],
  })
  t.deepEqual(without.body.data.workflow.successGoals, [])
})

test('a GOAL step names a goal that there is, also where the goals are those that stay', async (t) => {
  const { own } = t.context
  const draft = await made(own)
  const none = await configure(own, draft, {})
  t.is(none.body.code, 'INVALID_INPUT')
  t.deepEqual(faultsOf(none), ['goal steps[1].config.goalId'])
  const saved = (await configure(own, draft, { successGoals: [BOUGHT] })).body.data.workflow
  const renamed = await configure(own, saved, { successGoals: [{ ...BOUGHT, id: 'paid' }] })
  t.deepEqual(faultsOf(renamed), ['goal steps[1].config.goalId'])
  const other = await own.call('update_workflow_draft', {
    workflowId: saved.id,
    expectedUpdatedAt: saved.updatedAt,
    definition: {
      ...GRAPH,
      steps: [GRAPH.steps[0], { id: 'goal', type: 'GOAL', config: { goalId: 'bougth' } }],
    },
  })
  t.deepEqual(faultsOf(other), ['goal definition.steps[1].config.goalId'])
  t.regex(other.body.error, /did you mean "bought"/)
})

test('what goals name is looked up with everything else, and another organization has none of it', async (t) => {
  const { api, own } = t.context
  const stranger = await api.organization()
  const foreign = await stranger.data('create_segment', {
    name: 'Theirs',
    filters: [{ field: 'name', operator: 'is_set' }],
  })
  const draft = await made(own)
  const filters = [
    { field: 'segment', operator: 'has_any', value: [foreign.segment.id] },
    { field: 'customFields.nothing', operator: 'is_set' },
    { field: 'tags', operator: 'has_any', value: [' blank '] },
    { field: 'campaign', operator: 'clicked', value: { stepId: 'nowhere' } },
  ]
  const faulty = await configure(own, draft, {
    successGoals: [
      { ...BOUGHT, where: [{}] },
      { id: 'f', name: 'F', filters },
    ],
  })
  t.is(faulty.body.code, 'INVALID_INPUT')
  t.true(faultsOf(faulty).includes('- successGoals[0].where[0].path'))
  t.true(faultsOf(faulty).includes('- successGoals[1].filters[3].value'))
  const named = await configure(own, draft, {
    successGoals: [BOUGHT, { id: 'f', name: 'F', filters: filters.slice(0, 3) }],
  })
  t.deepEqual(faultsOf(named).toSorted(), [
    '- successGoals[1].filters[0].value',
    '- successGoals[1].filters[1].field',
    '- successGoals[1].filters[2].value[0]',
  ])
})

test('publishing makes the tags of goals and refuses a window that no email opens; a segment in use stays', async (t) => {
  const { own } = t.context
  const draft = await made(own)
  const { segment } = await own.data('create_segment', {
    name: 'Buyers',
    filters: [{ field: 'name', operator: 'is_set' }],
  })
  const byTag = {
    id: 'f',
    name: 'F',
    filters: [{ field: 'tags', operator: 'has_any', value: ['Buyer of goals'] }],
  }
  const bySegment = {
    id: 's',
    name: 'S',
    filters: [{ field: 'segment', operator: 'has_any', value: [segment.id] }],
    countFrom: 'FIRST_EMAIL',
  }
  const { workflow } = (await configure(own, draft, { successGoals: [BOUGHT, byTag, bySegment] })).body.data
  const refused = await own.call('publish_workflow', { workflowId: workflow.id })
  t.is(refused.body.code, 'INVALID_INPUT')
  t.deepEqual(faultsOf(refused), ['- successGoals[2].countFrom'])
  t.is((await own.call('delete_segment', { segmentId: segment.id })).body.code, 'WRONG_STATE')
  const again = await configure(own, workflow, {
    successGoals: [BOUGHT, byTag, { ...bySegment, countFrom: 'ENTRY' }],
  })
  t.is((await own.confirmed('publish_workflow', { workflowId: again.body.data.workflow.id })).status, 200)
  const { tags } = await own.data('list_tags')
  t.true(tags.some(({ name }: { name: string }) => name === 'Buyer of goals'))
})

test('a simulation reaches goals by what happens on the way, and shows the other way too', async (t) => {
  const { own } = t.context
  const steps = [
    { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
    { id: 'goal', type: 'GOAL', config: { goalId: 'bought', ifUnmet: 'WAIT' } },
    { id: 'pay', type: 'CREATE_EVENT', config: { eventType: 'SUBSCRIBER_PAYMENT', amount: 20 } },
    { id: 'again', type: 'GOAL', config: { goalId: 'bought', ifUnmet: 'EXIT' } },
    { id: 'tag', type: 'ADD_TAG', config: { tagNames: ['left'] } },
    { id: 'never', type: 'ADD_TAG', config: { tagNames: ['never'] } },
  ]
  const edges = steps.slice(1).map(({ id }, index) => ({ from: steps[index]?.id, to: id }))
  const successGoals = [
    { ...BOUGHT, exitOnReach: false },
    { id: 'tagged', name: 'Tagged', filters: [{ field: 'tags', operator: 'has_any', value: ['left'] }] },
  ]
  const simulated = (change: object) =>
    own.call('simulate_workflow', {
      definition: { steps, edges, successGoals, ...change },
      sample: { email: 'goal@example.com' },
      from: '2027-03-01T00:00:00Z',
    })
  const { ways } = (await simulated({})).body.data
  const [first, second] = ways.map((way: { timeline: { stepId: string }[] }) =>
    way.timeline.map(({ stepId }) => stepId),
  )
  t.deepEqual(first, ['start', 'goal'])
  t.like(ways[0], { end: { exitReason: 'EXPIRED' } }, JSON.stringify(ways[0]))
  t.deepEqual(second?.slice(-4), ['goal', 'pay', 'again', 'tag'])
  t.like(ways[1], { end: { exitReason: 'GOAL' } }, JSON.stringify(ways[1]))
  const faulty = await simulated({ successGoals: [{ id: 'bought' }] })
  t.true(faultsOf(faulty).includes('- definition.successGoals[0].name'))
})

test('publishing warns of a GOAL step whose goal ends the run before it can go on', async (t) => {
  const { own } = t.context
  const after = { id: 'after', type: 'WAIT', config: { amount: 1, unit: 'DAYS' } }
  const warned = async (ifUnmet: string, exitOnReach: boolean, isFollowed: boolean): Promise<string[]> => {
    const [start, goal] = GRAPH.steps
    const { workflow } = (
      await configure(own, await made(own), {
        steps: [start, { ...goal, config: { goalId: 'bought', ifUnmet } }, ...(isFollowed ? [after] : [])],
        edges: [...GRAPH.edges, ...(isFollowed ? [{ from: 'goal', to: 'after' }] : [])],
        successGoals: [{ ...BOUGHT, exitOnReach }],
      })
    ).body.data
    const asked = await own.call('publish_workflow', { workflowId: workflow.id })
    return asked.body.summary.warnings
  }
  for (const ifUnmet of ['WAIT', 'EXIT']) {
    const [warning = '', ...others] = await warned(ifUnmet, true, true)
    t.regex(warning, /^Step goal: .*nobody goes on from here to the steps behind it; .*exitOnReach: false/)
    t.deepEqual(others, [])
    t.deepEqual(await warned(ifUnmet, true, false), [])
    t.deepEqual(await warned(ifUnmet, false, true), [])
  }
  t.regex((await warned('CONTINUE', true, true)).join(), /whoever comes here has not reached it and passes/)
  t.deepEqual(await warned('CONTINUE', false, true), [])
})
