import test from 'ava'
import { sql } from 'kysely'

import type { SuccessGoal } from '../schema/automation-goals.ts'
import type { Step } from '../schema/automation.ts'
import type { WorkflowStatistics } from '../schema/workflow-statistics.ts'
import { execute, rows } from '../src/database.ts'
import { getAutomation } from '../src/domain/automations/definition/records.ts'
import { updateStatus } from '../src/domain/automations/definition/status.ts'
import { noteTimedGoals } from '../src/domain/automations/goals/goal-filters.ts'
import { nudgeRuns } from '../src/domain/automations/runs/nudge.ts'
import { readStory } from '../src/domain/automations/runs/run-story.ts'
import { readStatistics } from '../src/domain/automations/runs/statistics.ts'
import { recordEvents } from '../src/domain/events.ts'
import { keepHouse } from '../src/domain/housekeeping.ts'
import { createTag, renameTag } from '../src/domain/subscribers/tag-records.ts'
import { addTags } from '../src/domain/subscribers/tags.ts'
import { encodeId } from '../src/ids.ts'
import { reconcile } from '../worker/reconciler.ts'
import { CLOSED, edges, emailStep, publish, runsOf, step, type Tenant } from './helpers/automation.ts'
import type { TestServices } from './helpers/database.ts'
import { chain, type EngineWorld, type Graph, openEngine, START } from './helpers/engine.ts'
import { eventually } from './helpers/eventually.ts'

let world: EngineWorld
let tenant: Tenant
let services: TestServices

test.before(async () => {
  world = await openEngine('engine-goals', { LOG_LEVEL: 'warn' }, { watching: true })
  ;({ tenant, services } = world)
})
test.after.always(() => world?.close())

const THANKS = step('thanks', 'ADD_TAG', { tagNames: ['thanked'] })
const LONG = step('pause', 'WAIT', { amount: 3, unit: 'DAYS' })
const EMAIL = emailStep('hello')
const NOBODY = [{ field: 'name', operator: 'equals' as const, value: 'Nobody' }]
const VIP = [{ field: 'tags', operator: 'has_any' as const, value: ['vip'] }]

function goal(members: Partial<SuccessGoal> = {}): SuccessGoal {
  const preset = {
    id: 'bought',
    name: 'Bought',
    windowDays: 30,
    countFrom: 'ENTRY' as const,
    exitOnReach: true,
  }
  return members.filters ? { ...preset, ...members } : { ...preset, event: 'SUBSCRIBER_PAYMENT', ...members }
}

function withGoals(steps: readonly Step[], ...successGoals: SuccessGoal[]): Graph {
  return { ...chain(steps), successGoals }
}

async function conversionsOf(automationId: string): Promise<string[]> {
  const found = await rows<{ text: string }>(
    services.orm.em.fork(),
    sql`select concat_ws(' ', goal_id, value, currency) as text from goal_conversion
      where organization_id = ${tenant.id} and automation_id = ${automationId} order by goal_id, run_id`,
  )
  return found.map(({ text }) => text)
}

async function watchesOf(automationId: string): Promise<number> {
  const found = await rows(
    services.orm.em.fork(),
    sql`select 1 from goal_watch watch join automation_run run on run.id = watch.run_id
      where run.automation_id = ${automationId}`,
  )
  return found.length
}

async function shiftWindows(automationId: string, days: number): Promise<void> {
  await execute(
    services.orm.em.fork(),
    sql`update goal_watch set opens_at = opens_at - make_interval(days => ${days}),
        expires_at = expires_at - make_interval(days => ${days})
      where run_id in (select id from automation_run where automation_id = ${automationId})`,
  )
}

