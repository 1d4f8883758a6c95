import test from 'ava'
import { sql } from 'kysely'

import type { TriggerConfig } from '../schema/automation-triggers.ts'
import type { Step } from '../schema/automation.ts'
import { CONFLICT_STRATEGIES } from '../schema/workflow-group.ts'
import { rows } from '../src/database.ts'
import { decodeId, encodeId } from '../src/ids.ts'
import { runWorkflowId } from '../temporal/contract.ts'
import { startSegmentWatch } from '../worker/segment-watch.ts'
import type { TestOrganization } from './helpers/api.ts'
import { CLOSED, edges, emailStep, step } from './helpers/automation.ts'
import { type Endpoints, startEndpoints } from './helpers/endpoint.ts'
import { eventually } from './helpers/eventually.ts'
import { alongPorts, missingKinds } from './helpers/every-step.ts'
import { GROUP_CASES, type GroupCase } from './helpers/group-cases.ts'
import { type Stack, startStack } from './helpers/stack.ts'
import { fastForward, publishWorkflow } from './helpers/workflow.ts'

let stack: Stack
let endpoints: Endpoints
let watch: { stop(): Promise<void> }

test.before(async () => {
  endpoints = await startEndpoints()
  stack = await startStack({ queue: 'group-steps', env: { ...endpoints.allow, LOG_LEVEL: 'error' } })
  endpoints.answer('/unanswered', (response) => void unanswered.push(() => response.end()))
  watch = startSegmentWatch(stack.api.services)
})
test.after.always(async () => {
  await watch?.stop()
  await stack?.close()
  endpoints?.close()
})

/** An organization with one group: `holder` is the workflow with all ways; `newcomer` is entered while it runs. */
type Scene = { organization: TestOrganization; holder: string; newcomer: string; ways: Record<string, Way> }

/** One way through the holder, taken by one person. */
type Way = {
  /** Its steps. The run waits in the first one; with `BY ITSELF`, the last one lets the person into the newcomer. */
  steps: Step[]
  claims: 'WHILE IT WAITS' | 'BY ITSELF'
  /** Ends the wait. Without it, the wait is fast-forwarded. */
  end?: (organization: TestOrganization, email: string) => Promise<unknown>
  /** The visits of a run that keeps its place, and of one that loses it. */
  kept: string[]
  lost: string[]
}

const LONG = { amount: 3, unit: 'DAYS' } as const
const REQUEST = { method: 'POST', timeoutSeconds: 60, retries: 0 } as const
const VIP = [{ field: 'tags', operator: 'has_any' as const, value: ['vip'] }]

const happens = ({ token }: TestOrganization, email: string, eventType: string) =>
  stack.api.request('POST', '/api/v2/events', { token, body: { email, eventType } })
const change = (organization: TestOrganization, subscriber: string, changes: object) =>
  organization.data('update_subscriber', { subscriber, ...changes })

/** Answers the requests that are still open. */
const unanswered: (() => void)[] = []

/** The steps that follow every way; they include another wait. */
const REST = [
  step('chance', 'SPLIT', {
    variants: ['a', 'b'].map((id) => ({ id, weight: id === 'a' ? 1 : 0 })),
    sticky: true,
  }),
  step('ahead', 'JUMP', { toStepId: 'note', maxTimes: 1 }),
  step('note', 'NOTIFY', { to: 'team@office.example', subject: 'See {{name}}', markdown: 'Look.' }),
  step('met', 'GOAL', { goalId: 'never', ifUnmet: 'CONTINUE' }),
  step('stay', 'WAIT', LONG),
  step('leave', 'EXIT', {}),
]
const REST_TRAIL = [
  'chance DECIDED→a',
  'ahead JUMPED→jump',
  'note DONE→next',
  'met UNMET→next',
  'stay FAST_FORWARD→next',
  'leave EXIT',
]

