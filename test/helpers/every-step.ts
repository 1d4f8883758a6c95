import { WAIT_MODES } from '../../schema/automation-steps.ts'
import { type Edge, type Step, STEP_TYPES } from '../../schema/automation.ts'
import { ports } from '../../temporal/graph.ts'
import { emailStep, OPEN, step } from './automation.ts'

/** Returns the types of steps and the modes of WAIT_UNTIL that do not occur in `steps`. */
export function missingKinds(steps: readonly Step[]): string[] {
  const present = new Set<string>(
    steps.flatMap(({ type, config }) => (type === 'WAIT_UNTIL' ? [type, config.mode] : [type])),
  )
  return [...STEP_TYPES, ...WAIT_MODES].filter((kind) => !present.has(kind))
}

/** Returns edges along these steps, each from the first port of its step. */
export function alongPorts(steps: readonly Step[]): Edge[] {
  return steps.slice(1).map(({ id }, index) => {
    const from = steps[index]
    return { from: from?.id ?? '', port: (from && ports(from)[0]) ?? 'next', to: id }
  })
}

/** Things outside of the graph to which the steps refer: an endpoint that accepts requests, and a workflow. */
type Surroundings = { url: string; otherWorkflowId: string }

/** The fields that subscribers need to go through `everyStep`, and the goals that its workflow needs. */
export const WALK_FIELDS = { past: '2020-01-01', walks: 0 }
export const WALK_GOALS = [{ id: 'goal', name: 'Never', event: 'NEVER_HAPPENS', exitOnReach: false }]

/**
 * Returns a sequence with every type of step except TRIGGER, which a run passes without help, and the expected trail.
 */
export function everyStep({ url, otherWorkflowId }: Surroundings): { steps: Step[]; trail: string[] } {
  const limit = { onTimeout: 'CONTINUE' } as const
  const tagged = [{ field: 'tags', operator: 'has_any' as const, value: ['walked'] }]
  const dated = { direction: 'AFTER', anniversary: false, ifMissing: 'EXIT', ifPast: 'CONTINUE' } as const
  const row: [Step, string][] = [
    [step('wait', 'WAIT', { amount: 1, unit: 'SECONDS' }), 'ELAPSED→next'],
    [step('tag', 'ADD_TAG', { tagNames: ['walked'] }), 'DONE→next'],
    [step('untag', 'REMOVE_TAG', { tagNames: ['never given'] }), 'DONE→next'],
    [step('count', 'UPDATE_FIELD', { increment: { walks: 1 } }), 'DONE→next'],
    [step('event', 'CREATE_EVENT', { eventType: 'WALKED' }), 'DONE→next'],
    [step('date', 'WAIT_UNTIL', { mode: 'DATE', date: '2020-01-01', ...limit }), 'ELAPSED→next'],
    [step('field', 'WAIT_UNTIL', { mode: 'FIELD_DATE', field: 'past', ...dated, ...limit }), 'SKIPPED→next'],
    [step('hours', 'WAIT_UNTIL', { mode: 'TIME_WINDOW', ...OPEN, ...limit }), 'ELAPSED→next'],
    [
      step('heard', 'WAIT_UNTIL', { mode: 'EVENT', eventType: 'WALKED', scope: 'RUN', ...limit }),
      'EVENT→next',
    ],
    [step('held', 'WAIT_UNTIL', { mode: 'CONDITION', filters: tagged, ...limit }), 'CONDITION→next'],
    [step('branch', 'BRANCH', { paths: [{ id: 'walked', filters: tagged }] }), 'DECIDED→walked'],
    [
      step('split', 'SPLIT', {
        variants: [
          { id: 'a', weight: 1 },
          { id: 'b', weight: 0 },
        ],
        sticky: true,
      }),
      'DECIDED→a',
    ],
    [step('jump', 'JUMP', { toStepId: 'throttle', maxTimes: 1 }), 'JUMPED→jump'],
    [
      step('throttle', 'THROTTLE', { limit: 9, per: { amount: 1, unit: 'SECONDS' }, overflow: 'HOLD' }),
      'PASSED→next',
    ],
    [step('goal', 'GOAL', { goalId: 'goal', ifUnmet: 'CONTINUE' }), 'UNMET→next'],
    [step('note', 'NOTIFY', { to: 'team@office.example', subject: 'See', markdown: 'Look.' }), 'DONE→next'],
    [step('hook', 'WEBHOOK', { url, method: 'POST', timeoutSeconds: 60, retries: 0 }), 'DONE→next'],
    [step('begin', 'START_WORKFLOW', { workflowId: otherWorkflowId }), 'ASKED→next'],
    [step('halt', 'STOP_WORKFLOW', { workflowId: otherWorkflowId }), 'ASKED→next'],
    [step('leave', 'SUBSCRIPTION', { action: 'UNSUBSCRIBE' }), 'DONE→next'],
    [emailStep('mail', { transactional: true }), 'SENT→next'],
    [step('exit', 'EXIT', {}), 'EXIT'],
  ]
  return { steps: row.map(([each]) => each), trail: row.map(([{ id }, left]) => `${id} ${left}`) }
}