test('a goal ends a run at once in any wait, counts once with its value, and strangers stay', async (t) => {
  const paid = goal({ where: [{ path: 'amount', operator: 'gte', value: 10 }], valuePath: 'amount' })
  const forever = { onTimeout: 'CONTINUE' as const }
  const waits: Step[] = [
    LONG,
    step('until', 'WAIT_UNTIL', { mode: 'EVENT', eventType: 'NEVER', scope: 'STEP', ...forever }),
    step('until', 'WAIT_UNTIL', { mode: 'CONDITION', filters: VIP, ...forever }),
    step('until', 'GOAL', { goalId: 'bought', ifUnmet: 'WAIT' }),
  ]
  for (const wait of waits) {
    const subscriberId = await tenant.subscribe()
    const id = await world.publish(withGoals([wait, THANKS], paid))
    await world.enter(id, subscriberId)
    await world.runWhen(id, { status: 'WAITING' })
    await world.happened(await tenant.subscribe(), 'SUBSCRIBER_PAYMENT', { amount: 50 })
    await world.happened(subscriberId, 'SUBSCRIBER_PAYMENT', { amount: 5 })
    t.is((await runsOf(services, tenant, id))[0]?.status, 'WAITING')
    await world.happened(subscriberId, 'SUBSCRIBER_PAYMENT', { amount: 50, currency: 'EUR' })
    await world.happened(subscriberId, 'SUBSCRIBER_PAYMENT', { amount: 70, currency: 'EUR' })
    const run = await world.endOf(id)
    t.deepEqual([run.status, run.exitReason, run.trail.at(-1)], ['COMPLETED', 'GOAL', `${wait.id} CANCELED`])
    t.deepEqual(await conversionsOf(id), ['bought 50.00 EUR'])
    t.is(await watchesOf(id), 0)
    const told = await world.eventsOf(subscriberId, 'WORKFLOW_COMPLETED')
    t.deepEqual(
      told.map(({ data }) => [data.exitReason, data.reason]),
      [['GOAL', 'bought']],
    )
  }
})

test('an event that comes while the goal is awaited sends nobody the email that is on its way', async (t) => {
  const subscriberId = await tenant.subscribe('goal@reader.example')
  // A step of the run itself can reach the goal too; no later step is executed then.
  const tagged = goal({ event: 'TAG_ADDED', where: [{ path: 'tag', operator: 'equals', value: 'thanked' }] })
  const run = await world.ended(withGoals([THANKS, EMAIL], tagged), subscriberId)
  t.deepEqual([run.status, run.exitReason, run.trail.at(-1)], ['COMPLETED', 'GOAL', 'thanks DONE→next'])
  t.deepEqual(await conversionsOf(run.automationId), ['bought'])
  t.is(world.sink.accepted().filter(({ recipient }) => recipient === 'goal@reader.example').length, 0)
})

test('an email that has gone stays SENT where its own event ends the run, by a goal or by a rule', async (t) => {
  const rules = [
    {
      id: 'sent',
      on: 'EMAIL_SENT',
      where: [{ path: 'stepId', operator: 'equals' as const, value: 'hello' }],
    },
  ]
  const graphs = [
    withGoals([EMAIL, THANKS], goal({ event: 'EMAIL_SENT', countFrom: 'FIRST_EMAIL' })),
    chain([EMAIL, THANKS], { exitRules: rules }),
  ]
  const ends = ['COMPLETED GOAL', 'CANCELED EXIT_RULE']
  for (const [index, graph] of graphs.entries()) {
    const run = await world.ended(graph, await tenant.subscribe())
    t.deepEqual(
      [...run.trail, `${run.status} ${run.exitReason}`],
      ['start ENTERED→next', 'hello SENT', ends[index]],
    )
  }
})

test('what came before the first step is found, but not what the run begins with, nor what happens in silence', async (t) => {
  const subscriberId = await tenant.subscribe()
  const id = await world.publish({
    ...chain([LONG]),
    steps: [step('start', 'TRIGGER', { type: 'EVENT', eventType: 'BEGUN' }), LONG],
    successGoals: [goal({ event: 'BEGUN' })],
  })
  await world.happened(subscriberId, 'BEGUN')
  await world.runWhen(id, { status: 'WAITING' })
  t.deepEqual(await conversionsOf(id), [])
  await tenant.within((call) =>
    recordEvents(call, [{ subscriberId, type: 'BEGUN' }], { triggerWorkflows: false }),
  )
  await reconcile(services, 0)
  t.deepEqual(await conversionsOf(id), [])
  // The event is usually recorded before the run's first turn; it counts either way.
  const early = await world.publish(withGoals([EMAIL], goal()))
  const person = await tenant.subscribe('early@reader.example')
  await world.enter(early, person)
  await world.happened(person, 'SUBSCRIBER_PAYMENT')
  const run = await world.endOf(early)
  t.deepEqual([run.status, run.exitReason], ['COMPLETED', 'GOAL'])
  t.deepEqual(await conversionsOf(early), ['bought'])
})

test('an event of a transaction that began before the first email has gone, and tells of it later, counts from there', async (t) => {
  const subscriberId = await tenant.subscribe()
  const id = await world.publish(withGoals([EMAIL, LONG], goal({ countFrom: 'FIRST_EMAIL' })))
  await tenant.within(async (call) => {
    await world.enter(id, subscriberId)
    await world.runWhen(id, { stepId: 'pause', status: 'WAITING' })
    await recordEvents(call, [{ subscriberId, type: 'SUBSCRIBER_PAYMENT' }])
  })
  t.is((await world.endOf(id)).exitReason, 'GOAL')
})

