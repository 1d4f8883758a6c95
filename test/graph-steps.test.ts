import test from 'ava'

import { readDefinition, readSettings } from '../src/domain/automations/definition/validate.ts'
import { indexGraph, nextStep, ports, skipPort } from '../temporal/graph.ts'
import { step } from './helpers/automation.ts'

const trigger = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
const minute = { id: 'minute', type: 'WAIT', config: { amount: 1, unit: 'MINUTES' } }

/** Returns a graph of a trigger, a wait and a step of this type with the id x. */
function graph(type: string, config: unknown, more: { edges?: object[]; steps?: object[] } = {}) {
  return {
    steps: [trigger, minute, { id: 'x', type, config }, ...(more.steps ?? [])],
    edges: [{ from: 'start', to: 'minute' }, { from: 'minute', to: 'x' }, ...(more.edges ?? [])],
  }
}

/** Returns all faults as "path: message", with the step's id unless it is x. */
function faults(type: string, config: unknown, more: Parameters<typeof graph>[2] = {}): string[] {
  return readDefinition(graph(type, config, more), { publishing: true }).faults.map(
    ({ stepId, path, message }) =>
      `${stepId === 'x' ? '' : `${stepId} `}${path.replace('steps[2].', '')}: ${message}`,
  )
}

/** Asserts that there is one fault for each pattern, in order. */
function refused(t: { deepEqual: Function; regex: Function }, found: string[], ...patterns: RegExp[]): void {
  t.deepEqual(found.length, patterns.length, found.join('\n'))
  patterns.forEach((pattern, index) => t.regex(found[index] ?? '', pattern))
}

const A = { id: 'a', weight: 1 }
const B = { id: 'b', weight: 1 }

test('what runs tell starts workflows by WORKFLOW_EVENT, so a trigger for any event refuses it', (t) => {
  const faultsOf = (eventType: string) => {
    const start = { ...trigger, config: { type: 'EVENT', eventType } }
    return readDefinition({ steps: [start], edges: [] }).faults
  }
  for (const eventType of ['WORKFLOW_STARTED', 'WORKFLOW_COMPLETED', 'WORKFLOW_CANCELED']) {
    const message = `${eventType} starts workflows by a trigger {"type": "WORKFLOW_EVENT", "workflowId": "wf_…", "event": "${eventType}"}; write that`
    t.deepEqual(faultsOf(eventType), [{ stepId: 'start', path: 'steps[0].config.eventType', message }])
  }
  t.deepEqual(faultsOf('EMAIL_OPENED'), [])
})

test('SPLIT has a port for each variant, and else for whom its conditions pass over', (t) => {
  const config = { variants: [A, B], holdoutVariantId: 'b' }
  const exit = { id: 'end', type: 'EXIT', config: {} }
  for (const port of ['a', 'b', 'else'])
    t.deepEqual(faults('SPLIT', config, { steps: [exit], edges: [{ from: 'x', to: 'end', port }] }), [])
  const split = step('x', 'SPLIT', { variants: [A, B], sticky: true })
  t.deepEqual([ports(split), skipPort(split)], [['a', 'b', 'else'], 'else'])
  refused(
    t,
    faults('SPLIT', { variants: [A, A, { id: 'else', weight: 1 }] }),
    /config\.variants\[1\]\.id: the variant id "a" is used twice; choose another id/,
    /config\.variants\[2\]\.id: "else" is the port when no variant is taken/,
  )
  refused(t, faults('SPLIT', { variants: [A] }), /config\.variants/)
  refused(
    t,
    faults('SPLIT', {
      variants: [
        { id: 'a', weight: 0 },
        { id: 'b', weight: 0 },
      ],
      holdoutVariantId: 'c',
    }),
    /config\.variants: need a weight above 0/,
    /config\.holdoutVariantId: is none of the variants; they are a, b/,
  )
})

test('JUMP leads to a step that exists, and counts as a way through the graph', (t) => {
  t.deepEqual(faults('JUMP', { toStepId: 'minute', maxTimes: 3 }), [])
  refused(t, faults('JUMP', { toStepId: 'nowhere', maxTimes: 0 }), /config\.maxTimes/)
  refused(
    t,
    faults('JUMP', { toStepId: 'nowhere', maxTimes: 1 }),
    /config\.toStepId: there is no step "nowhere"/,
  )
  refused(
    t,
    faults('JUMP', { toStepId: 'start', maxTimes: 1 }),
    /"start" is a TRIGGER; jump to the step after it/,
  )
  refused(
    t,
    faults('JUMP', { toStepId: 'x', maxTimes: 1 }),
    /the cycle x → x has no WAIT of at least a minute/,
  )
  const ahead = { id: 'ahead', type: 'ADD_TAG', config: { tagNames: ['vip'] } }
  t.deepEqual(faults('JUMP', { toStepId: 'ahead', maxTimes: 1 }, { steps: [ahead] }), [])
  const jump = step('x', 'JUMP', { toStepId: 'ahead', maxTimes: 1 })
  const walked = indexGraph({ steps: [jump, step('ahead', 'EXIT', {})], edges: [] })
  t.is(nextStep(walked, 'x', 'jump ')?.id, 'ahead')
  t.is(nextStep(walked, 'x'), undefined)
})

