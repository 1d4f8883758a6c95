import { sql } from 'kysely'

import type { TriggerConfig } from '../../schema/automation-triggers.ts'
import type { Settings } from '../../schema/automation.ts'
import { execute, row, rows } from '../../src/database.ts'
import { decodeId } from '../../src/ids.ts'
import { triggerScheduleId } from '../../temporal/contract.ts'
import { startEngine } from '../../worker/workers.ts'
import { type Answer, startApi, type TestApi, type TestOrganization } from './api.ts'
import { step } from './automation.ts'
import { eventually } from './eventually.ts'

const EVERY_TIME = { timezone: 'UTC', reEntry: { mode: 'EVERY_TIME' } } as const
export const HOUR = 3_600_000

type Row = { lookedUntil: string; nextAt: string | null }

/** An API and an engine for workflows whose trigger is the step "start". */
export type Studio = {
  api: TestApi
  /** Publishes a workflow with this trigger and a tag step after it. Returns its id. */
  live(organization: TestOrganization, config: TriggerConfig, settings?: Partial<Settings>): Promise<string>
  /** Makes Temporal's schedule fire now, and waits until the entry of everybody it found is decided. */
  fire(workflowId: string): Promise<void>
  /** Makes the trigger's last check appear to be `milliseconds` ago. */
  rewind(workflowId: string, milliseconds: number): Promise<void>
  /** Returns the names of the subscribers who entered, one for each run. */
  entered(workflowId: string): Promise<string>
  rowOf(workflowId: string): Promise<Row | null>
  handleOf(workflowId: string): Promise<ScheduleHandle>
  /** Waits until no intake is in progress. */
  settled(workflowId: string): Promise<void>
  close(): Promise<void>
}

type ScheduleHandle = ReturnType<
  Awaited<ReturnType<TestApi['services']['temporal']['client']>>['schedule']['getHandle']
>

/** Saves a draft with this trigger and a tag step after it. */
export async function draft(
  organization: TestOrganization,
  config: object,
  settings: object = {},
): Promise<Answer> {
  const { workflow } = await organization.data('create_workflow', { name: 'Timed' })
  return await organization.call('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    settings,
    steps: [{ id: 'start', type: 'TRIGGER', config }, step('seen', 'ADD_TAG', { tagNames: ['seen'] })],
    edges: [{ from: 'start', to: 'seen' }],
  })
}

/** Adds a subscriber with this name. */
export async function person(
  organization: TestOrganization,
  name: string,
  fields: object = {},
): Promise<string> {
  const input = { email: `${name}@example.com`, name, fields }
  const { subscriber } = await organization.data('add_subscriber', input)
  return subscriber.id
}

/** Returns the UTC date and time of day of a moment `milliseconds` ago. */
export function ago(milliseconds: number): { day: string; time: string } {
  const text = new Date(Date.now() - milliseconds).toISOString()
  return { day: text.slice(0, 10), time: text.slice(11, 16) }
}

/** Starts an API and an engine with task queues of their own. `env` overrides environment variables. */
export async function openStudio(name: string, env: Record<string, string> = {}): Promise<Studio> {
  const queue = `${name}-${process.pid}`
  const api = await startApi({ TEMPORAL_TASK_QUEUE: queue, LOG_LEVEL: 'error', ...env })
  const engine = await startEngine(api.services)
  await engine.ready
  const em = () => api.services.orm.em.fork()
  const made: string[] = []

  async function handleOf(workflowId: string): Promise<ScheduleHandle> {
    const client = await api.services.temporal.client()
    return client.schedule.getHandle(triggerScheduleId(queue, workflowId, 'start'))
  }

  async function rowOf(workflowId: string): Promise<Row | null> {
    return await row<Row>(
      em(),
      sql`select looked_until as "lookedUntil", next_at as "nextAt" from automation_schedule
        where automation_id = ${decodeId('wf', workflowId)}`,
    )
  }

  async function settled(workflowId: string): Promise<void> {
    const isOver = async () => {
      const open = await row(
        em(),
        sql`select 1 from automation_intake
          where automation_id = ${decodeId('wf', workflowId)} and status = 'RUNNING'`,
      )
      return open === null
    }
    await eventually('its intakes', isOver, { withinMs: 60_000 })
  }

  return {
    api,
    handleOf,
    rowOf,
    settled,
    async live(organization, config, settings = EVERY_TIME) {
      const { body } = await draft(organization, config, settings)
      if (body.success !== true) throw new Error(JSON.stringify(body))
      const workflowId: string = body.data.workflow.id
      const published = await organization.confirmed('publish_workflow', { workflowId })
      if (published.status !== 200) throw new Error(JSON.stringify(published.body))
      made.push(workflowId)
      return workflowId
    },
    async fire(workflowId) {
      const handle = await handleOf(workflowId)
      await eventually('the schedule', () => handle.describe())
      const before = (await rowOf(workflowId))?.lookedUntil
      const look = async () => {
        // Triggering a schedule twice in a second makes it fire only once.
        await handle.trigger()
        return (await rowOf(workflowId))?.lookedUntil !== before
      }
      await eventually('a look', look, { withinMs: 90_000, everyMs: 1_000 })
      await settled(workflowId)
    },
    async rewind(workflowId, milliseconds) {
      await execute(
        em(),
        sql`update automation_schedule
          set looked_until = now() - make_interval(secs => ${milliseconds / 1000}::float8)
          where automation_id = ${decodeId('wf', workflowId)}`,
      )
    },
    async entered(workflowId) {
      const found = await rows<{ name: string }>(
        em(),
        sql`select s.name from automation_run run join subscriber s on s.id = run.subscriber_id
          where run.automation_id = ${decodeId('wf', workflowId)} order by s.name, run.number`,
      )
      return found.map(({ name: each }) => each).join(' ')
    },
    async close() {
      for (const id of made) {
        const handle = await handleOf(id)
        await handle.delete().catch(() => undefined)
      }
      await engine.stop()
      await api.close()
    },
  }
}
