import { sql } from 'kysely'

import { row } from '../src/database.ts'
import { recordEvents } from '../src/domain/events.ts'
import { edges, makeTenant, publish, step, type Tenant } from '../test/helpers/automation.ts'
import { endProcess, startProcess } from '../test/helpers/child.ts'
import { type TestServices, testServices } from '../test/helpers/database.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { scratchDirectory, startOwnTemporal } from '../test/helpers/services.ts'
import { defineExperiment, is } from './experiment.ts'

const SHORT = { amount: 2, unit: 'SECONDS' as const }
const STEPS = [
  step('start', 'TRIGGER', { type: 'EVENT', eventType: 'GO' }),
  step('first', 'ADD_TAG', { tagNames: ['first'] }),
  step('rest', 'WAIT', SHORT),
  step('count', 'UPDATE_FIELD', { increment: { passes: 1 } }),
  step('more', 'WAIT', SHORT),
  step('tell', 'CREATE_EVENT', { eventType: 'TOLD' }),
  step('third', 'WAIT', SHORT),
  step('undo', 'REMOVE_TAG', { tagNames: ['first'] }),
]

/** Kills the worker (between a commit and its report), Temporal (between an acknowledgement and its disk), or both. */
export const killedEngine = defineExperiment({
  id: 'R4',
  title: 'kill -9 Temporal and the worker while runs are in short waits',
  sizes: { small: { runs: 40, kills: 3 }, full: { runs: 500, kills: 10 } },
  async run(lab, { runs, kills }) {
    const directory = scratchDirectory('temporal')
    let temporal = await startOwnTemporal(directory)
    lab.defer(() => temporal.stop())
    const services = await testServices({
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_TASK_QUEUE: `faults-r4-${process.pid}`,
    })
    lab.defer(() => services.close())
    const tenant = await makeTenant(services)
    await publish(services, tenant, { steps: STEPS, edges: edges(STEPS.map(({ id }) => id)) })
    const people = await Promise.all(Array.from({ length: runs }, () => tenant.subscribe()))
    const start = () => startProcess(services, 'worker/main.ts')
    let worker = start()
    lab.defer(() => endProcess(worker))
    const events = people.map((subscriberId) => ({ subscriberId, type: 'GO' }))
    await tenant.within((call) => recordEvents(call, events))

    const killed = { worker: 0, Temporal: 0 }
    const all = runs * STEPS.length
    for (let kill = 0; kill < kills; kill++) {
      const enough = Math.floor(((kill + lab.random()) * all) / (kills + 1))
      const isReached = async () => (await look(services, tenant)).visits >= enough
      await eventually(`${enough} visits`, isReached, { withinMs: 300_000, everyMs: 5 })
      const both = kill % 3 === 2
      if (both || kill % 3 === 0) {
        await endProcess(worker)
        killed.worker += 1
      }
      if (both || kill % 3 === 1) {
        temporal.kill()
        await temporal.exited
        killed.Temporal += 1
        temporal = await startOwnTemporal(directory, temporal.port)
      }
      if (both || kill % 3 === 0) worker = start()
      lab.say(`kill ${kill + 1} of ${kills} after ${(await look(services, tenant)).visits} of ${all} visits`)
    }
    const isOver = async () => (await look(services, tenant)).completed === runs
    await eventually('every run to complete', isOver, { withinMs: 600_000, everyMs: 200 })
    const { visits, people: counted, ...seen } = await look(services, tenant)
    return {
      injected: { 'kill -9 of the worker': killed.worker, 'kill -9 of Temporal': killed.Temporal },
      seen: { runs, visits, ...seen },
      claims: [
        is('visits of steps', visits, all),
        is('people', counted, runs),
        ...Object.entries(seen).map(([name, count]) => is(name, count, runs)),
      ],
    }
  },
})

type Seen = Record<
  'visits' | 'people' | 'completed' | 'tagged' | 'counted once' | 'told' | 'untagged',
  number
>

/** Returns the state of all runs: each effect counted by its rows, and the counter field. */
async function look(services: TestServices, { id }: Tenant): Promise<Seen> {
  const seen = await row<Seen>(
    services.orm.em.fork(),
    sql`select (select count(*)::int from run_step where organization_id = ${id}) as visits,
        (select count(distinct subscriber_id)::int from automation_run where organization_id = ${id}) as people,
        (select count(*)::int from automation_run where organization_id = ${id} and status = 'COMPLETED') as completed,
        count(*) filter (where type = 'TAG_ADDED')::int as tagged,
        (select count(*)::int from subscriber where organization_id = ${id} and fields ->> 'passes' = '1') as "counted once",
        count(*) filter (where type = 'TOLD')::int as told,
        count(*) filter (where type = 'TAG_REMOVED')::int as untagged
      from subscriber_event where organization_id = ${id}`,
  )
  if (!seen) throw new Error('nothing was counted')
  return seen
}