/** Returns the ways by name. The name is the id of the way's first step and the name of its person. */
function waysOf(newcomer: string): Record<string, Way> {
  const waiting = (first: Step, kept: string, end?: Way['end']): Way => ({
    steps: [first],
    claims: 'WHILE IT WAITS',
    kept: [`${first.id} ${kept}`],
    lost: [`${first.id} CANCELED`],
    ...(end && { end }),
  })
  const claiming = (last: Step, kept: string, lost = kept): Way => ({
    steps: [last],
    claims: 'BY ITSELF',
    kept: [`${last.id} ${kept}`],
    lost: [`${last.id} ${lost}`],
  })
  const limit = { onTimeout: 'CONTINUE' } as const
  const hook = (id: string) =>
    step(id, 'WEBHOOK', { ...REQUEST, url: `${endpoints.url}/${id.split(' ')[1]}` })
  return {
    WAIT: waiting(step('WAIT', 'WAIT', LONG), 'FAST_FORWARD→next'),
    DATE: waiting(
      step('DATE', 'WAIT_UNTIL', { mode: 'DATE', date: '2099-01-01', ...limit }),
      'FAST_FORWARD→next',
    ),
    FIELD_DATE: waiting(
      step('FIELD_DATE', 'WAIT_UNTIL', {
        mode: 'FIELD_DATE',
        field: 'due',
        direction: 'AFTER',
        anniversary: false,
        ifMissing: 'EXIT',
        ifPast: 'CONTINUE',
        ...limit,
      }),
      'SKIPPED→next',
      (organization, email) => change(organization, email, { fields: { due: '2020-01-01' } }),
    ),
    TIME_WINDOW: waiting(
      step('TIME_WINDOW', 'WAIT_UNTIL', { mode: 'TIME_WINDOW', ...CLOSED, ...limit }),
      'FAST_FORWARD→next',
    ),
    EVENT: waiting(
      step('EVENT', 'WAIT_UNTIL', { mode: 'EVENT', eventType: 'CAME', scope: 'STEP', ...limit }),
      'EVENT→next',
      (organization, email) => happens(organization, email, 'CAME'),
    ),
    CONDITION: waiting(
      step('CONDITION', 'WAIT_UNTIL', { mode: 'CONDITION', filters: VIP, ...limit }),
      'CONDITION→next',
      (organization, email) => change(organization, email, { tags: ['vip'] }),
    ),
    // Another run has used this week's limit.
    THROTTLE: waiting(
      step('THROTTLE', 'THROTTLE', { limit: 1, per: { amount: 1, unit: 'WEEKS' }, overflow: 'HOLD' }),
      'FAST_FORWARD→next',
    ),
    GOAL: waiting(
      step('GOAL', 'GOAL', { goalId: 'bought', ifUnmet: 'WAIT' }),
      'REACHED→next',
      (organization, email) => happens(organization, email, 'BOUGHT'),
    ),
    'WEBHOOK unanswered': waiting(hook('WEBHOOK unanswered'), 'DONE→next', async () =>
      unanswered.splice(0).forEach((answer) => answer()),
    ),
    'EMAIL in hours': waiting(emailStep('EMAIL in hours', { sendWindow: CLOSED }), 'SENT→next'),
    // The lanes start only after the newcomers have entered.
    'EMAIL queued': waiting(emailStep('EMAIL queued'), 'SENT→next', () => Promise.resolve()),
    STOP_WORKFLOW: {
      steps: [step('STOP_WORKFLOW', 'WAIT', LONG), step('stop', 'STOP_WORKFLOW', { workflowId: newcomer })],
      claims: 'WHILE IT WAITS',
      kept: ['STOP_WORKFLOW FAST_FORWARD→next', 'stop ASKED→next'],
      lost: ['STOP_WORKFLOW CANCELED'],
    },
    ADD_TAG: claiming(step('ADD_TAG', 'ADD_TAG', { tagNames: ['claimed'] }), 'DONE→next'),
    REMOVE_TAG: claiming(step('REMOVE_TAG', 'REMOVE_TAG', { tagNames: ['given'] }), 'DONE→next'),
    UPDATE_FIELD: claiming(step('UPDATE_FIELD', 'UPDATE_FIELD', { increment: { claims: 1 } }), 'DONE→next'),
    SUBSCRIPTION: claiming(step('SUBSCRIPTION', 'SUBSCRIPTION', { action: 'UNSUBSCRIBE' }), 'DONE→next'),
    CREATE_EVENT: claiming(step('CREATE_EVENT', 'CREATE_EVENT', { eventType: 'CLAIMED' }), 'DONE→next'),
    // The start is requested when the run is already in its next wait.
    START_WORKFLOW: {
      steps: [step('START_WORKFLOW', 'START_WORKFLOW', { workflowId: newcomer })],
      claims: 'BY ITSELF',
      kept: ['START_WORKFLOW ASKED→next'],
      lost: ['START_WORKFLOW ASKED→next', ...REST_TRAIL.slice(0, -2), 'stay CANCELED'],
    },
    'EMAIL sent': claiming(emailStep('EMAIL sent'), 'SENT→next', 'SENT'),
    'WEBHOOK answered': claiming(hook('WEBHOOK answered'), 'DONE→next', 'DONE'),
  }
}

