import { createServer } from 'node:http'

import { sql } from 'kysely'

import type { Simulation } from '../schema/simulation.ts'
import { array, execute, row, rows } from '../src/database.ts'
import { startLanes } from '../src/delivery/lanes.ts'
import { nudgeRuns } from '../src/domain/automations/runs/nudge.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from '../test/helpers/api.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { listenOnLoopback } from '../test/helpers/listen.ts'
import { startSmtpSink } from '../test/helpers/smtp-sink.ts'
import { startEngine } from '../worker/workers.ts'
import { atOnce, defineExperiment, is, type Lab, PATIENCE } from './experiment.ts'
import { type Entry, HUGE, randomGraph, type RandomGraph, type Surroundings } from './random-graphs.ts'

const CALLERS = 8
const DAY_MS = 86_400_000

/** The way that the simulator predicts for a person, or `NO_RUN` if they are not let in. Ids are TypeIDs. */
type Foretold = { graph: number; workflowId: string; person: Person; way: string }
type Person = { subscriberId: string; email: string }
type Opened = {
  api: TestApi
  organization: TestOrganization
  around: Surroundings
  /** The number of distinct emails and of distinct requests that arrived. */
  delivered: () => number
  asked: () => number
}

const NO_RUN = 'no run'

/**
 * Draws random graphs and people. The simulator predicts each way, and the engine must take it, with waits
 * fast-forwarded.
 */
export const randomGraphs = defineExperiment({
  id: 'G1',
  title: 'random graphs: the engine goes as the simulator says',
  sizes: {
    small: { graphs: Number(process.env['RANDOM_GRAPHS'] ?? 12), people: 5 },
    full: { graphs: 200, people: 10 },
  },
  async run(lab, { graphs, people }) {
    const { api, organization, around, delivered, asked } = await open(lab)
    const foretold: Foretold[] = []
    const entries: (() => Promise<void>)[] = []
    for (let graph = 0; graph < graphs; graph++) {
      const { entry, ...definition } = randomGraph(lab.random, String(graph), around)
      const workflowId = await publish(organization, definition)
      await fillThrottles(api, organization, workflowId, definition.steps)
      for (const person of await drawPeople(lab, api, organization, people)) {
        const { subscriberId } = person
        if (entry.by === 'untag') {
          const asked = { subscriberIds: [subscriberId], tagNames: [entry.tagName] }
          await organization.data('bulk_add_tags', asked)
        }
        const answer: Simulation = await organization.data('simulate_workflow', { workflowId, subscriberId })
        foretold.push({ graph, workflowId, person, way: wayOf(answer, definition.steps) })
        entries.push(() => enter(api, organization, { entry, workflowId, person }))
      }
    }
    const runs = foretold.filter(({ way }) => way !== NO_RUN).length
    lab.say(`${runs} ways are foretold, and that ${foretold.length - runs} people do not get in`)
    await each(entries, (begin) => begin())
    await walkAll(lab, api, organization)
    const taken = await readWays(api, organization, around)
    const other = foretold.flatMap(({ graph, person, workflowId, way }) => {
      const seen = taken.get(`${workflowId}/${person.subscriberId}`) ?? NO_RUN
      return seen === way ? [] : [`graph ${graph}: foretold ${way}; taken ${seen}`]
    })
    for (const difference of other) lab.say(difference)
    const effects = await eventually(
      'what runs asked for and did not wait for',
      async () => {
        const found = await readEffects(api, organization, around)
        return delivered() >= found.sent + found.notices && found.others >= found.starts && found
      },
      PATIENCE,
    )
    return {
      injected: { seed: lab.seed, graphs, runs, 'kept out': foretold.length - runs },
      seen: { ...effects, delivered: delivered(), asked: asked(), 'first difference': other[0] ?? 'none' },
      claims: [
        is('runs that took another way than was foretold', other.length, 0),
        is('runs that ended', taken.size, runs),
        is('emails that arrived, of those that runs sent', delivered(), effects.sent + effects.notices),
        is('additions to a field, of the steps that add', effects.passes, effects.updates),
        is('events, of the steps that make one', effects.events, effects.creations),
        is('requests, of the steps that make one', asked(), effects.requests),
        is('events of requests, of the steps that make one', effects.executed, effects.requests),
        is('runs of the other workflow, of the steps that start one', effects.others, effects.starts),
      ],
    }
  },
})

