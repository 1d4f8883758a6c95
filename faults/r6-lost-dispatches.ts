import { sql } from 'kysely'

import { execute, row } from '../src/database.ts'
import { recordEvents } from '../src/domain/events.ts'
import { claimOutbox } from '../src/domain/outbox.ts'
import { edges, makeTenant, publish, runsOf, step } from '../test/helpers/automation.ts'
import { testServices } from '../test/helpers/database.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { startEngine } from '../worker/workers.ts'
import { defineExperiment, is } from './experiment.ts'

const STEPS = [
  step('start', 'TRIGGER', { type: 'EVENT', eventType: 'GO' }),
  step('first', 'ADD_TAG', { tagNames: ['first'] }),
]

/**
 * The start of a run is an outbox row that is committed with the run. The relay crashes either before it starts the
 * workflow (the row stays, leased), or after that and before it deletes the row (the row is dispatched again; here a
 * copy of the row does so).
 */
export const lostDispatches = defineExperiment({
  id: 'R6',
  title: 'a crash between the commit of a start and its dispatch, or between that and its receipt',
  sizes: { small: { runs: 20 }, full: { runs: 1_000 } },
  async run(lab, { runs }) {
    const services = await testServices({ TEMPORAL_TASK_QUEUE: `faults-r6-${process.pid}` })
    lab.defer(() => services.close())
    const em = () => services.orm.em.fork()
    const tenant = await makeTenant(services)
    const automation = await publish(services, tenant, { steps: STEPS, edges: edges(['start', 'first']) })
    const people = await Promise.all(Array.from({ length: runs }, () => tenant.subscribe()))
    await tenant.within((call) =>
      recordEvents(
        call,
        people.map((subscriberId) => ({ subscriberId, type: 'GO' })),
      ),
    )
    let unsaid = 0
    while (unsaid < runs / 2) {
      unsaid += (await claimOutbox(em(), Math.min(1 + Math.floor(lab.random() * 20), runs - unsaid), 1))
        .length
    }
    const unheard = await execute(
      em(),
      sql`insert into outbox (organization_id, workflow_id, kind, payload)
        select organization_id, workflow_id, kind, payload from outbox where hashtext(id::text || ${String(lab.seed)}) % 2 = 0`,
    )
    lab.say(`${unsaid} starts were taken and not told, ${unheard} are told twice`)
    const engine = await startEngine(services)
    lab.defer(() => engine.stop())
    const isOver = async () =>
      (await runsOf(services, tenant, automation.id)).every(({ status }) => status === 'COMPLETED')
    await eventually('every run to complete', isOver, { withinMs: 600_000, everyMs: 200 })
    const isTold = async () => (await row(em(), sql`select 1 from outbox limit 1`)) === null
    await eventually('an empty outbox', isTold, { withinMs: 60_000 })
    const seen = await row<Record<'runs' | 'people' | 'tagged' | 'started' | 'completed', number>>(
      em(),
      sql`select (select count(*)::int from automation_run where organization_id = ${tenant.id}) as runs,
        (select count(distinct subscriber_id)::int from automation_run where organization_id = ${tenant.id}) as people,
        count(*) filter (where type = 'TAG_ADDED')::int as tagged,
        count(*) filter (where type = 'WORKFLOW_STARTED')::int as started,
        count(*) filter (where type = 'WORKFLOW_COMPLETED')::int as completed
        from subscriber_event where organization_id = ${tenant.id}`,
    )
    return {
      injected: { 'taken and never told': unsaid, 'told and never forgotten': unheard },
      seen: { runs, ...seen },
      claims: Object.entries(seen ?? { runs: -1 }).map(([name, count]) => is(name, count, runs)),
    }
  },
})
