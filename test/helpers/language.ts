import { STEP_CONFIGS, WAIT_UNTIL_CONFIGS } from '../../schema/automation-steps.ts'
import { TRIGGER_CONFIGS } from '../../schema/automation-triggers.ts'

const FILTERS = [{ field: 'tags', operator: 'has_any', value: ['vip'] }]
const WHERE = [{ path: 'amount', operator: 'gte', value: 1 }]
const DAY = { amount: 1, unit: 'DAYS' }
const LIMIT = { timeout: DAY, onTimeout: 'EXIT' }
const HOURS = { days: ['MON'], start: '09:00', end: '17:00', timezone: 'Europe/Paris' }
const ID = '01hzy3k8v5e0qs2r7m4n6p8t9w'

/** A valid configuration of every type of step, with all members. */
const STEP_EXAMPLES: Readonly<Record<keyof typeof STEP_CONFIGS, object>> = {
  EMAIL: {
    campaignId: `cmp_${ID}`,
    subject: 'Hello',
    preview: 'Read on',
    content: 'Hello',
    contentType: 'MARKDOWN',
    senderId: `snd_${ID}`,
    replyTo: 'ada@example.com',
    transactional: true,
    sendWindow: HOURS,
  },
  WAIT: { ...DAY, at: '09:00', days: ['MON'], timezone: 'Europe/Paris' },
  BRANCH: { paths: [{ id: 'a', name: 'A', filters: FILTERS }] },
  SPLIT: {
    variants: [
      { id: 'a', name: 'A', weight: 1 },
      { id: 'b', weight: 1 },
    ],
    sticky: false,
    holdoutVariantId: 'b',
  },
  ADD_TAG: { tagNames: ['vip'] },
  REMOVE_TAG: { tagNames: ['vip'] },
  UPDATE_FIELD: { set: { plan: 'pro' }, increment: { points: 1 }, clear: ['due'] },
  SUBSCRIPTION: { action: 'UNSUBSCRIBE', reason: 'Asked' },
  CREATE_EVENT: { eventType: 'SUBSCRIBER_PAYMENT', amount: 1, currency: 'EUR', metadata: { plan: 'pro' } },
  NOTIFY: { to: 'team@example.com', subject: 'New', markdown: 'Somebody' },
  WEBHOOK: {
    url: 'https://example.com',
    method: 'PUT',
    headers: { 'x-key': '1' },
    body: { a: 1 },
    timeoutSeconds: 5,
    retries: 1,
    saveResponseAs: 'crm',
  },
  START_WORKFLOW: { workflowId: `wf_${ID}`, context: { from: 'here' } },
  STOP_WORKFLOW: { workflowId: `wf_${ID}`, reason: 'Over' },
  THROTTLE: { limit: 10, per: DAY, overflow: 'SKIP' },
  JUMP: { toStepId: 'pause', maxTimes: 2 },
  GOAL: { goalId: 'bought', ifUnmet: 'EXIT' },
  EXIT: { reason: 'Over' },
}

/** A valid configuration of every mode of WAIT_UNTIL, with all members. */
const WAIT_UNTIL_EXAMPLES: Readonly<Record<keyof typeof WAIT_UNTIL_CONFIGS, object>> = {
  DATE: { mode: 'DATE', date: '2031-01-01', timezone: 'Europe/Paris', ...LIMIT },
  FIELD_DATE: {
    mode: 'FIELD_DATE',
    field: 'due',
    offset: DAY,
    direction: 'BEFORE',
    anniversary: true,
    ifMissing: 'TIMEOUT',
    ifPast: 'EXIT',
    timezone: 'Europe/Paris',
    ...LIMIT,
  },
  TIME_WINDOW: { mode: 'TIME_WINDOW', ...HOURS, ...LIMIT },
  EVENT: { mode: 'EVENT', eventType: 'SUBSCRIBER_PAYMENT', where: WHERE, scope: 'RUN', ...LIMIT },
  CONDITION: { mode: 'CONDITION', filters: FILTERS, ...LIMIT },
}

const ENTRIES: Readonly<Record<keyof typeof TRIGGER_CONFIGS, object>> = {
  SUBSCRIBED: {},
  UNSUBSCRIBED: {},
  TAG_ADDED: { tagNames: ['vip'] },
  TAG_REMOVED: { tagNames: ['vip'] },
  FIELD_UPDATED: { field: 'plan', from: null, to: 'pro' },
  SEGMENT_ENTERED: { segmentId: `seg_${ID}` },
  SEGMENT_EXITED: { segmentId: `seg_${ID}` },
  EVENT: { eventType: 'SUBSCRIBER_PAYMENT', where: WHERE },
  WORKFLOW_EVENT: { workflowId: `wf_${ID}`, event: 'WORKFLOW_COMPLETED' },
  DATE_FIELD: { field: 'due', offset: DAY, direction: 'BEFORE', anniversary: true, at: '09:00' },
  SCHEDULE: { cron: '0 9 * * MON' },
  INACTIVITY: { eventType: 'EMAIL_OPENED', inactiveFor: DAY },
  INBOUND_WEBHOOK: {},
  MANUAL: {},
}

/** A valid configuration of every type of trigger, with all members. */
const TRIGGER_EXAMPLES: Readonly<Record<string, object>> = Object.fromEntries(
  Object.entries(ENTRIES).map(([type, config]) => [type, { type, ...config, filters: FILTERS }]),
)

/** One step of every type, trigger and mode, each with all members that it may have. */
export const STEPS: readonly (Record<string, unknown> & { type: string; config: object })[] = [
  ...Object.entries(TRIGGER_EXAMPLES).map(([, config]) => ({ type: 'TRIGGER', config })),
  ...Object.entries(WAIT_UNTIL_EXAMPLES).map(([, config]) => ({ type: 'WAIT_UNTIL', config })),
  ...Object.entries(STEP_EXAMPLES).map(([type, config]) => ({ type, config })),
].map((step) => ({ id: 'x', name: 'X', ...step, conditions: FILTERS, onError: 'EXIT' }))