test('a goal by filters is reached when they come to hold, before an email too, and when time makes them', async (t) => {
  const subscriberId = await tenant.subscribe()
  const id = await world.publish(withGoals([LONG], goal({ filters: VIP })))
  await world.enter(id, subscriberId)
  await world.runWhen(id, { status: 'WAITING' })
  await tenant.within((call) => addTags(call, [subscriberId], ['vip']))
  t.is((await world.endOf(id)).exitReason, 'GOAL')
  t.deepEqual(await conversionsOf(id), ['bought'])
  // A subscriber who matches on entry has reached the goal.
  t.is((await world.ended(withGoals([EMAIL], goal({ filters: VIP })), subscriberId)).exitReason, 'GOAL')

  const late = await tenant.subscribe('late@reader.example')
  const closed = emailStep('hello', { sendWindow: CLOSED })
  const emailed = await world.publish(withGoals([closed], goal({ filters: VIP })))
  await world.enter(emailed, late)
  const run = await world.runWhen(emailed, { status: 'WAITING' })
  // Inserts the tag directly, so that nothing is informed of the change yet.
  const tag = (person: string, name: string) =>
    execute(
      services.orm.em.fork(),
      sql`with tag as (select id from tag where organization_id = ${tenant.id} and name = ${name})
        insert into subscriber_tag (organization_id, subscriber_id, tag_id) select ${tenant.id}, ${person}, id from tag`,
    )
  await tag(late, 'vip')
  await world.fastForward(emailed, late)
  const ended = await world.endOf(emailed)
  t.deepEqual([ended.exitReason, ended.trail.at(-1)], ['GOAL', 'hello CANCELED'])
  t.is(world.sink.accepted().filter(({ recipient }) => recipient === 'late@reader.example').length, 0)
  t.is(ended.id, run.id)

  // A change made by the run itself, or found at the end of a wait, ends the run before its next step.
  const own = await tenant.subscribe()
  const tags = [
    step('vip', 'ADD_TAG', { tagNames: ['vip'] }),
    step('more', 'ADD_TAG', { tagNames: ['more'] }),
  ]
  const changing = await world.ended(withGoals(tags, goal({ filters: VIP })), own)
  t.deepEqual([changing.exitReason, changing.trail.at(-1)], ['GOAL', 'vip DONE→next'])
  t.deepEqual(await conversionsOf(changing.automationId), ['bought'])
  const other = await tenant.subscribe()
  const waiting = await world.publish(withGoals([LONG, THANKS], goal({ filters: VIP })))
  await world.enter(waiting, other)
  await world.runWhen(waiting, { status: 'WAITING' })
  await tag(other, 'vip')
  await world.fastForward(waiting, other)
  const woken = await world.endOf(waiting)
  t.deepEqual([woken.exitReason, woken.trail.filter((line) => line.startsWith('thanks'))], ['GOAL', []])

  const known = [
    { field: 'createdAt', operator: 'more_than_ago' as const, value: { amount: 1, unit: 'HOURS' as const } },
  ]
  const timed = await world.publish(withGoals([LONG], goal({ filters: known })))
  const newcomer = await tenant.subscribe()
  await world.enter(timed, newcomer)
  await world.runWhen(timed, { status: 'WAITING' })
  await execute(
    services.orm.em.fork(),
    sql`update subscriber set created_at = created_at - interval '2 hours' where id = ${newcomer}`,
  )
  t.true((await tenant.within(noteTimedGoals)) > 0)
  t.is((await world.endOf(timed)).exitReason, 'GOAL')
})

test('a goal counts until its window closes, also after the run has ended, and not beyond', async (t) => {
  const quick = withGoals([THANKS], goal({ windowDays: 7 }))
  const subscriberId = await tenant.subscribe()
  const run = await world.ended(quick, subscriberId)
  t.is(run.exitReason, 'END')
  t.is(await watchesOf(run.automationId), 1)
  await shiftWindows(run.automationId, 6)
  await world.happened(subscriberId, 'SUBSCRIBER_PAYMENT')
  t.deepEqual(await conversionsOf(run.automationId), ['bought'])
  t.is((await runsOf(services, tenant, run.automationId))[0]?.exitReason, 'END')

  const tardy = await tenant.subscribe()
  const other = await world.ended(quick, tardy)
  await shiftWindows(other.automationId, 7)
  await world.happened(tardy, 'SUBSCRIBER_PAYMENT')
  await reconcile(services, 0)
  t.deepEqual(await conversionsOf(other.automationId), [])
  await keepHouse(services.orm.em.fork())
  t.is(await watchesOf(other.automationId), 0)
})