test('UPDATE_FIELD changes each field once, to what a field can hold', (t) => {
  t.deepEqual(
    faults('UPDATE_FIELD', { set: { plan: 'pro', since: '2026-01-01' }, increment: { n: -1.5 } }),
    [],
  )
  refused(t, faults('UPDATE_FIELD', {}), /config: changes nothing; name a field/)
  refused(t, faults('UPDATE_FIELD', { clear: [] }), /config: changes nothing/)
  refused(
    t,
    faults('UPDATE_FIELD', {
      set: { a: null, '9': 1, email: 'x', list: [] },
      increment: { a: 1 },
      clear: ['a'],
    }),
    /config\.set\.9: is not a field name/,
    /config\.set\.email: has the name of the built-in variable/,
    /config\.set\.list: must be text, a number, true, false/,
    /config\.set\.a: is null; name the field in clear/,
    /config\.increment\.a: "a" is changed twice/,
    /config\.clear\[0\]: "a" is changed twice/,
  )
  refused(t, faults('UPDATE_FIELD', { increment: { a: '1' } }), /config\.increment\.a/)
  const many = Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`f${index}`, 1]))
  refused(t, faults('UPDATE_FIELD', { set: many }), /more than 50 fields/)
})

test('SUBSCRIPTION, CREATE_EVENT and NOTIFY say what they cannot do', (t) => {
  t.deepEqual(faults('SUBSCRIPTION', { action: 'UNSUBSCRIBE' }), [])
  refused(t, faults('SUBSCRIPTION', { action: 'SUBSCRIBE' }), /config\.action/)
  t.deepEqual(faults('CREATE_EVENT', { eventType: 'LEAD_SCORED', metadata: { score: 1 } }), [])
  for (const currency of ['EUR', 'VED', 'CHE']) {
    t.deepEqual(faults('CREATE_EVENT', { eventType: 'SUBSCRIBER_PAYMENT', amount: 1, currency }), [])
  }
  for (const currency of ['eur', 'QQQ', '', 'E']) {
    const event = { eventType: 'SUBSCRIBER_PAYMENT', amount: 1, currency }
    refused(t, faults('CREATE_EVENT', event), /config\.currency: is not an ISO 4217 code/)
  }
  refused(
    t,
    faults('CREATE_EVENT', {
      eventType: 'TAG_ADDED',
      amount: -1,
      currency: 'EURO',
      metadata: { text: 'x'.repeat(17_000) },
    }),
    /config\.eventType: TAG_ADDED is written by the service itself/,
    /config\.amount: must be from 0/,
    /config\.currency: is not an ISO 4217 code/,
    /config\.metadata: is larger than 16384 bytes/,
  )
  refused(t, faults('CREATE_EVENT', { eventType: 'small' }), /config\.eventType/)
  refused(
    t,
    faults('CREATE_EVENT', { eventType: 'SUBSCRIBER_PAYMENT', amount: 19.999 }),
    /config\.amount: has more than two decimals; round it/,
  )
  const notice = { to: 'team@office.example', subject: 'New', markdown: 'Hello' }
  t.deepEqual(faults('NOTIFY', notice), [])
  refused(t, faults('NOTIFY', { ...notice, to: 'team@@office', subject: 'a\nb' }), /config\.to/)
  refused(t, faults('NOTIFY', { ...notice, subject: 'a\nb' }), /config\.subject: holds a control character/)
})

