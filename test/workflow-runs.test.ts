import test from 'ava'

import { startLanes, type Lanes } from '../src/delivery/lanes.ts'
import { encodeId, newId } from '../src/ids.ts'
import { type Engine, startEngine } from '../worker/workers.ts'
import { type Answer, startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { CLOSED } from './helpers/automation.ts'
import { eventually } from './helpers/eventually.ts'
import { type Sink, startSmtpSink } from './helpers/smtp-sink.ts'
import { fastForward, publishWorkflow } from './helpers/workflow.ts'

let api: TestApi
let engine: Engine
let lanes: Lanes
let sink: Sink
let own: TestOrganization
let other: TestOrganization

test.before(async () => {
  sink = await startSmtpSink()
  api = await startApi({ TEMPORAL_TASK_QUEUE: `runs-${process.pid}`, RELAY_URL: sink.url })
  lanes = await startLanes(api.services, { workerName: 'test' })
  engine = await startEngine(api.services)
  await engine.ready
  own = await api.organization()
  other = await api.organization()
})
test.after.always(async () => {
  await engine?.stop()
  await lanes?.stop()
  await api?.close()
  await sink?.close()
})

type Step = { id: string; type: string; config: object; name?: string }
type Run = {
  id: string
  status: string
  exitReason: string | null
  held: boolean
  currentStep: { id: string } | null
  nextStep: { id: string } | null
  nextStepAt: string | null
}
type Visit = { step: { id: string }; result: string; port: string | null; endedAt: string | null }

const MANUAL: Step = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
const LONG: Step = { id: 'pause', type: 'WAIT', name: 'A rest', config: { amount: 3, unit: 'DAYS' } }
const TAG: Step = { id: 'tag', type: 'ADD_TAG', config: { tagNames: ['Later'] } }

/** Creates a draft with the steps in sequence. `more` are additional edges. */
async function draft(
  steps: Step[],
  more: object[] = [],
  settings: object = {},
  organization = own,
): Promise<string> {
  const { workflow } = await organization.data('create_workflow', { name: 'Series' })
  const along = steps.slice(1).map(({ id }, index) => ({ from: steps[index]?.id, to: id }))
  const edges = [...along, ...more]
  const input = { workflowId: workflow.id, expectedUpdatedAt: workflow.updatedAt, steps, edges, settings }
  await organization.data('configure_workflow_draft', input)
  return workflow.id
}

async function publish(workflowId: string, organization = own): Promise<string> {
  const answer = await organization.confirmed('publish_workflow', { workflowId })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return workflowId
}

async function published(...parameters: Parameters<typeof draft>): Promise<string> {
  return await publish(await draft(...parameters), parameters[3])
}

let people = 0
async function subscribe(organization = own): Promise<{ id: string; email: string }> {
  people += 1
  const { subscriber } = await organization.data('add_subscriber', { email: `p${people}@reader.example` })
  return subscriber
}

async function runsOf(subscriberId: string, workflowId: string, organization = own): Promise<Run[]> {
  return (await organization.data('get_subscriber_workflow_runs', { subscriberId, workflowId })).runs
}

/** Waits until a subscriber's newest run in a workflow has this status and returns it. */
async function runWhen(
  subscriberId: string,
  workflowId: string,
  status: string,
  organization = own,
): Promise<Run> {
  return await eventually(`a run that is ${status}`, async () =>
    (await runsOf(subscriberId, workflowId, organization)).find((run) => run.status === status),
  )
}

async function trail(runId: string, organization = own): Promise<string[]> {
  const { timeline }: { timeline: Visit[] } = await organization.data('get_workflow_run', { runId })
  return timeline.map(({ step, result, port }) => `${step.id} ${result}${port === null ? '' : `→${port}`}`)
}

/** Creates a subscriber who enters a workflow. */
async function entered(...parameters: Parameters<typeof published>) {
  const workflowId = await published(...parameters)
  const { id: subscriberId, email } = await subscribe()
  await own.data('add_subscriber_to_workflow', { workflowId, subscriberId })
  return { workflowId, subscriberId, email }
}

/** Creates a subscriber who waits in the first wait of a workflow. */
async function parked(steps: Step[] = [MANUAL, LONG, TAG], more: object[] = [], settings: object = {}) {
  const { workflowId, subscriberId, email } = await entered(steps, more, settings)
  const run = await runWhen(subscriberId, workflowId, 'WAITING')
  return { workflowId, subscriberId, email, run }
}

/** Returns a refusal without the id that was sent; the rest must not differ between organizations. */
function refusal({ status, body }: Answer, id: string): object {
  return { status, code: body.code, message: String(body.error).replace(id, '') }
}

test('a run is entered by hand, waits, and shows where it stands and what comes next', async (t) => {
  const workflowId = await published([MANUAL, LONG, TAG])
  const { id: subscriberId } = await subscribe()
  const { run } = await own.data('add_subscriber_to_workflow', { workflowId, subscriberId })
  t.like(run, { subscriberId, workflow: { id: workflowId }, version: { number: 1 }, endedAt: null })
  const waiting = await runWhen(subscriberId, workflowId, 'WAITING')
  t.like(waiting, {
    id: run.id,
    currentStep: { id: 'pause', name: 'A rest' },
    nextStep: { id: 'tag' },
    held: false,
  })
  t.true(Date.parse(waiting.nextStepAt ?? '') > Date.now() + 2 * 86_400_000)
  const { timeline } = await own.data('get_workflow_run', { runId: run.id })
  t.deepEqual(
    timeline.map(({ result }: Visit) => result),
    ['ENTERED', 'WAITING'],
  )
  t.is(timeline[1].endedAt, null)
  t.is(timeline[1].details.until, waiting.nextStepAt)
})

test('a wait is WAITING until it ends, and then says how it ended', async (t) => {
  const hours = { timeout: { amount: 1, unit: 'HOURS' } }
  const forPayment = { mode: 'EVENT', eventType: 'PAID', ...hours }
  const steps = [MANUAL, LONG, { id: 'paid', type: 'WAIT_UNTIL', config: forPayment }, TAG]
  const { workflowId, subscriberId, run } = await parked(steps)
  const ids = { workflowId, subscriberId }
  await fastForward(own, { ...ids, expectedStepId: 'pause' })
  t.deepEqual(await trail(run.id), ['start ENTERED→next', 'pause FAST_FORWARD→next', 'paid WAITING'])
  const { timeline } = await own.data('get_workflow_run', { runId: run.id })
  t.regex(timeline[1].details.fastForwardedAt, /T\d\d:\d\d:\d\d\.\d{3}Z$/)
  await own.data('remove_subscriber_from_workflow', ids)
  t.is((await trail(run.id)).at(-1), 'paid CANCELED')
})

test('a workflow may have any name: in what Temporal shows it is cut, even in the middle of a character', async (t) => {
  const organization = await api.organization()
  const steps = [{ id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }]
  const workflowId = await publishWorkflow(organization, steps, { name: `${'x'.repeat(119)}😀😀` })
  const { subscriber } = await organization.data('add_subscriber', { email: 'ada@reader.example' })
  const entered = await organization.call('add_subscriber_to_workflow', {
    workflowId,
    subscriberId: subscriber.id,
  })
  t.is(entered.status, 200, JSON.stringify(entered.body))
})

test('who is named by email enters as well; both, neither and unknown people are refused', async (t) => {
  const workflowId = await published([MANUAL, LONG])
  const { id: subscriberId, email } = await subscribe()
  const tools = [
    'add_subscriber_to_workflow',
    'remove_subscriber_from_workflow',
    'fast_forward_workflow_subscriber',
    'get_subscriber_workflow_runs',
  ]
  for (const tool of tools) {
    const both = await own.call(tool, { workflowId, subscriberId, email })
    t.is(both.body.code, 'INVALID_INPUT', tool)
    t.is((await own.call(tool, { workflowId })).body.code, 'INVALID_INPUT', tool)
    t.is((await own.call(tool, { workflowId, email: 'nobody@reader.example' })).body.code, 'NOT_FOUND', tool)
  }
  const { run } = await own.data('add_subscriber_to_workflow', { workflowId, email: email.toUpperCase() })
  t.is(run.subscriberId, subscriberId)
  t.is((await own.data('get_subscriber_workflow_runs', { email })).runs[0].id, run.id)
})

test('nobody enters a workflow that is not published, paused or archived, or twice at a time', async (t) => {
  const { id: subscriberId } = await subscribe()
  const workflowId = await draft([MANUAL, LONG])
  const enter = () => own.call('add_subscriber_to_workflow', { workflowId, subscriberId })
  const refused = async (word: RegExp) => {
    const { status, body } = await enter()
    t.is(status, 409)
    t.is(body.code, 'WRONG_STATE')
    t.regex(JSON.stringify(body), word)
  }
  await refused(/publish_workflow/)
  await publish(workflowId)
  await own.data('update_workflow_status', { workflowId, status: 'PAUSED' })
  await refused(/update_workflow_status/)
  t.is((await own.confirmed('update_workflow_status', { workflowId, status: 'ACTIVE' })).status, 200)
  t.is((await enter()).status, 200)
  await refused(/ALREADY_ACTIVE/)
  t.is((await own.confirmed('update_workflow_status', { workflowId, status: 'ARCHIVED' })).status, 200)
  await refused(/ARCHIVED/)
  t.like(await runWhen(subscriberId, workflowId, 'CANCELED'), { exitReason: 'ARCHIVED' })
})

test('filters of the trigger, and steps that the version does not have, keep somebody out', async (t) => {
  const filters = [{ field: 'tags', operator: 'has_any', value: ['member'] }]
  const workflowId = await published([
    { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL', filters } },
    LONG,
    TAG,
  ])
  const { id: subscriberId } = await subscribe()
  const ids = { workflowId, subscriberId }
  const out = await own.call('add_subscriber_to_workflow', ids)
  t.like(out.body, { code: 'WRONG_STATE', details: { reason: 'FILTERS' } })
  const nowhere = await own.call('add_subscriber_to_workflow', { ...ids, startStepId: 'nowhere' })
  t.is(nowhere.body.code, 'INVALID_INPUT')
  t.deepEqual(await runsOf(subscriberId, workflowId), [])
  await own.data('bulk_add_tags', { subscriberIds: [subscriberId], tagNames: ['Member'] })
  t.is((await own.call('add_subscriber_to_workflow', { ...ids, startStepId: 'tag' })).status, 200)
  const run = await runWhen(subscriberId, workflowId, 'COMPLETED')
  t.deepEqual(await trail(run.id), ['tag DONE→next'])
})

test('removing ends the runs of one person, also where a workflow is paused; again it is no error', async (t) => {
  const { workflowId, subscriberId, email, run } = await parked()
  await own.data('update_workflow_status', { workflowId, status: 'PAUSED' })
  const { runs } = await own.data('remove_subscriber_from_workflow', { workflowId, email, reason: 'asked' })
  t.like(runs[0], { id: run.id, status: 'CANCELED', exitReason: 'MANUAL', nextStep: null, nextStepAt: null })
  t.deepEqual(await own.data('remove_subscriber_from_workflow', { workflowId, subscriberId }), { runs: [] })
  t.deepEqual(await trail(run.id), ['start ENTERED→next', 'pause CANCELED'])
})

test('a fast-forward answers from where and to where the run went, and a repeat answers the same', async (t) => {
  const second = { id: 'second', type: 'WAIT', config: { amount: 2, unit: 'DAYS' } }
  const { workflowId, subscriberId, email, run } = await parked([MANUAL, LONG, second, TAG])
  const expected = { workflowId, subscriberId, expectedStepId: 'pause' }
  const moved = await fastForward(own, expected)
  t.like(moved, {
    run: { id: run.id, status: 'WAITING' },
    fromStep: { id: 'pause' },
    toStep: { id: 'second' },
  })
  const again = await fastForward(own, expected)
  t.deepEqual([again.fromStep, again.toStep], [moved.fromStep, moved.toStep])
  const wrong = await own.call('fast_forward_workflow_subscriber', { ...expected, expectedStepId: 'tag' })
  t.like(wrong.body, { code: 'WRONG_STATE', details: { waitingIn: ['second'] } })
  const last = { workflowId, email, runId: run.id, expectedStepId: 'second' }
  const ended = await fastForward(own, last)
  t.like(ended, { run: { status: 'COMPLETED', exitReason: 'END' }, fromStep: { id: 'second' }, toStep: null })
  const over = await own.call('fast_forward_workflow_subscriber', { workflowId, subscriberId })
  t.is(over.status, 409)
  t.is(over.body.code, 'WRONG_STATE')
  t.deepEqual(await trail(run.id), [
    'start ENTERED→next',
    'pause FAST_FORWARD→next',
    'second FAST_FORWARD→next',
    'tag DONE→next',
  ])
})

test('a repeat is answered also after the fast-forward of an email that waited for its sending hours', async (t) => {
  const hello = { subject: 'Hello', content: 'Hi', contentType: 'MARKDOWN' }
  const { workflowId, subscriberId, run } = await parked(
    [MANUAL, { id: 'hello', type: 'EMAIL', config: hello }, LONG],
    [],
    { sendWindow: CLOSED },
  )
  const expected = { workflowId, subscriberId, expectedStepId: 'hello' }
  t.like(await fastForward(own, expected), { run: { id: run.id }, fromStep: { id: 'hello' } })
  t.like(await fastForward(own, expected), { run: { id: run.id }, fromStep: { id: 'hello' } })
  await eventually('the email to be sent', async () =>
    (await trail(run.id)).includes('hello SENT→next') ? true : null,
  )
  t.like(await fastForward(own, expected), { fromStep: { id: 'hello' }, toStep: { id: 'pause' } })
})

test('nothing is fast-forwarded in a paused or archived workflow, or without a waiting run', async (t) => {
  const { workflowId, subscriberId, run } = await parked()
  const stranger = await subscribe()
  const forward = async (id = subscriberId, more: object = {}) =>
    (await own.call('fast_forward_workflow_subscriber', { workflowId, subscriberId: id, ...more })).body
  t.is((await forward(stranger.id)).code, 'WRONG_STATE')
  t.is((await forward(stranger.id, { runId: run.id })).code, 'WRONG_STATE')
  await own.data('update_workflow_status', { workflowId, status: 'PAUSED' })
  t.regex(JSON.stringify(await forward()), /PAUSED/)
  t.is((await runsOf(subscriberId, workflowId))[0]?.status, 'WAITING')
  await own.confirmed('update_workflow_status', { workflowId, status: 'ARCHIVED' })
  t.is((await forward()).code, 'WRONG_STATE')
  t.deepEqual(await trail(run.id), ['start ENTERED→next', 'pause CANCELED'])
})

test('where several runs wait, a fast-forward must say which', async (t) => {
  const workflowId = await published([MANUAL, LONG], [], { reEntry: { mode: 'EVERY_TIME' } })
  const { id: subscriberId } = await subscribe()
  const ids = { workflowId, subscriberId }
  for (let count = 0; count < 2; count++) await own.data('add_subscriber_to_workflow', ids)
  const runs = await eventually('both to wait', async () => {
    const found = await runsOf(subscriberId, workflowId)
    return found.every(({ status }) => status === 'WAITING') && found
  })
  const [newest, oldest] = runs.map(({ id }) => id)
  const unclear = await own.call('fast_forward_workflow_subscriber', ids)
  t.deepEqual(unclear.body.details, { runs: [oldest, newest] })
  const { run } = await fastForward(own, { ...ids, runId: oldest, expectedStepId: 'pause' })
  t.is(run.id, oldest)
  t.is((await runsOf(subscriberId, workflowId)).find(({ id }) => id === newest)?.status, 'WAITING')
})

test("another organization's ids answer as ids that do not exist", async (t) => {
  const { workflowId, subscriberId, run } = await parked()
  const foreigner = await subscribe(other)
  const workflow = (id: string) => ({ workflowId: id, subscriberId: foreigner.id })
  const cases: [string, (id: string) => object, string, 'wf' | 'sub' | 'run'][] = [
    ['get_workflow_run', (runId) => ({ runId }), run.id, 'run'],
    ['get_subscriber_workflow_runs', (id) => ({ subscriberId: id }), subscriberId, 'sub'],
    ['get_subscriber_workflow_runs', workflow, workflowId, 'wf'],
    ['add_subscriber_to_workflow', workflow, workflowId, 'wf'],
    ['remove_subscriber_from_workflow', workflow, workflowId, 'wf'],
    ['fast_forward_workflow_subscriber', workflow, workflowId, 'wf'],
  ]
  const ownWorkflow = await published([MANUAL, LONG], [], {}, other)
  for (const [tool] of cases.slice(3)) {
    cases.push([tool, (id) => ({ workflowId: ownWorkflow, subscriberId: id }), subscriberId, 'sub'])
  }
  for (const [tool, input, foreign, prefix] of cases) {
    const absent = encodeId(prefix, newId())
    const answer = await other.call(tool, input(foreign))
    t.is(answer.status, 404, tool)
    t.deepEqual(refusal(answer, foreign), refusal(await other.call(tool, input(absent)), absent), tool)
  }
  t.is((await runsOf(subscriberId, workflowId))[0]?.status, 'WAITING')
  t.is((await own.call('get_workflow_run', { runId: 'run_nonsense' })).status, 404)
})

test('somebody new enters by SUBSCRIBED, goes through a branch and gets the email', async (t) => {
  const vip = [{ field: 'tags', operator: 'has_any', value: ['vip'] }]
  const hello = { subject: 'Hello', content: 'Hi {{name}}', contentType: 'MARKDOWN' }
  const organization = await api.organization()
  const { workflow } = await organization.data('create_workflow', { name: 'Welcome' })
  await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    steps: [
      { id: 'start', type: 'TRIGGER', config: { type: 'SUBSCRIBED' } },
      { id: 'fork', type: 'BRANCH', config: { paths: [{ id: 'vip', filters: vip }] } },
      { id: 'hello', type: 'EMAIL', config: hello },
      { id: 'out', type: 'EXIT', config: { reason: 'no VIP' } },
    ],
    edges: [
      { from: 'start', to: 'fork' },
      { from: 'fork', to: 'hello', port: 'vip' },
      { from: 'fork', to: 'out', port: 'else' },
    ],
  })
  await publish(workflow.id, organization)
  const email = 'vip@reader.example'
  const { subscriber } = await organization.data('add_subscriber', { email, name: 'Ada', tags: ['VIP'] })
  const other = await subscribe(organization)
  const first = await runWhen(subscriber.id, workflow.id, 'COMPLETED', organization)
  const second = await runWhen(other.id, workflow.id, 'COMPLETED', organization)
  const trails = [await trail(first.id, organization), await trail(second.id, organization)]
  t.deepEqual(trails, [
    ['start ENTERED→next', 'fork DECIDED→vip', 'hello SENT→next'],
    ['start ENTERED→next', 'fork DECIDED→else', 'out EXIT'],
  ])
  t.is(second.exitReason, 'EXIT_STEP')
  t.is(sink.accepted().filter(({ recipient }) => recipient === email).length, 1)
})