test('a tag keeps its name while a goal that names it counts, also after the run and its workflow have ended', async (t) => {
  await tenant.within((call) => createTag(call, 'loyal'))
  const loyal = [{ field: 'tags', operator: 'has_any' as const, value: ['loyal'] }]
  const run = await world.ended(withGoals([THANKS], goal({ filters: loyal })), await tenant.subscribe())
  await tenant.within((call) => updateStatus(call, encodeId('wf', run.automationId), 'ARCHIVED'))
  const rename = () => tenant.within((call) => renameTag(call, 'loyal', 'faithful'))
  await t.throwsAsync(rename, { message: /cannot be renamed while it is used by the workflow/ })
  await shiftWindows(run.automationId, 31)
  t.is((await rename()).name, 'faithful')
})

test('from the first email on: nothing counts before it has gone, and what comes with it does', async (t) => {
  const sent = goal({ countFrom: 'FIRST_EMAIL', exitOnReach: false, event: 'ORDERED' })
  const id = await world.publish(
    withGoals([LONG, EMAIL, step('after', 'WAIT', { amount: 2, unit: 'DAYS' })], sent),
  )
  const subscriberId = await tenant.subscribe()
  await world.enter(id, subscriberId)
  await world.runWhen(id, { status: 'WAITING', stepId: 'pause' })
  await world.happened(subscriberId, 'ORDERED')
  t.deepEqual(await conversionsOf(id), [])
  await world.fastForward(id, subscriberId)
  await world.runWhen(id, { status: 'WAITING', stepId: 'after' })
  t.deepEqual(await conversionsOf(id), [])
  await world.happened(subscriberId, 'ORDERED')
  t.deepEqual(await conversionsOf(id), ['bought'])
  t.is((await runsOf(services, tenant, id))[0]?.status, 'WAITING')

  // If no email is ever sent, there is no window to wait for.
  const silent = await tenant.subscribe()
  const waiting = step('goal', 'GOAL', { goalId: 'bought', ifUnmet: 'WAIT' })
  const never = await world.ended(withGoals([waiting, THANKS], sent), silent)
  t.deepEqual([never.exitReason, never.trail.at(-1)], ['EXPIRED', 'goal UNMET'])
  // Filters that match when the first email is sent count as reached.
  await tenant.within((call) => addTags(call, [silent], ['vip']))
  const vip = await world.ended(
    withGoals([EMAIL, THANKS], goal({ filters: VIP, countFrom: 'FIRST_EMAIL' })),
    silent,
  )
  t.is(vip.exitReason, 'GOAL')
  t.is(vip.trail.length, 2)
})

test('a GOAL step lets pass, waits or ends as it says; a run that stays goes on when its goal is reached', async (t) => {
  const stays = goal({ exitOnReach: false })
  const at = (ifUnmet: 'CONTINUE' | 'WAIT' | 'EXIT') =>
    withGoals([step('goal', 'GOAL', { goalId: 'bought', ifUnmet }), THANKS], stays)
  const passed = await world.ended(at('CONTINUE'), await tenant.subscribe())
  t.deepEqual(passed.trail.slice(1), ['goal UNMET→next', 'thanks DONE→next'])
  const left = await world.ended(at('EXIT'), await tenant.subscribe())
  t.deepEqual([left.status, left.exitReason, left.trail.at(-1)], ['COMPLETED', 'EXIT_STEP', 'goal UNMET'])

  const id = await world.publish(at('WAIT'))
  const subscriberId = await tenant.subscribe()
  await world.enter(id, subscriberId)
  await world.runWhen(id, { status: 'WAITING', waitKind: 'GOAL' })
  await world.happened(subscriberId, 'SUBSCRIBER_PAYMENT')
  t.deepEqual((await world.endOf(id)).trail.slice(1), ['goal REACHED→next', 'thanks DONE→next'])
  t.deepEqual(await conversionsOf(id), ['bought'])

  const impatient = await tenant.subscribe()
  await world.enter(id, impatient)
  await world.runWhen(id, { status: 'WAITING', waitKind: 'GOAL' })
  await world.fastForward(id, impatient)
  t.deepEqual((await world.endOf(id)).trail.slice(1), ['goal FAST_FORWARD→next', 'thanks DONE→next'])

  const tardy = await tenant.subscribe()
  await world.enter(id, tardy)
  const run = await world.runWhen(id, { status: 'WAITING', waitKind: 'GOAL' })
  await execute(
    services.orm.em.fork(),
    sql`update automation_run set entered_at = entered_at - interval '31 days', wake_at = now() where id = ${run.id}`,
  )
  await tenant.within((call) => nudgeRuns(call.em, tenant.id, [run.id]))
  const expired = await world.endOf(id)
  t.deepEqual(
    [expired.status, expired.exitReason, expired.trail.at(-1)],
    ['COMPLETED', 'EXPIRED', 'goal UNMET'],
  )
})

