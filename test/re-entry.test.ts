import { createHmac, randomUUID } from 'node:crypto'

import test from 'ava'
import { sql } from 'kysely'

import type { ReEntry } from '../schema/automation.ts'
import { TRIGGER_TYPES, type TriggerConfig, type TriggerType } from '../schema/automation-triggers.ts'
import { execute, row } from '../src/database.ts'
import { decodeId } from '../src/ids.ts'
import { startEchoWatch } from '../worker/echo-watch.ts'
import { startSegmentWatch } from '../worker/segment-watch.ts'
import type { TestOrganization } from './helpers/api.ts'
import { step } from './helpers/automation.ts'
import { eventually } from './helpers/eventually.ts'
import { ago, HOUR, openStudio, person, type Studio } from './helpers/timed.ts'

let studio: Studio
const watches: { stop(): Promise<void> }[] = []

test.before(async () => {
  studio = await openStudio('re-entry')
  watches.push(startSegmentWatch(studio.api.services), startEchoWatch(studio.api.services))
})
test.after.always(async () => {
  for (const watch of watches) await watch.stop()
  await studio?.close()
})

/** A workflow of one mode, with what its publication answered. */
type Live = { workflowId: string; webhook: { slug: string; secret: string } | undefined }
type Scene = { organization: TestOrganization; ann: string; lives: readonly Live[] }

/** How a trigger is fired for ann, and the keys that its four firings have (none: its events carry no key). */
type Kind = {
  config: (scene: Omit<Scene, 'lives'>) => Promise<TriggerConfig> | TriggerConfig
  keyPath?: string
  keys?: [string, string, string, string]
  fire: (scene: Scene, round: number) => Promise<unknown>
}

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

const KINDS: Record<TriggerType, Kind> = {
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
      await still(scene)
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
      await still(scene)
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
        // As if the times before had been some hours earlier.
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
          return (await decidedOf(each)).length > round
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
      for (const { webhook } of lives) await post(webhook, { subscriberId: ann, order: { id: KEYS[round] } })
    },
  },
  MANUAL: {
    config: () => ({ type: 'MANUAL' }),
    keyPath: 'order.id',
    keys: ['a', 'a', 'b', 'a'],
    fire: async ({ organization, ann, lives }, round) => {
      for (const { workflowId } of lives) {
        const context = { order: { id: KEYS[round] } }
        await organization.call('add_subscriber_to_workflow', { workflowId, subscriberId: ann, context })
      }
    },
  },
}

const STATES = TRIGGER_TYPES.filter((type) => /^(UN)?SUBSCRIBED|^TAG_|^FIELD_|^SEGMENT_/.test(type))
const MODES = ['ONCE', 'EVERY_TIME', 'AFTER_EXIT', 'PER_KEY', 'DEFAULT'] as const
type Mode = (typeof MODES)[number]

/** What becomes of four firings, of which the last comes when the runs before it are over. */
function expected(type: TriggerType, mode: Mode, keys: readonly (string | undefined)[]): string[] {
  const rule = mode === 'DEFAULT' ? (STATES.includes(type) ? 'ONCE' : 'AFTER_EXIT') : mode
  const active = new Set<string>()
  let entries = 0
  return keys.map((key, round) => {
    if (round === 3) active.clear()
    if (rule === 'PER_KEY' && key === undefined) return 'NO_KEY'
    const slot = rule === 'PER_KEY' ? (key ?? '') : rule === 'EVERY_TIME' ? `${round}` : ''
    if (active.has(slot)) return 'ALREADY_ACTIVE'
    if (rule === 'ONCE' && entries > 0) return 'ALREADY_ENTERED'
    active.add(slot)
    entries += 1
    return 'ENTERED'
  })
}

/** What became of each firing: the runs that it made, and the refusals, in order of time. */
async function decidedOf({ workflowId }: Live): Promise<string[]> {
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

/** Until the segments have nothing left to look at. */
async function still({ organization }: Scene): Promise<void> {
  await eventually(
    'the segments to settle',
    async () => {
      const left = await row(
        studio.api.services.orm.em.fork(),
        sql`select 1 from segment_change where organization_id = ${organization.id}
        union all select 1 from watched_segment where organization_id = ${organization.id} and recheck_at is not null`,
      )
      return left === null
    },
    { withinMs: 30_000 },
  )
}

async function post(webhook: Live['webhook'], body: object): Promise<void> {
  const [id, at, raw] = [randomUUID(), Math.floor(Date.now() / 1000), JSON.stringify(body)]
  const key = Buffer.from(webhook?.secret.replace('whsec_', '') ?? '', 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${at}.${raw}`).digest('base64')
  await studio.api.request('POST', `/api/v1/integrations/webhook/${webhook?.slug}`, {
    raw,
    headers: { 'webhook-id': id, 'webhook-timestamp': String(at), 'webhook-signature': `v1,${signature}` },
  })
}

async function live(scene: Omit<Scene, 'lives'>, config: TriggerConfig, reEntry?: ReEntry): Promise<Live> {
  const { organization } = scene
  const { workflow } = await organization.data('create_workflow', { name: `${config.type} ${reEntry?.mode}` })
  await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    settings: { timezone: 'UTC', exitOnUnsubscribe: false, ...(reEntry && { reEntry }) },
    steps: [step('start', 'TRIGGER', config), step('pause', 'WAIT', { amount: 3, unit: 'DAYS' })],
    edges: [{ from: 'start', to: 'pause' }],
  })
  const { body } = await organization.confirmed('publish_workflow', { workflowId: workflow.id })
  if (body.success !== true) throw new Error(JSON.stringify(body))
  return { workflowId: workflow.id, webhook: body.data.inboundWebhooks[0] }
}

for (const type of TRIGGER_TYPES) {
  test(`every mode of re-entry holds for ${type}`, async (t) => {
    const {
      config,
      keyPath = 'none',
      keys = [undefined, undefined, undefined, undefined],
      fire,
    } = KINDS[type]
    const organization = await studio.api.organization()
    const ann = await person(organization, 'ann')
    const trigger = await config({ organization, ann })
    const lives = await Promise.all(
      MODES.map((mode) =>
        live(
          { organization, ann },
          trigger,
          mode === 'DEFAULT' ? undefined : { mode, ...(mode === 'PER_KEY' && { keyPath }) },
        ),
      ),
    )
    const scene = { organization, ann, lives }
    for (let round = 0; round < 4; round++) {
      if (round === 3) {
        for (const { workflowId } of lives)
          await organization.call('remove_subscriber_from_workflow', { workflowId, subscriberId: ann })
      }
      await fire(scene, round)
      for (const each of lives) {
        const isDecided = async () => (await decidedOf(each)).length > round
        await eventually(`firing ${round} of ${type}`, isDecided, { withinMs: 60_000 })
      }
    }
    const decided = Object.fromEntries(
      await Promise.all(lives.map(async (each, index) => [MODES[index], await decidedOf(each)] as const)),
    )
    t.deepEqual(decided, Object.fromEntries(MODES.map((mode) => [mode, expected(type, mode, keys)])))
    await eventually(
      'every run to begin in Temporal',
      async () => {
        const unbegun = await row(
          studio.api.services.orm.em.fork(),
          sql`select 1 from automation_run where organization_id = ${organization.id} and status = 'QUEUED'`,
        )
        return unbegun === null
      },
      { withinMs: 60_000 },
    )
  })
}