test('TAG_REMOVED lets in who loses a tag, in any letter case, once for each real change', async (t) => {
  const trigger = { type: 'TAG_REMOVED', tagNames: ['Trial'] }
  const workflowId = await published([{ id: 'start', type: 'TRIGGER', config: trigger }, TAG])
  const { id: subscriberId } = await subscribe()
  const tags = { subscriberIds: [subscriberId], tagNames: ['trial'] }
  await own.data('bulk_add_tags', tags)
  t.deepEqual(await runsOf(subscriberId, workflowId), [])
  await own.data('bulk_remove_tags', tags)
  await own.data('bulk_remove_tags', tags)
  const run = await runWhen(subscriberId, workflowId, 'COMPLETED')
  t.deepEqual(await trail(run.id), ['start ENTERED→next', 'tag DONE→next'])
  t.is((await runsOf(subscriberId, workflowId)).length, 1)
})

test('WAIT_UNTIL a DATE waits until then, and not at all for a date that is past', async (t) => {
  const until = (id: string, date: string) => ({
    id,
    type: 'WAIT_UNTIL',
    config: { mode: 'DATE', date, timezone: 'UTC' },
  })
  const year = new Date().getUTCFullYear() + 2
  const { workflowId, subscriberId, run } = await parked([
    MANUAL,
    until('past', '2020-02-29'),
    until('soon', new Date(Date.now() + 1_500).toISOString()),
    until('future', `${year}-02-01T09:00:00`),
    TAG,
  ])
  const future = await eventually('the wait for the far date', async () =>
    (await runsOf(subscriberId, workflowId)).find(({ currentStep }) => currentStep?.id === 'future'),
  )
  t.is(future.nextStepAt, `${year}-02-01T09:00:00.000Z`)
  t.deepEqual(await trail(run.id), [
    'start ENTERED→next',
    'past ELAPSED→next',
    'soon ELAPSED→next',
    'future WAITING',
  ])
  const { toStep } = await fastForward(own, { workflowId, subscriberId, expectedStepId: 'future' })
  t.is(toStep, null)
})