test('events that come at the same moment convert a run once for each goal, and end it once', async (t) => {
  const successGoals = [goal({ exitOnReach: false }), goal({ id: 'twice', exitOnReach: true })]
  const id = await world.publish({ ...chain([LONG]), successGoals })
  const people = await Promise.all(Array.from({ length: 8 }, () => tenant.subscribe()))
  for (const subscriberId of people) await world.enter(id, subscriberId)
  await eventually('all runs to wait', async () =>
    (await runsOf(services, tenant, id)).every(({ status }) => status === 'WAITING'),
  )
  await Promise.all(
    people.flatMap((subscriberId) => [
      world.happened(subscriberId, 'SUBSCRIBER_PAYMENT'),
      world.happened(subscriberId, 'SUBSCRIBER_PAYMENT'),
      tenant.within((call) =>
        recordEvents(
          call,
          people.map((each) => ({ subscriberId: each, type: 'SUBSCRIBER_PAYMENT' })),
        ),
      ),
    ]),
  )
  const runs = await runsOf(services, tenant, id)
  t.true(runs.every(({ status, exitReason }) => status === 'COMPLETED' && exitReason === 'GOAL'))
  t.is((await conversionsOf(id)).length, 2 * people.length)
  for (const subscriberId of people) {
    t.is((await world.eventsOf(subscriberId, 'WORKFLOW_COMPLETED')).length, 1)
  }
})

test('a holdout counts people by the variant they were given first, beside what they came to', async (t) => {
  const split = step('split', 'SPLIT', {
    variants: [
      { id: 'with', weight: 1 },
      { id: 'without', weight: 1 },
    ],
    sticky: true,
    holdoutVariantId: 'without',
  })
  const id = await world.publish({
    ...chain([split]),
    successGoals: [goal({ exitOnReach: false, valuePath: 'amount' })],
  })
  const people = await Promise.all(Array.from({ length: 6 }, () => tenant.subscribe()))
  for (const each of people) await world.enter(id, each)
  await eventually('all to be done', async () =>
    (await runsOf(services, tenant, id)).every(({ status }) => status === 'COMPLETED'),
  )
  // A person with two runs counts once.
  const [first = ''] = people
  await world.enter(id, first)
  await world.endOf(id)
  await world.happened(first, 'SUBSCRIBER_PAYMENT', { amount: 5, currency: 'EUR' })
  const { workflow, statistics } = await tenant.within(async (call) => {
    const found = await getAutomation(call, encodeId('wf', id))
    return { workflow: found, statistics: await readStatistics(call, found) }
  })
  t.is(workflow.id, encodeId('wf', id))
  t.like(statistics, { entries: 7, active: 0, completions: 7, exits: { END: 7 }, activeByStep: [] })
  t.deepEqual(statistics.goals, [
    {
      id: 'bought',
      name: 'Bought',
      conversions: 2,
      people: 1,
      rate: 0.2857,
      values: [{ currency: 'EUR', total: 10 }],
    },
  ])
  const [holdout] = statistics.holdouts
  const variants = holdout?.variants ?? []
  t.like(holdout, { stepId: 'split', goalId: 'bought', holdoutVariantId: 'without' })
  t.is(
    variants.reduce((sum, each) => sum + each.people, 0),
    6,
  )
  t.is(
    variants.reduce((sum, each) => sum + each.converted, 0),
    1,
  )
  t.deepEqual(
    variants.map(({ lift }) => lift?.verdict ?? null),
    ['TOO_FEW', null],
  )
})

