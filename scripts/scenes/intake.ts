import { sql } from 'kysely'

import type { TimedTrigger, TriggerConfig } from '../../schema/automation-triggers.ts'
import { execute } from '../../src/database.ts'
import { beginIntake } from '../../src/domain/automations/entry/intake.ts'
import { encodeId } from '../../src/ids.ts'
import { TRIGGER_FIRING, triggerScheduleId } from '../../temporal/contract.ts'
import { edges, publish, step } from '../../test/helpers/automation.ts'
import { eventually } from '../../test/helpers/eventually.ts'
import type { Studio } from './studio.ts'

/** Intakes whose histories are recorded. Each function starts one and returns its workflow id. */
export const INTAKE_SCENES: Record<string, (studio: Studio) => Promise<string>> = {
  intake: (studio) => begin(studio),
  'intake-canceled': async (studio) => {
    const workflowId = await begin(studio, 'PAUSED')
    const client = await studio.services.temporal.client()
    const handle = client.workflow.getHandle(workflowId)
    await eventually('the intake to wait', async () => (await handle.describe()).historyLength > 10)
    await handle.cancel()
    return workflowId
  },
  'intake-failed': (studio) => begin(studio, 'ACTIVE', 'nobody made this one'),
  firing: async (studio) => {
    const hourAgo = new Date(Date.now() - 3_600_000).toISOString()
    await studio.tenant.subscribe(undefined, { day: hourAgo })
    const date = { type: 'DATE_FIELD', field: 'day', direction: 'AFTER', anniversary: false } as const
    return await beginFiring(studio, date, '1 day')
  },
  // The workflow starts a few seconds before its minute and waits for it.
  'firing-early': async (studio) => {
    await eventually('the end of a minute', () => [55, 56].includes(new Date().getSeconds()))
    return await beginFiring(studio, { type: 'SCHEDULE', cron: '* * * * *' }, '0 seconds')
  },
}

/** Starts the firing of a trigger that was last checked `ago`, without a Temporal schedule. Returns the workflow id. */
async function beginFiring(studio: Studio, config: TimedTrigger, ago: string): Promise<string> {
  const id = await publishTagging(studio, config)
  const { services, tenant } = studio
  await execute(
    services.orm.em.fork(),
    sql`insert into automation_schedule (organization_id, automation_id, step_id, timing, looked_until, next_at)
      values (${tenant.id}, ${id}, 'start', '{}', now() - ${ago}::interval, now())`,
  )
  const automationId = encodeId('wf', id)
  const workflowId = triggerScheduleId('histories', automationId, 'start')
  const input = { organizationId: encodeId('org', tenant.id), automationId, stepId: 'start' }
  await tenant.within((call) => {
    call.emit({
      kind: 'start',
      workflowId,
      payload: { workflow: TRIGGER_FIRING, input, summary: `${config.type} of Recorded` },
    })
    return Promise.resolve()
  })
  return workflowId
}

/** Publishes an automation that tags everybody who enters by this trigger, and returns its uuid. */
async function publishTagging({ services, tenant }: Studio, config: TriggerConfig): Promise<string> {
  const steps = [step('start', 'TRIGGER', config), step('tag', 'ADD_TAG', { tagNames: ['in'] })]
  const graph = { steps, edges: edges(['start', 'tag']) }
  return (await publish(services, tenant, graph, { name: 'Recorded' })).id
}

/** Starts an intake into an automation with this status and returns the workflow id. */
export async function begin(studio: Studio, status = 'ACTIVE', tag?: string): Promise<string> {
  const id = await publishTagging(studio, { type: 'MANUAL' })
  const { services, tenant } = studio
  await execute(
    services.orm.em.fork(),
    sql`update automation set status = ${status} where organization_id = ${tenant.id} and id = ${id}`,
  )
  const filters = tag === undefined ? [] : [{ field: 'tags', operator: 'has_any' as const, value: [tag] }]
  const workflowId = await tenant.within((call) =>
    beginIntake(call, {
      automation: { id, name: 'Recorded' },
      filters,
      cause: { type: 'MANUAL' },
      most: 5,
      expected: 5,
    }),
  )
  if (workflowId === null) throw new Error('no intake was begun')
  return workflowId
}