test('onTimeout EXIT ends a run when its time is over; the event lets it go on', async (t) => {
  const paid = (onTimeout: string, seconds: number) => ({
    id: 'paid',
    type: 'WAIT_UNTIL',
    config: {
      mode: 'EVENT',
      eventType: 'SUBSCRIBER_PAYMENT',
      timeout: { amount: seconds, unit: 'SECONDS' },
      onTimeout,
    },
  })
  const late = await entered([MANUAL, paid('EXIT', 1), TAG])
  const expired = await runWhen(late.subscriberId, late.workflowId, 'COMPLETED')
  t.is(expired.exitReason, 'EXPIRED')
  t.deepEqual(await trail(expired.id), ['start ENTERED→next', 'paid TIMEOUT'])
  const onward = await entered([MANUAL, paid('CONTINUE', 1), TAG])
  const went = await runWhen(onward.subscriberId, onward.workflowId, 'COMPLETED')
  t.deepEqual((await trail(went.id)).slice(1), ['paid TIMEOUT→timeout', 'tag DONE→next'])
})

test('runs of a subscriber come newest first, in pages, by workflow and by status', async (t) => {
  const { id: subscriberId } = await subscribe()
  const workflows: string[] = []
  for (let count = 0; count < 3; count++) workflows.push(await published([MANUAL, LONG]))
  for (const workflowId of workflows)
    await own.data('add_subscriber_to_workflow', { workflowId, subscriberId })
  await own.data('remove_subscriber_from_workflow', { workflowId: workflows[0], subscriberId })
  const list = (more: object) => own.data('get_subscriber_workflow_runs', { subscriberId, ...more })
  const ids = (page: { runs: { workflow: { id: string } }[] }) => page.runs.map(({ workflow }) => workflow.id)
  t.deepEqual(ids(await list({ status: 'CANCELED' })), [workflows[0]])
  t.deepEqual(ids(await list({ workflowId: workflows[1] })), [workflows[1]])
  const first = await list({ limit: 1 })
  t.true(first.hasMore)
  const mine = await list({ limit: 50 })
  t.is(ids(mine)[0], ids(first)[0])
  t.deepEqual(
    ids(mine).filter((id) => workflows.includes(id)),
    workflows.toReversed(),
  )
  const stolen = await own.call('get_subscriber_workflow_runs', {
    subscriberId: (await subscribe()).id,
    cursor: first.nextCursor,
  })
  t.is(stolen.body.code, 'INVALID_INPUT')
})

