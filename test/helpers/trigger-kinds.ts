import { createHmac, randomUUID } from 'node:crypto'

import { sql } from 'kysely'

import type { TriggerConfig, TriggerType } from '../../schema/automation-triggers.ts'
import type { Settings, Step } from '../../schema/automation.ts'
import { execute, row } from '../../src/database.ts'
import { decodeId } from '../../src/ids.ts'
import type { TestOrganization } from './api.ts'
import { step } from './automation.ts'
import { eventually } from './eventually.ts'
import { alongPorts } from './every-step.ts'
import { ago, HOUR, type Studio } from './timed.ts'

/**
 * A published workflow with one trigger, the step "start", and a wait after it; and the webhook that its publication
 * returned.
 */
export type Live = { workflowId: string; webhook: { slug: string; secret: string } | undefined }
/** A subscriber, and workflows that all have the same trigger. */
export type Scene = { organization: TestOrganization; ann: string; lives: readonly Live[] }

/** How to fire a trigger for `ann`, and the re-entry keys of its four firings (undefined if its events have no key). */
export type Kind = {
  config: (scene: Omit<Scene, 'lives'>) => Promise<TriggerConfig> | TriggerConfig
  keyPath?: string
  keys?: [string, string, string, string]
  fire: (scene: Scene, round: number) => Promise<unknown>
}

/** Returns all types of triggers. Some need a studio that watches segments and echoes. */
export function triggerKinds(studio: Studio): Record<TriggerType, Kind> {
  const KEYS = ['a', 'a', 'b', 'a'] as const
  const update = ({ organization, ann }: Scene, change: object) =>
    organization.data('update_subscriber', { subscriber: ann, ...change })
  const tags = async (scene: Scene, names: string[]) => {
    await update(scene, { tags: names, replaceTags: true })
  }
  const unsubscribe = ({ organization, ann }: Scene) =>
    organization.confirmed('unsubscribe', { subscriberId: ann })
  const segmentOf = async (organization: TestOrganization) => {
    await organization.data('get_or_create_tags', { names: ['in'] })
    const filters = [{ field: 'tags', operator: 'has_any', value: ['in'] }]
    const { segment } = await organization.data('create_segment', { name: 'In', filters })
    return String(segment.id)
  }
  const look = async (each: Live) => {
    await studio.rewind(each.workflowId, HOUR)
    await studio.fire(each.workflowId)
  }
  let source = ''

  return {
    SUBSCRIBED: {
      config: () => ({ type: 'SUBSCRIBED' }),
      fire: async (scene) => {
        await unsubscribe(scene)
        await update(scene, { resubscribe: true })
      },
    },
    UNSUBSCRIBED: {
      config: () => ({ type: 'UNSUBSCRIBED' }),
      fire: async (scene, round) => {
        if (round > 0) await update(scene, { resubscribe: true })
        await unsubscribe(scene)
      },
    },
    TAG_ADDED: {
      config: () => ({ type: 'TAG_ADDED', tagNames: ['a', 'b'] }),
      keyPath: 'tag',
      keys: ['a', 'a', 'b', 'a'],
      fire: async (scene, round) => {
        await tags(scene, [])
        await tags(scene, [KEYS[round] ?? ''])
      },
    },
    TAG_REMOVED: {
      config: () => ({ type: 'TAG_REMOVED', tagNames: ['a', 'b'] }),
      keyPath: 'tag',
      keys: ['a', 'a', 'b', 'a'],
      fire: async (scene, round) => {
        await tags(scene, [KEYS[round] ?? ''])
        await tags(scene, [])
      },
    },
    FIELD_UPDATED: {
      config: () => ({ type: 'FIELD_UPDATED', field: 'name' }),
      keyPath: 'to',
      keys: ['even', 'odd', 'even', 'odd'],
      fire: (scene, round) => update(scene, { name: round % 2 === 0 ? 'even' : 'odd' }),
    },
    SEGMENT_ENTERED: {
      config: async ({ organization }) => ({
        type: 'SEGMENT_ENTERED',
        segmentId: await segmentOf(organization),
      }),
      keyPath: 'segmentId',
      keys: ['same', 'same', 'same', 'same'],
      fire: async (scene) => {
        await tags(scene, [])
        await still(studio, scene)
        await tags(scene, ['in'])
      },
    },
    SEGMENT_EXITED: {
      config: async ({ organization }) => ({
        type: 'SEGMENT_EXITED',
        segmentId: await segmentOf(organization),
      }),
      keyPath: 'segmentId',
      keys: ['same', 'same', 'same', 'same'],
      fire: async (scene) => {
        await tags(scene, ['in'])
        await still(studio, scene)
        await tags(scene, [])
      },
    },
    EVENT: {
      config: () => ({ type: 'EVENT', eventType: 'SUBSCRIBER_PAYMENT' }),
      keyPath: 'currency',
      keys: ['EUR', 'EUR', 'USD', 'EUR'],
      fire: ({ organization, ann }, round) => {
        const currency = round === 2 ? 'USD' : 'EUR'
        const payment = { subscriberId: ann, eventType: 'SUBSCRIBER_PAYMENT', amount: 5, currency }
        return organization.data('create_event', payment)
      },
    },
    WORKFLOW_EVENT: {
      config: async ({ organization }) => {
        source = await studio.live(organization, { type: 'MANUAL' })
        return { type: 'WORKFLOW_EVENT', workflowId: source, event: 'WORKFLOW_COMPLETED' }
      },
      keyPath: 'exitReason',
      keys: ['END', 'END', 'END', 'END'],
      fire: ({ organization, ann }) =>
        organization.data('add_subscriber_to_workflow', { workflowId: source, subscriberId: ann }),
    },
    DATE_FIELD: {
      config: async ({ organization, ann }) => {
        await organization.data('update_subscriber', { subscriber: ann, fields: { day: '2000-01-01' } })
        return { type: 'DATE_FIELD', field: 'day', direction: 'AFTER', anniversary: false }
      },
      keyPath: 'date',
      keys: ['first', 'second', 'third', 'fourth'],
      fire: async (scene, round) => {
        await update(scene, {
          fields: { day: new Date(Date.now() - (50 - 10 * round) * 60_000).toISOString() },
        })
        for (const each of scene.lives) await look(each)
      },
    },
    SCHEDULE: {
      config: () => ({ type: 'SCHEDULE', cron: `${Number(ago(HOUR / 6).time.slice(3))} * * * *` }),
      fire: async ({ lives }, round) => {
        for (const each of lives) {
          // Moves the previous firing times some hours back, so that this one counts as later.
          await execute(
            studio.api.services.orm.em.fork(),
            sql`update automation_intake set due_to = due_to - make_interval(hours => ${round + 1}::int)
              where automation_id = ${decodeId('wf', each.workflowId)}`,
          )
          await look(each)
        }
      },
    },
    INACTIVITY: {
      config: () => ({
        type: 'INACTIVITY',
        eventType: 'SUBSCRIBER_PAYMENT',
        inactiveFor: { amount: 1, unit: 'SECONDS' },
      }),
      keyPath: 'inactiveSince',
      keys: ['first', 'second', 'third', 'fourth'],
      fire: async ({ organization, ann, lives }, round) => {
        await organization.data('create_event', {
          subscriberId: ann,
          eventType: 'SUBSCRIBER_PAYMENT',
          amount: 5,
        })
        for (const each of lives) {
          const isDecided = async () => {
            await look(each)
            return (await decidedOf(studio, each)).length > round
          }
          await eventually('the silence to be long enough', isDecided, { withinMs: 60_000 })
        }
      },
    },
    INBOUND_WEBHOOK: {
      config: () => ({ type: 'INBOUND_WEBHOOK' }),
      keyPath: 'order.id',
      keys: ['a', 'a', 'b', 'a'],
      fire: async ({ ann, lives }, round) => {
        for (const { webhook } of lives)
          await post(studio, webhook, { subscriberId: ann, order: { id: KEYS[round] } })
      },
    },
    MANUAL: {
      config: () => ({ type: 'MANUAL' }),
      keyPath: 'order.id',
      keys: ['a', 'a', 'b', 'a'],
      fire: async ({ organization, ann, lives }, round) => {
        for (const { workflowId } of lives) {
          // Long keys with the same beginning must count as different.
          const context = { order: { id: 'order '.repeat(100) + KEYS[round] } }
          await organization.call('add_subscriber_to_workflow', { workflowId, subscriberId: ann, context })
        }
      },
    },
  }
}

