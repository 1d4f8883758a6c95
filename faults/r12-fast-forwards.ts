import { sql } from 'kysely'

import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { array, execute, row } from '../src/database.ts'
import { recordEvents } from '../src/domain/events.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { startApi } from '../test/helpers/api.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { publishWorkflow } from '../test/helpers/workflow.ts'
import { startEngine } from '../worker/workers.ts'
import { ACTOR } from './actor.ts'
import { defineExperiment, is } from './experiment.ts'

const LONG = { amount: 3, unit: 'DAYS' }
const STEPS = [
  { id: 'start', type: 'TRIGGER', config: { type: 'EVENT', eventType: 'GO' } },
  { id: 'first', type: 'WAIT', config: LONG },
  { id: 'between', type: 'UPDATE_FIELD', config: { increment: { passes: 1 } } },
  { id: 'second', type: 'WAIT', config: LONG },
]

/** Several callers fast-forward the same wait at the same time, and repeat the call while its outcome is unknown. */
export const fastForwards = defineExperiment({
  id: 'R12',
  title: 'concurrent fast-forwards of the same runs',
  sizes: { small: { runs: 10, calls: 50 }, full: { runs: 100, calls: 500 } },
  async run(lab, { runs, calls }) {
    const api = await startApi({ TEMPORAL_TASK_QUEUE: `faults-r12-${process.pid}` })
    lab.defer(() => api.close())
    const engine = await startEngine(api.services)
    lab.defer(() => engine.stop())
    const organization = await api.organization()
    const workflowId = await publishWorkflow(organization, STEPS)
    const people = Array.from({ length: runs }, newId)
    const em = api.services.orm.em.fork()
    await execute(
      em,
      sql`insert into subscriber (id, organization_id, email, status)
        select id, ${organization.id}, id || '@reader.example', 'SUBSCRIBED' from unnest(${array(people, 'uuid')}) as id`,
    )
    await unitOfWork(api.services, { organizationId: organization.id, actor: ACTOR }, (call) =>
      recordEvents(
        call,
        people.map((subscriberId) => ({ subscriberId, type: 'GO' })),
      ),
    )
    const automationId = decodeId('wf', workflowId)
    type Seen = Record<'first' | 'second' | 'ended' | 'passes', number>
    const look = async (): Promise<Seen> => {
      const seen = await row<Seen>(
        em,
        sql`select count(*) filter (where current_step_id = 'first' and status = 'WAITING')::int as first,
            count(*) filter (where current_step_id = 'second' and status = 'WAITING')::int as second,
            (select count(*)::int from run_step where organization_id = ${organization.id}
              and outcome ->> 'result' = 'FAST_FORWARD') as ended,
            (select count(*)::int from subscriber where organization_id = ${organization.id}
              and fields ->> 'passes' = '1') as passes
          from automation_run where organization_id = ${organization.id} and automation_id = ${automationId}`,
      )
      if (!seen) throw new Error('nothing was counted')
      return seen
    }
    await eventually('all to wait', async () => (await look()).first === runs, { withinMs: 300_000 })
    lab.say(`${runs} runs wait`)
    const repeats = { unknown: 0 }
    const places = Array.from({ length: calls }, () => Math.floor(lab.random() * runs))
    // Every run is requested at least once.
    for (let run = 0; run < runs; run++) places[run] = run
    async function forward(place: number): Promise<string> {
      const input = {
        workflowId,
        subscriberId: encodeId('sub', people[place] ?? ''),
        expectedStepId: 'first',
      }
      const ask = async () => {
        const { status, body } = await organization.call('fast_forward_workflow_subscriber', input)
        if (status === 503) repeats.unknown += 1
        return status !== 503 && { status, body }
      }
      const { status, body } = await eventually('an answer', ask, { withinMs: 120_000 })
      return status === 200 ? `to ${body.data.toStep?.id}` : String(body.code)
    }
    const answers = await Promise.all(places.map(forward))
    const seen = await look()
    return {
      injected: { 'fast-forwards at once': calls, 'answered that the outcome is unknown': repeats.unknown },
      seen: { ...seen },
      claims: [
        is('callers told that their run went on to the second wait', answers.filter(isSecond).length, calls),
        is('waits that were ended', seen.ended, runs),
        is('runs in the second wait', seen.second, runs),
        is('people whose step between the waits was done once', seen.passes, runs),
      ],
    }
  },
})

function isSecond(answer: string): boolean {
  return answer === 'to second'
}