test('a run stays on the version that it entered on, whatever is published meanwhile', async (t) => {
  const { workflowId, subscriberId, run } = await parked()
  const { workflow } = await own.data('get_workflow', { workflowId })
  const instead: Step = { ...TAG, config: { tagNames: ['Of the second version'] } }
  await own.data('configure_workflow_draft', {
    workflowId,
    expectedUpdatedAt: workflow.updatedAt,
    steps: [MANUAL, instead],
    edges: [{ from: 'start', to: 'tag' }],
  })
  await publish(workflowId)
  await fastForward(own, { workflowId, subscriberId, expectedStepId: 'pause' })
  const ended = await runWhen(subscriberId, workflowId, 'COMPLETED')
  t.like(ended, { id: run.id, version: { number: 1 } })
  const tagsOf = async () => (await own.data('get_subscriber', { subscriberId })).subscriber.tags
  t.deepEqual(await tagsOf(), ['Later'])
  await own.data('add_subscriber_to_workflow', { workflowId, subscriberId })
  const second = await eventually('the second run', async () =>
    (await runsOf(subscriberId, workflowId)).find(
      (each) => each.id !== run.id && each.status === 'COMPLETED',
    ),
  )
  t.like(second, { version: { number: 2 } })
  t.deepEqual((await tagsOf()).toSorted(), ['Later', 'Of the second version'])
})

test('a token without the permission for workflows moves nobody', async (t) => {
  const { workflowId, subscriberId, run } = await parked()
  const token = await own.tokenWith(['subscribers'])
  for (const [tool, body] of [
    ['fast_forward_workflow_subscriber', { workflowId, subscriberId }],
    ['remove_subscriber_from_workflow', { workflowId, subscriberId }],
    ['get_workflow_run', { runId: run.id }],
  ] as const) {
    const answer = await api.request('POST', `/api/v2/tools/${tool}`, { token, body })
    t.is(answer.status, 403, tool)
  }
  t.is((await runsOf(subscriberId, workflowId))[0]?.status, 'WAITING')
})
