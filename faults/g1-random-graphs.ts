import { sql } from 'kysely'

import type { Simulation } from '../schema/simulation.ts'
import { array, execute, row, rows } from '../src/database.ts'
import { startLanes } from '../src/delivery/lanes.ts'
import { encodeId, newId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from '../test/helpers/api.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { startSmtpSink } from '../test/helpers/smtp-sink.ts'
import { startEngine } from '../worker/workers.ts'
import { atOnce, defineExperiment, is, type Lab } from './experiment.ts'
import { randomGraph } from './random-graphs.ts'

const CALLERS = 8
const DAY_MS = 86_400_000

/** A run that is to take the way that was foretold. Ids are those of the wire. */
type Foretold = { graph: number; workflowId: string; subscriberId: string; way: string }

/** Chance draws graphs and people; the simulator foretells each way, and the engine takes it, its waits cut short. */
export const randomGraphs = defineExperiment({
  id: 'G1',
  title: 'random graphs: the engine goes as the simulator says',
  sizes: {
    small: { graphs: Number(process.env['RANDOM_GRAPHS'] ?? 12), people: 5 },
    full: { graphs: 200, people: 10 },
  },
  async run(lab, { graphs, people }) {
    const { api, organization, delivered } = await open(lab)
    const foretold: Foretold[] = []
    for (let graph = 0; graph < graphs; graph++) {
      const workflowId = await publish(organization, randomGraph(lab.random))
      for (const subscriberId of await drawPeople(lab, api, organization, people)) {
        const answer: Simulation = await organization.data('simulate_workflow', { workflowId, subscriberId })
        const [way] = answer.ways
        const trail = (way?.timeline ?? []).map(({ stepId, port }) => `${stepId}→${port}`)
        const end = `${way?.end.status} ${way?.end.exitReason}`
        foretold.push({ graph, workflowId, subscriberId, way: [...trail, end].join(' ') })
      }
    }
    lab.say(`${foretold.length} ways are foretold`)
    await each(foretold, async ({ workflowId, subscriberId }) => {
      await organization.data('add_subscriber_to_workflow', { workflowId, subscriberId })
    })
    await walkAll(lab, api, organization)
    const taken = await readWays(api, organization)
    const other = foretold.flatMap(({ graph, subscriberId, workflowId, way }) => {
      const seen = taken.get(`${workflowId}/${subscriberId}`) ?? 'no run'
      return seen === way ? [] : [`graph ${graph}: foretold ${way}; taken ${seen}`]
    })
    for (const difference of other) lab.say(difference)
    const effects = await readEffects(api, organization)
    return {
      injected: { seed: lab.seed, graphs, runs: foretold.length },
      seen: { ...effects, delivered: delivered(), 'first difference': other[0] ?? 'none' },
      claims: [
        is('runs that took another way than was foretold', other.length, 0),
        is('runs that ended', taken.size, foretold.length),
        is('emails that arrived, of those that runs sent', delivered(), effects.sent),
        is('additions to a field, of the steps that add', effects.passes, effects.updates),
        is('events, of the steps that make one', effects.events, effects.creations),
      ],
    }
  },
})

async function open(
  lab: Lab,
): Promise<{ api: TestApi; organization: TestOrganization; delivered: () => number }> {
  const sink = await startSmtpSink()
  lab.defer(() => sink.close())
  const api = await startApi({ TEMPORAL_TASK_QUEUE: `faults-g1-${process.pid}`, RELAY_URL: sink.url })
  lab.defer(() => api.close())
  const lanes = await startLanes(api.services, { workerName: 'faults' })
  lab.defer(() => lanes.stop())
  const engine = await startEngine(api.services)
  lab.defer(() => engine.stop())
  await engine.ready
  const organization = await api.organization()
  const fields = { plan: 'free', points: 0, passes: 0, due: '2030-01-01', over: '2020-01-01' }
  await organization.data('add_subscriber', { email: 'fields@reader.example', fields })
  return { api, organization, delivered: () => sink.accepted().length }
}

async function publish(
  organization: TestOrganization,
  graph: ReturnType<typeof randomGraph>,
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

/** Some of them take no marketing, have no date, or one that is over. */
async function drawPeople(
  { random }: Lab,
  api: TestApi,
  organization: TestOrganization,
  count: number,
): Promise<string[]> {
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
  return people.map(({ id }) => encodeId('sub', id))
}

/** Cuts every wait short, until no run is under way. */
async function walkAll(lab: Lab, api: TestApi, organization: TestOrganization): Promise<void> {
  type Waiting = { automationId: string; subscriberId: string; runId: string; stepId: string; status: string }
  const look = () =>
    rows<Waiting>(
      api.services.orm.em.fork(),
      sql`select automation_id as "automationId", subscriber_id as "subscriberId", id as "runId",
          current_step_id as "stepId", status
        from automation_run where organization_id = ${organization.id} and status in ('QUEUED', 'ACTIVE', 'WAITING')`,
    )
  await eventually(
    'all runs to end',
    async () => {
      const active = await look()
      await each(
        active.filter(({ status }) => status === 'WAITING'),
        async ({ automationId, subscriberId, runId, stepId }) => {
          // Whoever has gone on meanwhile is asked again in the next round.
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

/** The way of each run that is over, written as it was foretold. */
async function readWays(api: TestApi, organization: TestOrganization): Promise<Map<string, string>> {
  const found = await rows<{ automationId: string; subscriberId: string; trail: string; end: string }>(
    api.services.orm.em.fork(),
    sql`select run.automation_id as "automationId", run.subscriber_id as "subscriberId",
        coalesce(string_agg(step.step_id || '→' || coalesce(step.port, 'null'), ' ' order by step.visit) || ' ', '')
          as trail,
        run.status || ' ' || run.exit_reason as "end"
      from automation_run run
      left join run_step step on step.organization_id = run.organization_id and step.run_id = run.id
      where run.organization_id = ${organization.id} and run.ended_at is not null group by run.id, 1, 2, run.status, run.exit_reason`,
  )
  return new Map(
    found.map(({ automationId, subscriberId, trail, end }) => [
      `${encodeId('wf', automationId)}/${encodeId('sub', subscriberId)}`,
      trail + end,
    ]),
  )
}

type Effects = Record<'sent' | 'updates' | 'passes' | 'creations' | 'events', number>

async function readEffects(api: TestApi, { id }: TestOrganization): Promise<Effects> {
  const done = (type: string, result: string) => sql`(select count(*)::int from run_step
    where organization_id = ${id} and type = ${type} and outcome ->> 'result' = ${result})`
  const seen = await row<Effects>(
    api.services.orm.em.fork(),
    sql`select ${done('EMAIL', 'SENT')} as sent, ${done('UPDATE_FIELD', 'DONE')} as updates,
      ${done('CREATE_EVENT', 'DONE')} as creations,
      (select sum((fields ->> 'passes')::int)::int from subscriber where organization_id = ${id}) as passes,
      (select count(*)::int from subscriber_event where organization_id = ${id} and type like 'MADE_%') as events`,
  )
  if (!seen) throw new Error('nothing was counted')
  return seen
}

/** Some at a time. */
async function each<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const left = [...items]
  await atOnce(CALLERS, async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  })
}