const named = (name: string) => [{ field: 'name', operator: 'equals' as const, value: name }]
/** The triggers of the newcomer: by hand, and by the effects of the holder's steps. */
const CLAIMS: TriggerConfig[] = [
  { type: 'MANUAL' },
  { type: 'TAG_ADDED', tagNames: ['claimed'] },
  { type: 'TAG_REMOVED', tagNames: ['given'] },
  { type: 'FIELD_UPDATED', field: 'claims' },
  { type: 'UNSUBSCRIBED' },
  { type: 'EVENT', eventType: 'CLAIMED' },
  { type: 'EVENT', eventType: 'EMAIL_SENT', filters: named('EMAIL sent') },
  { type: 'EVENT', eventType: 'WEBHOOK_EXECUTED', filters: named('WEBHOOK answered') },
]

function holderGraph(ways: Record<string, Way>) {
  const names = Object.keys(ways)
  const paths = names.map((id) => ({
    id,
    filters: [{ field: 'entry.way', operator: 'equals' as const, value: id }],
  }))
  const steps = [
    step('start', 'TRIGGER', { type: 'MANUAL' }),
    step('which', 'BRANCH', { paths }),
    ...Object.values(ways).flatMap((way) => way.steps),
    ...REST,
  ]
  const ins = names.map((name): [string, string, string] => ['which', name, name])
  const along = Object.values(ways).flatMap((way) => edges([...way.steps.map(({ id }) => id), 'chance']))
  return { steps, edges: [...edges(['start', 'which'], ...ins), ...along, ...alongPorts(REST)] }
}

const emailOf = ({ domain }: TestOrganization, name: string) =>
  `${name.toLowerCase().replaceAll(/\W/g, '-')}@reader.${domain}`

async function openScene([conflictStrategy, priority]: GroupCase): Promise<Scene> {
  const organization = await stack.api.organization()
  const fields = { due: '2099-01-01', claims: 0 }
  const first = { email: emailOf(organization, 'first'), name: 'first', tags: ['vip'], fields }
  await organization.data('add_subscriber', first)
  const settings = { timezone: 'UTC', exitOnUnsubscribe: false }
  const entries = CLAIMS.map((config, index) => step(`by-${index}`, 'TRIGGER', config))
  const newcomer = await publishWorkflow(organization, [...entries, step('pause', 'WAIT', LONG)], {
    settings: { ...settings, priority },
    edges: entries.map(({ id }) => ({ from: id, to: 'pause' })),
  })
  const ways = waysOf(newcomer)
  const { steps, edges: links } = holderGraph(ways)
  const goal = { windowDays: 30, exitOnReach: false }
  const holder = await publishWorkflow(organization, steps, {
    settings,
    edges: links,
    successGoals: [
      { id: 'bought', name: 'Bought', event: 'BOUGHT', ...goal },
      { id: 'never', name: 'Never', event: 'NEVER_HAPPENS', ...goal },
    ],
  })
  const { group } = await organization.data('create_workflow_group', { name: 'All', conflictStrategy })
  for (const workflowId of [holder, newcomer]) {
    await organization.data('set_workflow_group', { workflowId, groupId: group.id })
  }
  for (const name of Object.keys(ways)) {
    const email = emailOf(organization, name)
    await organization.data('add_subscriber', { email, name, tags: ['given'], fields })
  }
  return { organization, holder, newcomer, ways }
}

type Found = { name: string; state: string; trail: string[]; temporalId: string }

/** Returns each person's newest run of a workflow: its current step, or how it ended. */
async function runsOf({ organization }: Scene, workflowId: string): Promise<Found[]> {
  const found = await rows<Omit<Found, 'temporalId'> & { subscriberId: string; number: number }>(
    stack.em(),
    sql`select distinct on (s.name) s.name, run.subscriber_id as "subscriberId", run.number,
        case when run.ended_at is not null then run.status || ' ' || run.exit_reason
          when run.queued_at is not null then 'QUEUED' when run.wait_kind is not null then 'in ' || run.current_step_id
          else 'MOVING' end as state,
        array(select visit.step_id || ' ' || (visit.outcome ->> 'result') || coalesce('→' || visit.port, '')
          from run_step visit where visit.organization_id = run.organization_id and visit.run_id = run.id
          order by visit.visit) as trail
      from automation_run run
      join subscriber s on s.organization_id = run.organization_id and s.id = run.subscriber_id
      where run.organization_id = ${organization.id} and run.automation_id = ${decodeId('wf', workflowId)}
      order by s.name, run.number desc`,
  )
  return found.map(({ subscriberId, number, ...run }) => ({
    ...run,
    temporalId: runWorkflowId(workflowId, encodeId('sub', subscriberId), number),
  }))
}

test('every strategy is tried with a workflow that has every kind of step and every mode of waiting', (t) => {
  t.deepEqual([...new Set(GROUP_CASES.map(([strategy]) => strategy))], [...CONFLICT_STRATEGIES])
  t.deepEqual(missingKinds(holderGraph(waysOf('wf_any')).steps), [])
})

