import test from 'ava'
import { sql } from 'kysely'

import { TRIGGER_TYPES, type TriggerType } from '../schema/automation-triggers.ts'
import { row } from '../src/database.ts'
import { startEchoWatch } from '../worker/echo-watch.ts'
import { startSegmentWatch } from '../worker/segment-watch.ts'
import { eventually } from './helpers/eventually.ts'
import { openStudio, person, type Studio } from './helpers/timed.ts'
import { decidedOf, live, triggerKinds } from './helpers/trigger-kinds.ts'

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

const STATES = TRIGGER_TYPES.filter((type) => /^(UN)?SUBSCRIBED|^TAG_|^FIELD_|^SEGMENT_/.test(type))
const MODES = ['ONCE', 'EVERY_TIME', 'AFTER_EXIT', 'PER_KEY', 'DEFAULT'] as const
type Mode = (typeof MODES)[number]

/** Returns the expected results of four firings. The last one comes after the earlier runs have ended. */
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

for (const type of TRIGGER_TYPES) {
  test(`every mode of re-entry holds for ${type}`, async (t) => {
    const {
      config,
      keyPath = 'none',
      keys = [undefined, undefined, undefined, undefined],
      fire,
    } = triggerKinds(studio)[type]
    const organization = await studio.api.organization()
    const ann = await person(organization, 'ann')
    const trigger = await config({ organization, ann })
    const lives = await Promise.all(
      MODES.map((mode) =>
        live(
          { organization, ann },
          trigger,
          mode === 'DEFAULT'
            ? {}
            : { settings: { reEntry: { mode, ...(mode === 'PER_KEY' && { keyPath }) } } },
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
        const isDecided = async () => (await decidedOf(studio, each)).length > round
        await eventually(`firing ${round} of ${type}`, isDecided, { withinMs: 60_000 })
      }
    }
    const decided = Object.fromEntries(
      await Promise.all(
        lives.map(async (each, index) => [MODES[index], await decidedOf(studio, each)] as const),
      ),
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
