import { sql } from 'kysely'

import { type ConflictStrategy, CONFLICT_STRATEGIES } from '../schema/workflow-group.ts'
import { array, execute, row, rows } from '../src/database.ts'
import { cancelRuns } from '../src/domain/automations/runs/runs.ts'
import { recordEvents } from '../src/domain/events.ts'
import { newId } from '../src/ids.ts'
import { edges, makeTenant, publish, step, type Tenant } from '../test/helpers/automation.ts'
import { type TestServices, testServices } from '../test/helpers/database.ts'
import { atOnce, type Claim, defineExperiment, is, type Lab } from './experiment.ts'

/** The priorities of the five automations, with ties at the highest and in the middle. */
const PRIORITIES = [10, 50, 50, 90, 90]
const MOST_AT_ONCE = 20
/** One in this many transactions fails before its commit and is repeated. */
const DEATHS = 20
const STEPS = [step('pause', 'WAIT', { amount: 3, unit: 'DAYS' })]
const HOLDS = sql`status in ('QUEUED', 'ACTIVE', 'WAITING') and queued_at is null`

type Entry = { subscriberId: string; position: number }
type Run = {
  id: string
  subscriberId: string
  automationId: string
  status: string
  exitReason: string | null
  queuedAt: string | null
  startedAs: string | null
}
type Scene = { services: TestServices; tenant: Tenant; automations: string[] }

/**
 * Everybody enters each of five automations of a group, in random order, in concurrent transactions of up to twenty
 * people each. Then concurrent transactions remove everybody who has a place in the group. The database shows the order
 * of the decisions: the event of a run's start is written under the lock of its place.
 */
export const groupRaces = defineExperiment({
  id: 'R13',
  title: 'concurrent entries into five automations of one group, by every strategy',
  sizes: { small: { people: 60, runners: 8 }, full: { people: 2_000, runners: 24 } },
  async run(lab, { people, runners }) {
    const services = await testServices({ TEMPORAL_TASK_QUEUE: `faults-r13-${process.pid}` })
    lab.defer(() => services.close())
    const claims: Claim[] = []
    let [deaths, moments] = [0, 0]
    for (const strategy of CONFLICT_STRATEGIES) {
      const scene = await makeScene(services, strategy)
      const crowd = await makeCrowd(scene, people)
      const entries = shuffled(
        lab,
        crowd.flatMap((subscriberId) => PRIORITIES.map((_, position) => ({ subscriberId, position }))),
      )
      const seen = await watched(scene, async () => {
        deaths += await enterAll(lab, scene, entries, runners)
      })
      const runs = await runsOf(scene)
      const wrong = crowd.filter((id) => !isDecided(strategy, scene, runs.get(id) ?? []))
      const freed = await watched(scene, () => freeAll(lab, scene, runners))
      const after = await runsOf(scene)
      const unfair = crowd.filter((id) => !isInTurn(runs.get(id) ?? [], after.get(id) ?? []))
      moments += seen.moments + freed.moments
      lab.say(`${strategy}: ${entries.length} entries, ${wrong.length} people decided otherwise`)
      claims.push(
        is(`${strategy}: runs`, [...runs.values()].flat().length, entries.length),
        is(`${strategy}: people in two runs at once`, seen.doubles + freed.doubles, 0),
        is(`${strategy}: people for whom it was decided otherwise`, wrong.length, 0),
        is(`${strategy}: people whose queue went on out of turn, or not to its end`, unfair.length, 0),
      )
    }
    const entered = people * PRIORITIES.length
    return {
      injected: { 'entries by each strategy': entered, 'transactions that died': deaths },
      seen: { 'looks for people in two runs': moments },
      claims,
    }
  },
})

async function makeScene(services: TestServices, strategy: ConflictStrategy): Promise<Scene> {
  const tenant = await makeTenant(services)
  const groupId = newId()
  const em = services.orm.em.fork()
  await execute(
    em,
    sql`insert into automation_group (id, organization_id, name, conflict_strategy)
      values (${groupId}, ${tenant.id}, ${strategy}, ${strategy})`,
  )
  const automations: string[] = []
  for (const [position, priority] of PRIORITIES.entries()) {
    const trigger = step('start', 'TRIGGER', { type: 'EVENT', eventType: `GO_${position}` })
    const settings = { priority, reEntry: { mode: 'EVERY_TIME' as const } }
    const graph = { steps: [trigger, ...STEPS], edges: edges(['start', 'pause']), settings }
    automations.push((await publish(services, tenant, graph)).id)
  }
  await execute(em, sql`update automation set group_id = ${groupId} where organization_id = ${tenant.id}`)
  return { services, tenant, automations }
}

async function makeCrowd({ services, tenant }: Scene, size: number): Promise<string[]> {
  const ids = Array.from({ length: size }, newId)
  await execute(
    services.orm.em.fork(),
    sql`insert into subscriber (id, organization_id, email, status)
      select id, ${tenant.id}, id || '@reader.example', 'SUBSCRIBED' from unnest(${array(ids, 'uuid')}) as id`,
  )
  return ids
}

function shuffled<Item>({ random }: Lab, items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, place: random() }))
    .toSorted((one, other) => one.place - other.place)
    .map(({ item }) => item)
}