for (const groupCase of GROUP_CASES) {
  const [strategy, priority, [fate, newcomerFate]] = groupCase
  const isLost = fate !== 'WAITING'

  test.serial(
    `${strategy} holds for a newcomer of priority ${priority}, whatever step a run is in`,
    async (t) => {
      await stack.lanes.stop()
      const scene = await openScene(groupCase)
      const { organization, ways } = scene
      const names = Object.keys(ways)
      const waiting = names.filter((name) => ways[name]?.claims === 'WHILE IT WAITS')
      const claiming = names.filter((name) => ways[name]?.claims === 'BY ITSELF')
      const each = (among: readonly string[], work: (name: string, email: string) => Promise<unknown>) =>
        Promise.all(among.map((name) => work(name, emailOf(organization, name))))
      const enter = (workflowId: string, among: readonly string[], way?: string) =>
        each(among, (name, email) =>
          organization.data('add_subscriber_to_workflow', {
            workflowId,
            email,
            context: { way: way ?? name },
          }),
        )
      const move = (email: string, expectedStepId: string) =>
        fastForward(organization, { workflowId: scene.holder, email, expectedStepId })
      /** Waits until the runs of a workflow have the expected states. */
      const become = async (
        what: 'holder' | 'newcomer',
        among: readonly string[],
        stateOf: (name: string) => string,
      ) => {
        const expected = among.map((name) => `${name}: ${stateOf(name)}`).toSorted()
        let seen: string[] = []
        const isSo = async () => {
          const runs = await runsOf(scene, scene[what])
          seen = runs.filter(({ name }) => among.includes(name)).map(({ name, state }) => `${name}: ${state}`)
          return seen.toSorted().join() === expected.join()
        }
        await eventually(`every ${what}`, isSo).catch(() => undefined)
        t.deepEqual(seen.toSorted(), expected, what)
      }
      const holder = (stateOf: (name: string) => string) => (name: string) => (isLost ? fate : stateOf(name))
      const newcomer = (queued: (name: string) => string) => (name: string) =>
        newcomerFate === 'QUEUED' ? queued(name) : newcomerFate.replace('WAITING', 'in pause')
      const stopped = (otherwise: string) => (name: string) =>
        name === 'STOP_WORKFLOW' ? 'CANCELED MANUAL' : otherwise

      await enter(scene.holder, ['first'], 'THROTTLE')
      await become('holder', ['first'], () => 'in stay')
      await enter(scene.holder, waiting)
      await become('holder', waiting, (name) => `in ${name}`)
      await eventually('the request', () => unanswered.length === 1)
      await enter(scene.newcomer, waiting)
      await become(
        'newcomer',
        waiting,
        newcomer(() => 'QUEUED'),
      )
      await become(
        'holder',
        waiting,
        holder((name) => `in ${name}`),
      )

      await stack.lanes.start()
      await enter(scene.holder, claiming)
      await each(waiting, async (name, email) => {
        const end = ways[name]?.end
        if (end) return await end(organization, email)
        if (!isLost) return await move(email, name)
        const late = { workflowId: scene.holder, email }
        const refused = await organization.call('fast_forward_workflow_subscriber', late)
        t.is(refused.body.code, 'WRONG_STATE', name)
      })
      await become('newcomer', names, newcomer(stopped('QUEUED')))
      await become(
        'holder',
        names,
        holder(() => 'in stay'),
      )

      if (!isLost) await each(names, (_, email) => move(email, 'stay'))
      await become(
        'holder',
        names,
        holder(() => 'COMPLETED EXIT_STEP'),
      )
      await become('newcomer', names, newcomer(stopped('in pause')))

      const client = await stack.api.services.temporal.client()
      const runs = await runsOf(scene, scene.holder)
      for (const { name, trail, temporalId } of runs.filter((run) => names.includes(run.name))) {
        await eventually(`the workflow of ${name} to end`, async () => {
          const { status } = await client.workflow.getHandle(temporalId).describe()
          return status.name === 'COMPLETED'
        })
        const { kept = [], lost = [] } = ways[name] ?? {}
        const rest = isLost ? lost : [...kept, ...REST_TRAIL]
        t.deepEqual(trail, ['start ENTERED→next', `which DECIDED→${name}`, ...rest], name)
      }
      const mailed = stack.sink.accepted().map(({ recipient }) => recipient)
      const meant = names.filter((name) => name === 'EMAIL sent' || (name.startsWith('EMAIL') && !isLost))
      t.deepEqual(
        mailed.filter((address) => address.endsWith(organization.domain)).toSorted(),
        meant.map((name) => emailOf(organization, name)).toSorted(),
      )
    },
  )
}
