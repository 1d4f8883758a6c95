import test from 'ava'

import { TRIGGER_TYPES } from '../schema/automation-triggers.ts'
import type { Step } from '../schema/automation.ts'
import { startLanes } from '../src/delivery/lanes.ts'
import { decodeId } from '../src/ids.ts'
import { startEchoWatch } from '../worker/echo-watch.ts'
import { startSegmentWatch } from '../worker/segment-watch.ts'
import { runsOf, step, trailOf } from './helpers/automation.ts'
import { type Endpoints, startEndpoints } from './helpers/endpoint.ts'
import { eventually } from './helpers/eventually.ts'
import { everyStep, missingKinds, WALK_FIELDS, WALK_GOALS } from './helpers/every-step.ts'
import { GROUP_CASES, type GroupCase } from './helpers/group-cases.ts'
import { QUICK } from './helpers/mailroom.ts'
import { startSmtpSink } from './helpers/smtp-sink.ts'
import { openStudio, person, type Studio } from './helpers/timed.ts'
import { type Kind, type Live, live, type Scene, triggerKinds } from './helpers/trigger-kinds.ts'
import { fastForward, publishWorkflow } from './helpers/workflow.ts'

let studio: Studio
let endpoints: Endpoints
const parts: { stop(): Promise<void> }[] = []

test.before(async () => {
  endpoints = await startEndpoints()
  const sink = await startSmtpSink()
  parts.push({ stop: () => sink.close() })
  studio = await openStudio('group-triggers', { ...endpoints.allow, RELAY_URL: sink.url })
  const { services } = studio.api
  parts.push(startSegmentWatch(services), startEchoWatch(services))
  parts.push(await startLanes(services, { workerName: 'test', lane: QUICK }))
})
test.after.always(async () => {
  for (const part of parts.toReversed()) await part.stop()
  await studio?.close()
  endpoints?.close()
})

const START = step('start', 'TRIGGER', { type: 'MANUAL' })

/** Ways to enter that are not triggers. */
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

/**
 * Creates a group with two workflows: one in which somebody has a run, and one that they have not entered, with `rest`
 * after its wait.
 */
async function contested(
  scene: Omit<Scene, 'lives'>,
  config: Awaited<ReturnType<Kind['config']>>,
  [conflictStrategy, priority]: GroupCase,
  rest: readonly Step[],
): Promise<{ holder: Live; newcomer: Live }> {
  const { organization, ann } = scene
  const name = `${conflictStrategy} ${priority}`
  const { group } = await organization.data('create_workflow_group', { name, conflictStrategy })
  const holder = await live(scene, { type: 'MANUAL' })
  const options = { settings: { priority }, rest, successGoals: WALK_GOALS }
  const newcomer = await live(scene, config, options)
  for (const { workflowId } of [holder, newcomer]) {
    await organization.data('set_workflow_group', { workflowId, groupId: group.id })
  }
  const { workflowId } = holder
  await organization.data('add_subscriber_to_workflow', { workflowId, subscriberId: ann })
  return { holder, newcomer }
}

/** Returns the runs of each workflow as "STATUS REASON". */
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
  test(`every strategy of groups holds for who comes by ${name}, who then walks through every kind of step`, async (t) => {
    const { config, fire } = { ...triggerKinds(studio), ...WAYS }[name]
    const organization = await studio.api.organization()
    const ann = await person(organization, 'ann', WALK_FIELDS)
    const scene = { organization, ann }
    const trigger = await config(scene)
    const otherWorkflowId = await publishWorkflow(organization, [START])
    const { steps, trail } = everyStep({ url: `${endpoints.url}/`, otherWorkflowId })
    t.deepEqual(missingKinds([START, ...steps]), [])
    const pairs = await Promise.all(GROUP_CASES.map((each) => contested(scene, trigger, each, steps)))
    const [holders, newcomers] = [pairs.map(({ holder }) => holder), pairs.map(({ newcomer }) => newcomer)]
    const become = (what: string, lives: readonly Live[], expected: readonly string[]) =>
      eventually(
        `${what} to be ${expected.join(', ')}`,
        async () => (await statesOf(scene, lives)).join() === expected.join(),
        { withinMs: 180_000 },
      )
    await become(
      'who is in the groups',
      holders,
      GROUP_CASES.map(() => 'WAITING'),
    )
    await fire({ ...scene, lives: newcomers }, 0)
    await become(
      'who was in the groups',
      holders,
      GROUP_CASES.map(([, , [first]]) => first),
    )
    await become(
      'who came',
      newcomers,
      GROUP_CASES.map(([, , [, second]]) => second),
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

    const walking = newcomers.filter((_, index) => GROUP_CASES[index]?.[2][1] !== 'SKIPPED GROUP_CONFLICT')
    for (const each of walking) {
      const input = { workflowId: each.workflowId, subscriberId: ann, expectedStepId: 'pause' }
      await fastForward(organization, input)
    }
    await become(
      'who walks',
      walking,
      walking.map(() => 'COMPLETED EXIT_STEP'),
    )
    for (const each of walking) {
      const [run] = await runsOf(studio.api.services, organization, decodeId('wf', each.workflowId))
      t.deepEqual(await trailOf(studio.api.services, run?.id ?? ''), [
        'start ENTERED→next',
        'pause FAST_FORWARD→next',
        ...trail,
      ])
    }
  })
}