test('a goal that counts from the first email counts from the split for who goes without', async (t) => {
  const variants = [
    { id: 'with', weight: 0 },
    { id: 'without', weight: 1 },
  ]
  const split = step('split', 'SPLIT', { variants, sticky: true, holdoutVariantId: 'without' })
  const published = (...successGoals: SuccessGoal[]) =>
    world.publish({
      steps: [START, split, EMAIL],
      edges: edges(['start', 'split'], ['split', 'with', EMAIL.id]),
      successGoals,
    })
  const subscriberId = await tenant.subscribe()
  const id = await published(goal({ countFrom: 'FIRST_EMAIL' }))
  await world.happened(subscriberId, 'SUBSCRIBER_PAYMENT')
  await world.enter(id, subscriberId)
  t.is((await world.endOf(id)).exitReason, 'END')
  t.deepEqual(await conversionsOf(id), [])
  await world.happened(subscriberId, 'SUBSCRIBER_PAYMENT')
  t.deepEqual(await conversionsOf(id), ['bought'])
  await tenant.within((call) => addTags(call, [subscriberId], ['vip']))
  const held = await published(goal({ countFrom: 'FIRST_EMAIL', filters: VIP }))
  await world.enter(held, subscriberId)
  t.is((await world.endOf(held)).exitReason, 'GOAL')
})

async function statisticsOf(automationId: string): Promise<WorkflowStatistics> {
  return await tenant.within(async (call) =>
    readStatistics(call, await getAutomation(call, encodeId('wf', automationId))),
  )
}

test('the statistics of a workflow tell where active runs stand and what came of its emails, of those of earlier versions too', async (t) => {
  const id = await world.publish(withGoals([EMAIL, LONG], goal()))
  const people = [await tenant.subscribe(), await tenant.subscribe()]
  for (const subscriberId of people) await world.enter(id, subscriberId)
  await eventually('both to wait', async () =>
    (await runsOf(services, tenant, id)).every(
      ({ stepId, status }) => stepId === 'pause' && status === 'WAITING',
    ),
  )
  const statistics = await statisticsOf(id)
  t.deepEqual(statistics.activeByStep, [{ stepId: 'pause', type: 'WAIT', name: null, runs: 2 }])
  const sent = {
    stepId: 'hello',
    subject: 'Hello',
    isCurrent: true,
    sent: 2,
    failed: 0,
    opens: { unique: 0, total: 0 },
  }
  t.like(statistics.emails, [sent])
  t.deepEqual(statistics.goals[0]?.values, [])
  t.deepEqual(statistics.holdouts, [])

  const { steps, edges: links } = chain([{ ...EMAIL, id: 'bye' }, LONG])
  await publish(services, tenant, { steps, edges: links }, { automationId: id, number: 2 })
  const later = await statisticsOf(id)
  t.is(later.emails.length, 2)
  t.like(later.emails, [
    { stepId: 'bye', isCurrent: true, sent: 0 },
    { ...sent, isCurrent: false },
  ])
})

test('the story of a run tells its emails, what it decided not to do, its conversions, and what it waits for', async (t) => {
  const skipped = step('never', 'ADD_TAG', { tagNames: ['never'] }, { conditions: NOBODY })
  const graph = withGoals(
    [EMAIL, skipped, step('goal', 'GOAL', { goalId: 'other', ifUnmet: 'WAIT' })],
    goal({ exitOnReach: false, valuePath: 'amount' }),
    goal({ id: 'other', event: 'OTHER' }),
  )
  const subscriberId = await tenant.subscribe()
  const id = await world.publish(graph)
  await world.enter(id, subscriberId)
  const { id: runId } = await world.runWhen(id, { status: 'WAITING', waitKind: 'GOAL' })
  await world.happened(subscriberId, 'SUBSCRIBER_PAYMENT', { amount: 7, currency: 'USD' })
  const story = await tenant.within((call) => readStory(call, encodeId('run', runId)))
  t.like(story.waiting, { for: 'GOAL', message: 'It waits for its goal other.' })
  t.is(story.waiting?.until, story.run.nextStepAt)
  t.like(story.emails, [{ stepId: 'hello', status: 'SENT', reason: null }])
  t.like(story.decisions, [{ stepId: 'never', action: 'STEP_SKIPPED', reason: 'CONDITIONS' }])
  t.like(story.conversions, [{ goalId: 'bought', value: 7, currency: 'USD' }])
  await world.happened(subscriberId, 'OTHER')
  await world.endOf(id)
  const over = await tenant.within((call) => readStory(call, encodeId('run', runId)))
  t.is(over.waiting, null)
  t.is(over.conversions.length, 2)
})