async function open(lab: Lab): Promise<Opened> {
  const sink = await startSmtpSink()
  lab.defer(() => sink.close())
  const ids = new Set<unknown>()
  const server = createServer((request, response) => {
    ids.add(request.headers['webhook-id'])
    response.writeHead(request.url === '/refused' ? 410 : 200).end('{}')
  })
  const port = await listenOnLoopback(server)
  lab.defer(() => Promise.resolve(server.close()))
  const api = await startApi({
    TEMPORAL_TASK_QUEUE: `faults-g1-${process.pid}`,
    RELAY_URL: sink.url,
    WEB_ALLOW_PRIVATE: `127.0.0.1:${port}`,
  })
  lab.defer(() => api.close())
  const lanes = await startLanes(api.services, { workerName: 'faults' })
  lab.defer(() => lanes.stop())
  const engine = await startEngine(api.services)
  lab.defer(() => engine.stop())
  await engine.ready
  const organization = await api.organization()
  const fields = {
    plan: 'free',
    points: 0,
    passes: 0,
    huge: 0,
    came: '',
    due: '2030-01-01',
    over: '2020-01-01',
  }
  await organization.data('add_subscriber', { email: 'fields@reader.example', fields })
  const otherWorkflowId = await publish(organization, {
    steps: [
      { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
      { id: 'month', type: 'WAIT', config: { amount: 30, unit: 'DAYS' } },
    ],
    edges: [{ from: 'start', to: 'month', port: 'next' }],
    settings: { reEntry: { mode: 'EVERY_TIME' } },
  })
  return {
    api,
    organization,
    around: { url: `http://127.0.0.1:${port}`, team: 'team@office.example', otherWorkflowId },
    delivered: () => sink.accepted().length,
    asked: () => ids.size,
  }
}

/**
 * Returns the result of a step that turns runs away, or undefined. The simulator shows it as an alternative to the
 * expected one.
 */
function turningAway({ type, config }: RandomGraph['steps'][number]): string | undefined {
  const { url, limit, overflow } = Object(config)
  if (type === 'WEBHOOK' && String(url).endsWith('/refused')) return 'FAILED'
  return type === 'THROTTLE' && overflow === 'SKIP' && limit === 1 ? 'FULL' : undefined
}

/**
 * Returns the predicted way: the expected one up to a step that turns the run away, then the alternative at that step.
 */
function wayOf({ entries, ways }: Simulation, steps: RandomGraph['steps']): string {
  const [likely] = ways
  if (!likely || entries.some(({ enters }) => !enters)) return NO_RUN
  const turned = new Map(steps.map((step) => [step.id, turningAway(step)]))
  const at = likely.timeline.findIndex(({ stepId }) => turned.get(stepId) !== undefined)
  const visit = likely.timeline[at]
  const other = ways.find(
    ({ branchOf, timeline }) =>
      branchOf?.way === likely.number &&
      branchOf.visit === at &&
      timeline[0]?.result === turned.get(visit?.stepId ?? ''),
  )
  const isTurned = other !== undefined && visit?.result !== 'SKIPPED'
  const visits = isTurned ? [...likely.timeline.slice(0, at), ...other.timeline] : likely.timeline
  const { status, exitReason } = isTurned ? other.end : likely.end
  return [...visits.map(({ stepId, port }) => `${stepId}→${port}`), `${status} ${exitReason}`].join(' ')
}

/** Fills the throttles that are to turn runs away. */
async function fillThrottles(
  api: TestApi,
  { id }: TestOrganization,
  workflowId: string,
  steps: RandomGraph['steps'],
): Promise<void> {
  const full = steps.filter((step) => turningAway(step) === 'FULL').map((step) => step.id)
  await execute(
    api.services.orm.em.fork(),
    sql`insert into automation_throttle (organization_id, automation_id, step_id, window_at, taken)
      select ${id}, ${decodeId('wf', workflowId)}, step, now() + interval '1 day', 1 from unnest(${array(full, 'text')}) step`,
  )
}

/**
 * Lets a person try to enter. A person who is not let in is refused when entered by hand, and ignored by events and
 * tags.
 */
async function enter(
  api: TestApi,
  organization: TestOrganization,
  { entry, workflowId, person }: { entry: Entry; workflowId: string; person: Person },
): Promise<void> {
  const { subscriberId, email } = person
  const asked = { subscriberIds: [subscriberId] }
  switch (entry.by) {
    case 'hand': {
      const { status, body } = await organization.call('add_subscriber_to_workflow', {
        workflowId,
        subscriberId,
      })
      if (status !== 200 && status !== 409) throw new Error(JSON.stringify(body))
      return
    }
    case 'tag':
      await organization.data('bulk_add_tags', { ...asked, tagNames: [entry.tagName] })
      return
    case 'untag':
      await organization.data('bulk_remove_tags', { ...asked, tagNames: [entry.tagName] })
      return
    case 'field':
      await organization.data('update_subscriber', { subscriber: email, fields: { came: entry.value } })
      return
    case 'event': {
      const answer = await api.request('POST', '/api/v2/events', {
        token: organization.token,
        body: { email, eventType: entry.eventType },
      })
      if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
    }
  }
}

async function publish(
  organization: TestOrganization,
  graph: Partial<Omit<RandomGraph, 'entry'>>,
): Promise<string> {
  const { workflow } = await organization.data('create_workflow', { name: 'Drawn' })
  const { updatedAt } = workflow
  await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: updatedAt,
    ...graph,
  })
  const answer = await organization.confirmed('publish_workflow', { workflowId: workflow.id })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return workflow.id
}