/** Enters everybody. Returns how many transactions failed on the way. */
async function enterAll(lab: Lab, { tenant }: Scene, entries: Entry[], runners: number): Promise<number> {
  const left = [...entries]
  let deaths = 0
  await atOnce(runners, async () => {
    while (left.length > 0) {
      const chunk = left.splice(0, 1 + Math.floor(lab.random() * MOST_AT_ONCE))
      const enter = (dies: boolean) =>
        tenant.within(async (call) => {
          const events = chunk.map(({ subscriberId, position }) => ({ subscriberId, type: `GO_${position}` }))
          await recordEvents(call, events)
          if (dies) throw new Death()
        })
      if (lab.random() < 1 / DEATHS) {
        await enter(true).catch(ignoreDeath)
        deaths += 1
      }
      await enter(false)
    }
  })
  return deaths
}

/** Removes runs that have a place until none is left. Several runners may remove the same run at the same time. */
async function freeAll(lab: Lab, { services, tenant }: Scene, runners: number): Promise<void> {
  await atOnce(runners, async () => {
    for (;;) {
      const size = 1 + Math.floor(lab.random() * MOST_AT_ONCE)
      const held = await rows<{ id: string }>(
        services.orm.em.fork(),
        sql`select id from automation_run where organization_id = ${tenant.id} and ${HOLDS}
          order by random() limit ${size}`,
      )
      if (held.length === 0) return
      const ids = held.map(({ id }) => id)
      await tenant.within((call) => cancelRuns(call, ids, 'MANUAL'))
    }
  })
}

/** Repeatedly looks for people with two runs in the group while `work` runs. */
async function watched(
  { services, tenant }: Scene,
  work: () => Promise<void>,
): Promise<{ doubles: number; moments: number }> {
  let [doubles, moments] = [0, 0]
  const over = new AbortController()
  const working = work().finally(() => over.abort())
  while (!over.signal.aborted) {
    const found = await row<{ count: number }>(
      services.orm.em.fork(),
      sql`select count(*)::int as count from (select 1 from automation_run where organization_id = ${tenant.id}
        and ${HOLDS} group by subscriber_id having count(*) > 1) as double`,
    )
    doubles += found?.count ?? 0
    moments += 1
  }
  await working
  return { doubles, moments }
}

/** Returns the runs of each person. */
async function runsOf({ services, tenant }: Scene): Promise<Map<string, Run[]>> {
  const found = await rows<Run>(
    services.orm.em.fork(),
    sql`select run.id, run.subscriber_id as "subscriberId", run.automation_id as "automationId", run.status,
        run.exit_reason as "exitReason", run.queued_at as "queuedAt", event.id as "startedAs"
      from automation_run run left join subscriber_event event on event.organization_id = run.organization_id
        and event.type = 'WORKFLOW_STARTED' and event.data ->> 'runId' = type_id('run', run.id)
      where run.organization_id = ${tenant.id}`,
  )
  return Map.groupBy(found, ({ subscriberId }) => subscriberId)
}

/**
 * Returns whether one person's five entries have the results that the strategy demands, in the order of the decisions.
 */
function isDecided(strategy: ConflictStrategy, { automations }: Scene, runs: readonly Run[]): boolean {
  const begun = inOrder(runs, ({ startedAs }) => startedAs)
  const held = runs.filter(({ status, queuedAt }) => status === 'QUEUED' && queuedAt === null)
  const others = runs.filter((run) => run !== held[0])
  const last = begun.at(-1)
  if (held.length !== 1 || runs.length !== PRIORITIES.length || held[0] !== last) return false
  if (strategy === 'QUEUE') return begun.length === 1 && others.every(({ queuedAt }) => queuedAt !== null)
  if (!others.every(({ exitReason }) => exitReason === 'GROUP_CONFLICT')) return false
  if (strategy === 'FIRST_WINS') return begun.length === 1
  if (strategy === 'LAST_WINS') return true
  const priorities = begun.map(({ automationId }) => PRIORITIES[automations.indexOf(automationId)] ?? 0)
  const isRising = priorities.every(
    (priority, index) => index === 0 || priority > (priorities[index - 1] ?? 0),
  )
  return isRising && priorities.at(-1) === Math.max(...PRIORITIES)
}

/** Returns whether all queued runs started in the order in which they were queued, and none is left. */
function isInTurn(before: readonly Run[], after: readonly Run[]): boolean {
  if (after.some(({ status }) => status === 'QUEUED')) return false
  const queued = inOrder(
    before,
    ({ queuedAt, id }) => queuedAt && `${new Date(queuedAt).toISOString()} ${id}`,
  )
  const places = new Map(inOrder(after, ({ startedAs }) => startedAs).map(({ id }, place) => [id, place]))
  const turns = queued.map(({ id }) => places.get(id) ?? -1)
  return turns.every((turn, index) => turn > (turns[index - 1] ?? 0))
}

function inOrder(runs: readonly Run[], key: (run: Run) => string | null): Run[] {
  const keyed = runs.flatMap((run) => {
    const at = key(run)
    return at === null ? [] : [{ run, at }]
  })
  return keyed.toSorted((one, other) => (one.at < other.at ? -1 : 1)).map(({ run }) => run)
}

class Death extends Error {}

function ignoreDeath(error: unknown): void {
  if (!(error instanceof Death)) throw error
}
