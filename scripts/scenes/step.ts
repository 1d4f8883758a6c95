import type { SuccessGoal } from '../../schema/automation-goals.ts'
import { WAIT_MODES, type WaitUntilConfigs } from '../../schema/automation-steps.ts'
import { recordEvents } from '../../src/domain/events.ts'
import { updateSubscriber } from '../../src/domain/subscribers/subscribers.ts'
import { encodeId } from '../../src/ids.ts'
import { edges, publish, step } from '../../test/helpers/automation.ts'
import { type Endpoints, status } from '../../test/helpers/endpoint.ts'
import { chain, START } from '../../test/helpers/engine.ts'
import { enter, pay, SHORT, untilWaiting } from './run.ts'
import type { Studio as Stage } from './studio.ts'

type Studio = Stage & { endpoints: Endpoints }

const SECOND = { amount: 1, unit: 'SECONDS' } as const
const ONCE = { windowDays: 30, countFrom: 'ENTRY' } as const
const PAID: SuccessGoal = { ...ONCE, id: 'paid', name: 'Paid', event: 'PAID', exitOnReach: false }
const CAME: SuccessGoal = { ...ONCE, id: 'came', name: 'Came', event: 'CAME', exitOnReach: true }

/**
 * Runs through the types of steps that no other scene covers, whose histories are recorded. Each function starts one
 * and returns its workflow id. A history records only the last five steps of a turn, so no scene has more without a
 * wait.
 */
export const STEP_SCENES: Record<string, (studio: Studio) => Promise<string>> = {
  changes: async (studio) => {
    const other = await publish(studio.services, studio.tenant, chain([SHORT]), { name: 'Recorded' })
    const workflowId = encodeId('wf', other.id)
    const { run } = await enter(
      studio,
      chain([
        step('tag', 'ADD_TAG', { tagNames: ['Passing'] }),
        step('untag', 'REMOVE_TAG', { tagNames: ['Passing'] }),
        step('field', 'UPDATE_FIELD', { set: { plan: 'free' }, increment: { points: 1 } }),
        step('told', 'CREATE_EVENT', { eventType: 'TOLD' }),
        SHORT,
        step('team', 'NOTIFY', { to: 'team@example.com', subject: 'News', markdown: 'Somebody came.' }),
        step('start-other', 'START_WORKFLOW', { workflowId }),
        step('stop-other', 'STOP_WORKFLOW', { workflowId }),
        // This also ends the run.
        step('leave', 'SUBSCRIPTION', { action: 'UNSUBSCRIBE' }),
      ]),
    )
    return run
  },
  choices: async (studio) => {
    const variants = [
      { id: 'all', weight: 1 },
      { id: 'none', weight: 0 },
    ]
    const { run } = await enter(studio, {
      steps: [
        START,
        step('half', 'SPLIT', { variants, sticky: true }),
        step('hold', 'THROTTLE', { limit: 1, per: SECOND, overflow: 'HOLD' }),
        step('once', 'THROTTLE', { limit: 1, per: { amount: 1, unit: 'DAYS' }, overflow: 'SKIP' }),
        step('again', 'JUMP', { toStepId: 'hold', maxTimes: 1 }),
        step('out', 'EXIT', { reason: 'full' }),
      ],
      edges: edges(
        ['start', 'half'],
        ['half', 'all', 'hold'],
        ['hold', 'next', 'once'],
        ['once', 'next', 'again'],
        ['once', 'skipped', 'out'],
      ),
    })
    return run
  },
  until: async (studio) => {
    const date = step('date', 'UPDATE_FIELD', { set: { visit: '2099-01-01', plan: 'free' } })
    // Histories do not record the mode of a wait, so the id of each step is its mode.
    const waits = WAIT_MODES.map((mode) => step(mode, 'WAIT_UNTIL', UNTIL[mode]))
    const who = await enter(studio, chain([date, ...waits]))
    const { tenant } = studio
    const update = (fields: Record<string, unknown>) =>
      tenant.within((call) => updateSubscriber(call, who.ids.subscriberId, { fields }))
    await untilWaiting(studio, who, 'FIELD_DATE')
    await update({ visit: '2020-01-01' })
    await pay(studio, who, 'EVENT')
    await untilWaiting(studio, who, 'CONDITION')
    await update({ plan: 'pro' })
    return who.run
  },
  goals: async (studio) => {
    const steps = [
      step('early', 'GOAL', { goalId: 'paid', ifUnmet: 'CONTINUE' }),
      step('awaited', 'GOAL', { goalId: 'paid', ifUnmet: 'WAIT' }),
      step('met', 'GOAL', { goalId: 'paid', ifUnmet: 'EXIT' }),
      step('last', 'GOAL', { goalId: 'came', ifUnmet: 'WAIT' }),
    ]
    const who = await enter(studio, { ...chain(steps), successGoals: [PAID, CAME] })
    await pay(studio, who, 'awaited')
    await untilWaiting(studio, who, 'last')
    const { subscriberId } = who
    await studio.tenant.within((call) => recordEvents(call, [{ subscriberId, type: 'CAME', data: {} }]))
    return who.run
  },
  webhooks: async (studio) => {
    const { endpoints } = studio
    endpoints.answer('/down', status(503))
    const hook = (id: string, path: string, retries: number) =>
      step(id, 'WEBHOOK', { url: endpoints.url + path, method: 'POST', timeoutSeconds: 5, retries })
    const steps = [START, hook('answered', '/up', 0), hook('refused', '/down', 1), hook('broken', '/down', 0)]
    const way = edges(['start', 'answered', 'refused'], ['refused', 'failed', 'broken'])
    const { run } = await enter(studio, { steps, edges: way })
    return run
  },
}

const UNTIL: WaitUntilConfigs = {
  DATE: { mode: 'DATE', date: '2099-01-01', timeout: SECOND, onTimeout: 'CONTINUE' },
  FIELD_DATE: {
    mode: 'FIELD_DATE',
    field: 'visit',
    direction: 'AFTER',
    anniversary: false,
    ifMissing: 'CONTINUE',
    ifPast: 'CONTINUE',
    onTimeout: 'CONTINUE',
  },
  TIME_WINDOW: {
    mode: 'TIME_WINDOW',
    start: '00:00',
    end: '00:01',
    timeout: SECOND,
    onTimeout: 'CONTINUE',
  },
  EVENT: { mode: 'EVENT', eventType: 'PAID', scope: 'STEP', onTimeout: 'CONTINUE' },
  CONDITION: {
    mode: 'CONDITION',
    filters: [{ field: 'customFields.plan', operator: 'equals', value: 'pro' }],
    onTimeout: 'CONTINUE',
  },
}
