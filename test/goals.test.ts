import test from 'ava'

import { readGoals } from '../src/domain/automations/goals/goal-faults.ts'
import { valueOf, windowOf } from '../src/domain/automations/goals/goal-window.ts'
import { liftOf } from '../src/domain/automations/runs/lift.ts'
import { decideGoal, type GoalFacts } from '../src/domain/automations/steps/goal.ts'

test('goals are reached by an event or by filters, and every fault of them is told at once', (t) => {
  const paths = (raw: unknown) => readGoals(raw).faults.map(({ path }) => path)
  const bought = { id: 'bought', name: 'Bought', event: 'SUBSCRIBER_PAYMENT' }
  const read = readGoals([
    bought,
    { id: 'vip', name: 'VIP', filters: [{ field: 'name', operator: 'is_set' }] },
  ])
  t.deepEqual(read.faults, [])
  t.deepEqual(read.goals[0], { ...bought, windowDays: 30, countFrom: 'ENTRY', exitOnReach: true })
  t.deepEqual(paths(undefined), [])
  t.deepEqual(paths({}), ['successGoals'])
  t.deepEqual(paths(Array.from({ length: 21 }, (_, id) => ({ ...bought, id: `g${id}` }))), ['successGoals'])
  t.deepEqual(
    paths([
      'bought',
      { id: 'a', name: 'A' },
      { ...bought, filters: [] },
      {
        ...bought,
        windowDays: 91,
        countFrom: 'EXIT',
        valuePath: '..',
        where: [{ path: 'a', operator: 'no' }],
      },
      {
        id: 'b',
        name: 'B',
        where: [],
        valuePath: 'amount',
        filters: [{ field: 'nome', operator: 'is_set' }],
      },
      { ...bought, worth: 5 },
    ]),
    [
      'successGoals[0]',
      'successGoals[1]',
      'successGoals[2].filters',
      'successGoals[2].filters',
      'successGoals[3].windowDays',
      'successGoals[3].countFrom',
      'successGoals[3].valuePath',
      'successGoals[3].where[0].operator',
      'successGoals[3].id',
      'successGoals[4].where',
      'successGoals[4].valuePath',
      'successGoals[4].filters[0].field',
      'successGoals[5].worth',
      'successGoals[5].id',
    ],
  )
})

test('a GOAL step decides by its goal, its window and what it is to do where the goal is unmet', (t) => {
  const day = 86_400_000
  const window = windowOf({ countFrom: 'FIRST_EMAIL', windowDays: 2 }, { enteredAt: 0, firstEmailAt: day })
  t.deepEqual(window, { opensAt: day, expiresAt: 3 * day })
  t.is(windowOf({ countFrom: 'FIRST_EMAIL', windowDays: 2 }, { enteredAt: 0, firstEmailAt: null }), null)
  const decide = (
    ifUnmet: 'CONTINUE' | 'WAIT' | 'EXIT',
    facts: Partial<GoalFacts> = {},
    exitOnReach = false,
  ) => {
    const known = { reached: false, window, now: 2 * day, ...facts }
    const result = decideGoal({ goalId: 'g', ifUnmet }, { exitOnReach }, known)
    return { ...result, outcome: result.kind === 'waits' ? 'WAITING' : result.outcome.result }
  }
  t.like(decide('WAIT', { reached: true }), { kind: 'left', port: 'next', outcome: 'REACHED' })
  t.like(decide('WAIT', { reached: true }, true), { kind: 'ends', exitReason: 'GOAL' })
  t.like(decide('CONTINUE'), { kind: 'left', port: 'next', outcome: 'UNMET' })
  t.like(decide('EXIT'), { kind: 'ends', exitReason: 'EXIT_STEP', outcome: 'UNMET' })
  t.like(decide('WAIT'), { kind: 'waits', waitKind: 'GOAL', wakeAt: 3 * day })
  t.like(decide('WAIT', { now: 3 * day }), { kind: 'ends', exitReason: 'EXPIRED', outcome: 'UNMET' })
  t.like(decide('WAIT', { window: null }), { kind: 'ends', exitReason: 'EXPIRED', outcome: 'UNMET' })
})

test('a conversion is worth the number at the path of its goal', (t) => {
  const worth = (data: Record<string, unknown>, valuePath?: string) =>
    valueOf({ ...(valuePath && { valuePath }) }, data)
  t.deepEqual(worth({ amount: 19.9, currency: 'EUR' }, 'amount'), { value: 19.9, currency: 'EUR' })
  t.deepEqual(worth({ lines: [{ price: '12.5' }] }, 'lines.0.price'), { value: 12.5, currency: null })
  for (const data of [
    {},
    { amount: null },
    { amount: 'much' },
    { amount: '' },
    { amount: 1e20 },
    { amount: [1] },
  ]) {
    t.is(worth(data, 'amount').value, null)
  }
  t.deepEqual(worth({ amount: 5 }), { value: null, currency: null })
})

test('a lift is told with its interval, and not at all of too few', (t) => {
  const more = liftOf({ people: 1000, converted: 150 }, { people: 1000, converted: 100 })
  t.like(more, { verdict: 'HIGHER', lift: 0.5 })
  // exp(ln 1.5 ± 1.96 · √(1/150 − 1/1000 + 1/100 − 1/1000)) − 1
  t.deepEqual(more.interval, { low: 0.1831, high: 0.9019 })
  t.is(liftOf({ people: 1000, converted: 60 }, { people: 1000, converted: 100 }).verdict, 'LOWER')
  t.is(
    liftOf({ people: 1000, converted: 105 }, { people: 1000, converted: 100 }).verdict,
    'NO_DIFFERENCE_SEEN',
  )
  const all = liftOf({ people: 200, converted: 200 }, { people: 200, converted: 200 })
  t.like(all, { verdict: 'NO_DIFFERENCE_SEEN', lift: 0 })
  for (const few of [
    { people: 99, converted: 50 },
    { people: 5000, converted: 9 },
    { people: 0, converted: 0 },
  ]) {
    t.like(liftOf(few, { people: 1000, converted: 100 }), { verdict: 'TOO_FEW', lift: null, interval: null })
    t.is(liftOf({ people: 1000, converted: 100 }, few).verdict, 'TOO_FEW')
  }
})