/** Creates people. Some get no marketing email, some have no date, and some have one in the past. */
async function drawPeople(
  { random }: Lab,
  api: TestApi,
  organization: TestOrganization,
  count: number,
): Promise<Person[]> {
  const people = Array.from({ length: count }, () => {
    const over = new Date(Date.now() - 50 * DAY_MS).toISOString()
    const due = new Date(Date.now() + (random() * 40 - 10) * DAY_MS).toISOString()
    return {
      id: newId(),
      status: random() < 0.2 ? 'UNSUBSCRIBED' : 'SUBSCRIBED',
      fields: {
        plan: random() < 0.5 ? 'free' : 'pro',
        points: Math.floor(random() * 10),
        passes: 0,
        huge: random() < 0.5 ? HUGE : 0,
        ...(random() < 0.7 && { due }),
        ...(random() < 0.7 && { over }),
      },
    }
  })
  const column = (member: 'id' | 'status' | 'fields', type: 'uuid' | 'text' | 'jsonb') =>
    array(
      people.map((person) => person[member]),
      type,
    )
  await execute(
    api.services.orm.em.fork(),
    sql`insert into subscriber (id, organization_id, email, name, status, fields)
      select id, ${organization.id}, id || '@reader.example', 'Reader', status, fields
      from unnest(${column('id', 'uuid')}, ${column('status', 'text')}, ${column('fields', 'jsonb')})
        as drawn (id, status, fields)`,
  )
  return people.map(({ id }) => ({ subscriberId: encodeId('sub', id), email: `${id}@reader.example` }))
}

/** Fast-forwards every wait until no run is active. For runs that wait for a goal, closes the goal's window instead. */
async function walkAll(lab: Lab, api: TestApi, organization: TestOrganization): Promise<void> {
  type Waiting = Record<'automationId' | 'subscriberId' | 'runId' | 'stepId' | 'status', string> & {
    waitKind: string | null
  }
  const look = () =>
    rows<Waiting>(
      api.services.orm.em.fork(),
      sql`select automation_id as "automationId", subscriber_id as "subscriberId", id as "runId",
          current_step_id as "stepId", status, wait_kind as "waitKind"
        from automation_run where organization_id = ${organization.id} and status in ('QUEUED', 'ACTIVE', 'WAITING')`,
    )
  await eventually(
    'all runs to end',
    async () => {
      const active = await look()
      await each(
        active.filter(({ status }) => status === 'WAITING'),
        async ({ automationId, subscriberId, runId, stepId, waitKind }) => {
          if (waitKind === 'GOAL') return await closeWindows(api, organization, runId)
          // A run that has moved on in the meantime is tried again in the next round.
          await organization.call('fast_forward_workflow_subscriber', {
            workflowId: encodeId('wf', automationId),
            subscriberId: encodeId('sub', subscriberId),
            runId: encodeId('run', runId),
            expectedStepId: stepId,
          })
        },
      )
      lab.say(`${active.length} runs are under way`)
      return active.length === 0
    },
    { withinMs: 3_600_000 },
  )
}

