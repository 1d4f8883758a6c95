import test from 'ava'

import { TRIGGER_TYPES } from '../schema/automation-triggers.ts'
import { decodeId } from '../src/ids.ts'
import { startEchoWatch } from '../worker/echo-watch.ts'
import { startSegmentWatch } from '../worker/segment-watch.ts'
import { runsOf, step, trailOf } from './helpers/automation.ts'
import { eventually } from './helpers/eventually.ts'
import { openStudio, person, type Studio } from './helpers/timed.ts'
import { type Kind, type Live, live, type Scene, triggerKinds } from './helpers/trigger-kinds.ts'
import { publishWorkflow } from './helpers/workflow.ts'

let studio: Studio
const watches: { stop(): Promise<void> }[] = []

test.before(async () => {
  studio = await openStudio('group-triggers')
  watches.push(startSegmentWatch(studio.api.services), startEchoWatch(studio.api.services))
})
test.after.always(async () => {
  for (const watch of watches) await watch.stop()
  await studio?.close()
})

const START = step('start', 'TRIGGER', { type: 'MANUAL' })

/** Ways in beside the triggers. */
const WAYS: Record<'add_subscribers_to_workflow' | 'START_WORKFLOW', Kind> = {
  add_subscribers_to_workflow: {
    config: () => ({ type: 'MANUAL' }),
    fire: async ({ organization, lives }) => {
      const filters = [{ field: 'name', operator: 'is_set' }]
      for (const { workflowId } of lives) {
        await organization.confirmed('add_subscribers_to_workflow', { workflowId, filters })
      }
    },
  },
  START_WORKFLOW: {
    config: () => ({ type: 'MANUAL' }),
    fire: async ({ organization, ann, lives }) => {
      const steps = lives.map(({ workflowId }, index) =>
        step(`go-${index}`, 'START_WORKFLOW', { workflowId }),
      )
      const workflowId = await publishWorkflow(organization, [START, ...steps])
      await organization.data('add_subscriber_to_workflow', { workflowId, subscriberId: ann })
    },
  },
}

const STAYS = ['WAITING', 'SKIPPED GROUP_CONFLICT'] as const
const GIVES_WAY = ['CANCELED GROUP_CONFLICT', 'WAITING'] as const

/** What becomes of a run that is in the group, and of one that comes with this priority beside its 50. */
const CASES = [
  ['FIRST_WINS', 90, STAYS],
  ['LAST_WINS', 10, GIVES_WAY],
  ['PRIORITY', 50, STAYS],
  ['PRIORITY', 51, GIVES_WAY],
  ['QUEUE', 90, ['WAITING', 'QUEUED']],
] as const

/** A group with somebody in it, and a workflow of the group that they have not come to. */
async function contested(
  scene: Omit<Scene, 'lives'>,
  config: Awaited<ReturnType<Kind['config']>>,
  [conflictStrategy, priority]: (typeof CASES)[number],
): Promise<{ holder: Live; newcomer: Live }> {
  const { organization, ann } = scene
  const name = `${conflictStrategy} ${priority}`
  const { group } = await organization.data('create_workflow_group', { name, conflictStrategy })
  const holder = await live(scene, { type: 'MANUAL' })
  const newcomer = await live(scene, config, { priority })
  for (const { workflowId } of [holder, newcomer]) {
    await organization.data('set_workflow_group', { workflowId, groupId: group.id })
  }
  const { workflowId } = holder
  await organization.data('add_subscriber_to_workflow', { workflowId, subscriberId: ann })
  return { holder, newcomer }
}

/** The runs of workflows, as "STATUS REASON". */
async function statesOf({ organization }: Omit<Scene, 'lives'>, lives: readonly Live[]): Promise<string[]> {
  const { services } = studio.api
  const found = lives.map(async ({ workflowId }) => {
    const runs = await runsOf(services, organization, decodeId('wf', workflowId))
    return runs.map(({ status, exitReason }) => [status, exitReason].filter(Boolean).join(' ')).join(', ')
  })
  return await Promise.all(found)
}

const KINDS = [...TRIGGER_TYPES, 'add_subscribers_to_workflow', 'START_WORKFLOW'] as const

for (const name of KINDS) {
  test(`every strategy of groups holds for who comes by ${name}`, async (t) => {
    const { config, fire } = { ...triggerKinds(studio), ...WAYS }[name]
    const organization = await studio.api.organization()
    const ann = await person(organization, 'ann')
    const scene = { organization, ann }
    const trigger = await config(scene)
    const pairs = await Promise.all(CASES.map((each) => contested(scene, trigger, each)))
    const [holders, newcomers] = [pairs.map(({ holder }) => holder), pairs.map(({ newcomer }) => newcomer)]
    const become = (what: string, lives: readonly Live[], expected: readonly string[]) =>
      eventually(
        `${what} to be ${expected.join(', ')}`,
        async () => (await statesOf(scene, lives)).join() === expected.join(),
        { withinMs: 90_000 },
      )
    await become(
      'who is in the groups',
      holders,
      CASES.map(() => 'WAITING'),
    )
    await fire({ ...scene, lives: newcomers }, 0)
    await become(
      'who was in the groups',
      holders,
      CASES.map(([, , [first]]) => first),
    )
    await become(
      'who came',
      newcomers,
      CASES.map(([, , [, second]]) => second),
    )
    const [queued] = await runsOf(
      studio.api.services,
      organization,
      decodeId('wf', newcomers.at(-1)?.workflowId ?? ''),
    )
    t.deepEqual(await trailOf(studio.api.services, queued?.id ?? ''), [])
    const workflowId = holders.at(-1)?.workflowId
    await organization.data('remove_subscriber_from_workflow', { workflowId, subscriberId: ann })
    await become('who queued', newcomers.slice(-1), ['WAITING'])
  })
}