/** Returns the result of each firing in order of time: an entry or the reason of a refusal. */
export async function decidedOf(studio: Studio, { workflowId }: Live): Promise<string[]> {
  const found = await row<{ decided: string[] | null }>(
    studio.api.services.orm.em.fork(),
    sql`select array_agg(what order by at, id) as decided from (
        select 'ENTERED' as what, entered_at as at, id from automation_run
        where automation_id = ${decodeId('wf', workflowId)}
        union all select reason, created_at, id from decision
        where automation_id = ${decodeId('wf', workflowId)} and action = 'ENTRY_REFUSED') as each`,
  )
  return found?.decided ?? []
}

/** Waits until the segments have no work left. */
async function still(studio: Studio, { organization }: Scene): Promise<void> {
  await eventually('the segments to settle', async () => {
    const left = await row(
      studio.api.services.orm.em.fork(),
      sql`select 1 from segment_change where organization_id = ${organization.id}
        union all select 1 from watched_segment where organization_id = ${organization.id} and recheck_at is not null`,
    )
    return left === null
  })
}

async function post(studio: Studio, webhook: Live['webhook'], body: object): Promise<void> {
  const [id, at, raw] = [randomUUID(), Math.floor(Date.now() / 1000), JSON.stringify(body)]
  const key = Buffer.from(webhook?.secret.replace('whsec_', '') ?? '', 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${at}.${raw}`).digest('base64')
  await studio.api.request('POST', `/api/v1/integrations/webhook/${webhook?.slug}`, {
    raw,
    headers: { 'webhook-id': id, 'webhook-timestamp': String(at), 'webhook-signature': `v1,${signature}` },
  })
}

/** Publishes a workflow with this trigger, a wait, and the steps of `rest` in sequence. */
export async function live(
  { organization }: Omit<Scene, 'lives'>,
  config: TriggerConfig,
  { settings = {}, rest = [], successGoals = [] }: Partial<LiveOptions> = {},
): Promise<Live> {
  const { workflow } = await organization.data('create_workflow', { name: config.type })
  const steps = [
    step('start', 'TRIGGER', config),
    step('pause', 'WAIT', { amount: 3, unit: 'DAYS' }),
    ...rest,
  ]
  await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    settings: { timezone: 'UTC', exitOnUnsubscribe: false, ...settings },
    steps,
    edges: alongPorts(steps),
    successGoals,
  })
  const { body } = await organization.confirmed('publish_workflow', { workflowId: workflow.id })
  if (body.success !== true) throw new Error(JSON.stringify(body))
  return { workflowId: workflow.id, webhook: body.data.inboundWebhooks[0] }
}

type LiveOptions = { settings: Partial<Settings>; rest: readonly Step[]; successGoals: readonly object[] }