/** Moves the entry and the emails of a run into the past, beyond every goal window. */
async function closeWindows(api: TestApi, { id }: TestOrganization, runId: string): Promise<void> {
  await api.services.orm.em.fork().transactional(async (em) => {
    await execute(
      em,
      sql`with sent as (
          update message set sent_at = sent_at - interval '91 days' where organization_id = ${id} and run_id = ${runId}),
        opened as (
          update goal_watch set opens_at = opens_at - interval '91 days', expires_at = expires_at - interval '91 days'
          where organization_id = ${id} and run_id = ${runId})
        update automation_run set entered_at = entered_at - interval '91 days'
        where organization_id = ${id} and id = ${runId}`,
    )
    await nudgeRuns(em, id, [runId])
  })
}

/** Returns the way of each finished run, in the notation of the prediction. */
async function readWays(
  api: TestApi,
  organization: TestOrganization,
  { otherWorkflowId }: Surroundings,
): Promise<Map<string, string>> {
  const found = await rows<{ automationId: string; subscriberId: string; trail: string; end: string }>(
    api.services.orm.em.fork(),
    sql`select run.automation_id as "automationId", run.subscriber_id as "subscriberId",
        coalesce(string_agg(step.step_id || '→' || coalesce(step.port, 'null'), ' ' order by step.visit) || ' ', '')
          as trail,
        run.status || ' ' || run.exit_reason as "end"
      from automation_run run
      left join run_step step on step.organization_id = run.organization_id and step.run_id = run.id
      where run.organization_id = ${organization.id} and run.ended_at is not null
        and run.automation_id <> ${decodeId('wf', otherWorkflowId)} group by run.id, 1, 2, run.status, run.exit_reason`,
  )
  return new Map(
    found.map(({ automationId, subscriberId, trail, end }) => [
      `${encodeId('wf', automationId)}/${encodeId('sub', subscriberId)}`,
      trail + end,
    ]),
  )
}

type Effects = Record<
  | 'sent'
  | 'notices'
  | 'updates'
  | 'passes'
  | 'creations'
  | 'events'
  | 'requests'
  | 'executed'
  | 'starts'
  | 'others',
  number
>

async function readEffects(
  api: TestApi,
  { id }: TestOrganization,
  { otherWorkflowId }: Surroundings,
): Promise<Effects> {
  const made = (type: string, ...results: string[]) => sql`(select count(*)::int from run_step
    where organization_id = ${id} and type = ${type} and outcome ->> 'result' = any(${array(results, 'text')}))`
  const happened = (types: string) =>
    sql`(select count(*)::int from subscriber_event where organization_id = ${id} and type like ${types})`
  const seen = await row<Effects>(
    api.services.orm.em.fork(),
    sql`select ${made('EMAIL', 'SENT')} as sent, ${made('NOTIFY', 'DONE')} as notices,
      ${made('UPDATE_FIELD', 'DONE')} as updates,
      (select sum((fields ->> 'passes')::int)::int from subscriber where organization_id = ${id}) as passes,
      ${made('CREATE_EVENT', 'DONE')} as creations, ${happened('MADE_%')} as events,
      ${made('WEBHOOK', 'DONE', 'FAILED', 'CANCELED')} as requests, ${happened('WEBHOOK_EXECUTED')} as executed,
      ${made('START_WORKFLOW', 'ASKED')} as starts,
      (select count(*)::int from automation_run where organization_id = ${id}
        and automation_id = ${decodeId('wf', otherWorkflowId)}) as others`,
  )
  if (!seen) throw new Error('nothing was counted')
  return seen
}

/** Runs `work` for all items, `CALLERS` at a time. */
async function each<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const left = [...items]
  await atOnce(CALLERS, async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  })
}