test('WAIT_UNTIL has two ports in every mode, and its hours, lengths, fields and filters are judged', (t) => {
  const exit = { id: 'end', type: 'EXIT', config: {} }
  const byTimeout = { steps: [exit], edges: [{ from: 'x', to: 'end', port: 'timeout' }] }
  const FIELD = { mode: 'FIELD_DATE', field: 'birthday', offset: { amount: 3, unit: 'DAYS' } }
  const VIP = [{ field: 'tags', operator: 'has_any', value: ['vip'] }]
  for (const config of [
    { mode: 'DATE', date: '2031-01-01', timeout: { amount: 1, unit: 'DAYS' } },
    { ...FIELD, direction: 'BEFORE', anniversary: true, ifMissing: 'EXIT', ifPast: 'TIMEOUT' },
    { mode: 'TIME_WINDOW', days: ['MON'], start: '22:00', end: '06:00', timezone: 'Europe/Paris' },
    { mode: 'CONDITION', filters: VIP, onTimeout: 'EXIT' },
  ])
    t.deepEqual(faults('WAIT_UNTIL', config, byTimeout), [])
  refused(
    t,
    faults('WAIT_UNTIL', { mode: 'TIME_WINDOW', start: '09:00', end: '09:00', timezone: 'Mars' }),
    /config\.end: is the start as well/,
    /config\.timezone: "Mars" is not a time zone/,
  )
  refused(t, faults('WAIT_UNTIL', { mode: 'TIME_WINDOW', start: '9', end: '25:00' }), /start/, /end/)
  refused(
    t,
    faults('WAIT_UNTIL', { ...FIELD, offset: { amount: 400, unit: 'WEEKS' }, ifPast: 'WAIT' }),
    /config\.ifPast/,
    /config\.offset\.amount: a wait lasts at most/,
  )
  refused(
    t,
    faults('WAIT_UNTIL', {
      mode: 'CONDITION',
      filters: [{ field: 'nothing', operator: 'equals', value: 1 }],
    }),
    /config\.filters\[0\]\.field: there is no field "nothing"/,
  )
  refused(
    t,
    faults('THROTTLE', { limit: 5, per: { amount: 400, unit: 'WEEKS' } }),
    /config\.per\.amount: a wait lasts at most/,
  )
  const email = { subject: 'Hello', content: 'Hi' }
  t.deepEqual(faults('EMAIL', { ...email, sendWindow: { start: '09:00', end: '17:00' } }), [])
  refused(
    t,
    faults('EMAIL', { ...email, sendWindow: { start: '09:00', end: '09:00' } }),
    /config\.sendWindow\.end: is the start as well/,
  )
})

test('exit rules, windows and late email are judged as settings', (t) => {
  const judged = (settings: unknown) => readSettings(settings).faults.map(({ path }) => path)
  const settings = {
    exitRules: [{ id: 'a', on: 'SUBSCRIBER_PAYMENT', where: [{ path: 'amount', operator: 'gt', value: 1 }] }],
    sendWindow: { start: '09:00', end: '17:00', days: ['MON'] },
    lateSend: { maxLateness: { amount: 1, unit: 'HOURS' }, action: 'SKIP' },
  }
  t.deepEqual(judged(settings), [])
  t.like(readSettings(settings).settings, settings)
  t.deepEqual(
    judged({
      exitRules: [
        { id: 'a', on: 'X1' },
        { id: 'a', on: 'X1', where: [{ path: 'a..b', operator: 'gt', value: 1 }] },
      ],
      sendWindow: { start: '09:00', end: '09:00', timezone: 'Mars' },
      lateSend: { maxLateness: { amount: 300, unit: 'WEEKS' }, action: 'SKIP' },
    }),
    [
      'settings.exitRules[1].where[0].path',
      'settings.exitRules[1].id',
      'settings.sendWindow.end',
      'settings.sendWindow.timezone',
      'settings.lateSend.maxLateness.amount',
    ],
  )
  t.deepEqual(judged({ exitRules: [{ id: 'a' }], lateSend: { action: 'LATER' } }), [
    'settings.exitRules[0].on',
    'settings.lateSend.maxLateness',
    'settings.lateSend.action',
  ])
})

test('WEBHOOK refuses addresses, headers and bodies that cannot be sent', (t) => {
  const url = 'https://example.com/hook?email={{email}}'
  t.deepEqual(faults('WEBHOOK', { url, headers: { 'X-Key': '{{plan}}' }, body: { a: ['{{name}}'] } }), [])
  const failed = {
    steps: [{ id: 'end', type: 'EXIT', config: {} }],
    edges: [{ from: 'x', to: 'end', port: 'failed' }],
  }
  t.deepEqual(faults('WEBHOOK', { url, saveResponseAs: 'crm' }, failed), [])
  refused(t, faults('WEBHOOK', { url: 'ftp://example.com' }), /config\.url: is not an http or https address/)
  refused(t, faults('WEBHOOK', { url: 'https://{{host}}/x' }), /config\.url: has a variable in its host/)
  refused(t, faults('WEBHOOK', { url: 'https://u:p@example.com/' }), /config\.url: holds a user or password/)
  refused(
    t,
    faults('WEBHOOK', {
      url,
      method: 'GET',
      headers: { Host: 'x', 'webhook-id': '1', 'a b': 'x', ok: 'a\nb' },
      body: 'x'.repeat(70_000),
    }),
    /headers\.Host: is set by the request itself/,
    /headers\.webhook-id: is set by the request itself/,
    /headers\.a b: is not the name of a header/,
    /headers\.ok: holds a character/,
    /config\.body: goes with any method but GET/,
    /config\.body: is larger than 65536 bytes/,
  )
  refused(
    t,
    faults('WEBHOOK', { url, timeoutSeconds: 100, retries: 11, saveResponseAs: 'a.b' }),
    /timeoutSeconds/,
    /retries/,
    /saveResponseAs/,
  )
})
