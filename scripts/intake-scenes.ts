import { sql } from 'kysely'

import { execute } from '../src/database.ts'
import { beginIntake } from '../src/domain/automations/entry/intake.ts'
import { encodeId } from '../src/ids.ts'
import type { Services } from '../src/services.ts'
import { TRIGGER_FIRING, triggerScheduleId } from '../temporal/contract.ts'
import { edges, publish, step, type Tenant } from '../test/helpers/automation.ts'
import { eventually } from '../test/helpers/eventually.ts'

type Studio = { services: Services; tenant: Tenant }

/** Intakes to be recorded, by name: each begins one and answers the id of its workflow. */
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
  firing: beginFiring,
}

/** A look by a trigger for a date, without its schedule. */
async function beginFiring({ services, tenant }: Studio): Promise<string> {
  const date = { type: 'DATE_FIELD', field: 'day', direction: 'AFTER', anniversary: false } as const
  const steps = [step('start', 'TRIGGER', date), step('tag', 'ADD_TAG', { tagNames: ['in'] })]
  const { id } = await publish(
    services,
    tenant,
    { steps, edges: edges(['start', 'tag']) },
    { name: 'Recorded' },
  )
  const hourAgo = new Date(Date.now() - 3_600_000).toISOString()
  await tenant.subscribe(undefined, { day: hourAgo })
  await execute(
    services.orm.em.fork(),
    sql`insert into automation_schedule (organization_id, automation_id, step_id, timing, looked_until, next_at)
      values (${tenant.id}, ${id}, 'start', '{}', now() - interval '1 day', now())`,
  )
  const automationId = encodeId('wf', id)
  const workflowId = triggerScheduleId('histories', automationId, 'start')
  const input = { organizationId: encodeId('org', tenant.id), automationId, stepId: 'start' }
  await tenant.within((call) => {
    call.emit({
      kind: 'start',
      workflowId,
      payload: { workflow: TRIGGER_FIRING, input, summary: 'DATE_FIELD of Recorded' },
    })
    return Promise.resolve()
  })
  return workflowId
}

/** Begins an intake of an automation of this status and answers the id of its workflow. */
export async function begin({ services, tenant }: Studio, status = 'ACTIVE', tag?: string): Promise<string> {
  const steps = [step('start', 'TRIGGER', { type: 'MANUAL' }), step('tag', 'ADD_TAG', { tagNames: ['in'] })]
  const { id } = await publish(
    services,
    tenant,
    { steps, edges: edges(['start', 'tag']) },
    { name: 'Recorded' },
  )
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
