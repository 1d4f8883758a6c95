import { readFileSync } from 'node:fs'

import test from 'ava'

import { PERIOD_UNITS } from '../schema/audience.ts'
import { SuccessGoal } from '../schema/automation-goals.ts'
import { DURATION_UNITS, WEEKDAYS } from '../schema/automation-parts.ts'
import { STEP_CONFIGS, WAIT_MODES, WAIT_UNTIL_CONFIGS } from '../schema/automation-steps.ts'
import { TRIGGER_CONFIGS, TRIGGER_TYPES } from '../schema/automation-triggers.ts'
import { Edge, Settings, STEP_TYPES, StepMembers } from '../schema/automation.ts'
import {
  CONTENT_TYPES,
  EXIT_REASONS,
  RUN_STATUSES,
  SUBSCRIBER_EVENT_TYPES,
  SUBSCRIBER_STATUSES,
  WORKFLOW_STATUSES,
} from '../schema/values.ts'
import { CONFLICT_STRATEGIES } from '../schema/workflow-group.ts'
import { FAILURES } from '../src/catalogue/failure.ts'
import type { Decision } from '../src/domain/automations/runs/decisions.ts'

/** The text of the workflow skill without its examples, which another test runs. */
const SKILL = readFileSync(new URL('../src/skills/workflow.md', import.meta.url), 'utf8').replaceAll(
  /^```json[^]+?^```$/gm,
  '',
)
/** The text below each heading. */
const SECTIONS = new Map(
  SKILL.split(/^##+ /m).map((section) => {
    const [heading = '', ...lines] = section.split('\n')
    return [heading.replace(/:.*/, ''), lines.join('\n')] as const
  }),
)

function section(heading: string): string {
  const found = SECTIONS.get(heading)
  if (found === undefined) throw new Error(`the skill has no section ${heading}`)
  return found
}

/** Returns the members of each record in the text that begins with `beginning`, such as `config: {`. */
function recordsOf(text: string, beginning: string): string[][] {
  return text
    .split(beginning)
    .slice(1)
    .map((rest) => membersOf(rest.slice(0, endOf(rest))))
}

/** Returns the position of the bracket that closes the one open at the beginning. */
function endOf(text: string): number {
  let depth = 1
  for (let at = 0; at < text.length; at++) {
    if ('{['.includes(text.charAt(at))) depth += 1
    if ('}]'.includes(text.charAt(at))) depth -= 1
    if (depth === 0) return at
  }
  return text.length
}

/** Returns the names in a record: a, b, d and e for `a, b?: {c}, d | e`. */
function membersOf(record: string): string[] {
  let flat = record
  for (let before = ''; flat !== before;) {
    before = flat
    flat = flat.replaceAll(/[{[][^{}[\]]*[}\]]/g, '')
  }
  return flat
    .replaceAll(/:[^,]*/g, '')
    .split(/[,|+]/)
    .map((member) => member.trim().replace(/\?$/, ''))
    .filter((member) => /^\w+$/.test(member))
}

const sorted = (words: Iterable<string>) => [...new Set(words)].toSorted()
const keysOf = (schema: unknown) => Object.keys(Object(schema).properties)

/** Returns all enum and const values anywhere in a schema. */
function wordsOf(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const { enum: values = [], const: value } = Object(schema)
  const own = [...values, value].filter((word) => typeof word === 'string')
  return [...own, ...Object.values(schema).flatMap(wordsOf)]
}

/** Words that occur in many places of the schema but only once in the skill. */
const EVERYWHERE = new Set<string>([...DURATION_UNITS, ...WEEKDAYS])

function missingWords(schema: unknown, text: string): string[] {
  return sorted(wordsOf(schema)).filter(
    (word) => !EVERYWHERE.has(word) && !new RegExp(`\\b${word}\\b`).test(text),
  )
}

test('the skill has a section for each type of step, and for no other', (t) => {
  const steps = SKILL.slice(SKILL.indexOf('\n## Steps'), SKILL.indexOf('\n## Filters'))
  const headings = [...steps.matchAll(/^### ([^:\n]+)/gm)].flatMap(([, types = '']) => types.split(', '))
  t.deepEqual(headings.toSorted(), [...STEP_TYPES].toSorted())
})

test('it names every member of each configuration with the values it can have, and no other', (t) => {
  for (const heading of SECTIONS.keys()) {
    const types = heading.split(', ').filter((type) => type in STEP_CONFIGS)
    if (types.length === 0) continue
    const configs = types.map((type): unknown => Object(STEP_CONFIGS)[type])
    const text = section(heading)
    t.deepEqual(sorted(recordsOf(text, 'config: {').flat()), sorted(configs.flatMap(keysOf)), heading)
    t.deepEqual(missingWords(configs, text), [], heading)
  }
  for (const unit of [...DURATION_UNITS, ...WEEKDAYS]) t.regex(section('WAIT'), new RegExp(`\\b${unit}\\b`))
})

test('it describes each type of trigger and each mode of WAIT_UNTIL, and no other', (t) => {
  for (const [heading, beginning, known, schemas, common] of [
    ['TRIGGER', '{type: "', TRIGGER_TYPES, TRIGGER_CONFIGS, ['filters']],
    ['WAIT_UNTIL', '{mode: "', WAIT_MODES, WAIT_UNTIL_CONFIGS, ['timeout', 'onTimeout']],
  ] as const) {
    const text = section(heading)
    const described = text
      .split(beginning)
      .slice(1)
      .map((rest) => {
        const [word = ''] = rest.split('"')
        return [word, membersOf(rest.slice(word.length, endOf(rest)))] as const
      })
    t.deepEqual(sorted(described.map(([word]) => word)), sorted(known))
    const discriminator = heading === 'TRIGGER' ? 'type' : 'mode'
    for (const [word, members] of described) {
      const schema: unknown = Object(schemas)[word]
      t.deepEqual(sorted([discriminator, ...members, ...common]), sorted(keysOf(schema)), word)
      t.deepEqual(missingWords(schema, text), [], word)
    }
  }
})

test('it names every setting, exit rule, kind of goal and strategy of groups, and no other', (t) => {
  const settings = section('Settings')
  t.deepEqual(sorted(recordsOf(settings, '`settings: {').flat()), sorted(keysOf(Settings)))
  t.deepEqual(missingWords(Settings, settings), [])
  for (const member of ['reEntry', 'exitRules', 'sendWindow', 'lateSend']) {
    const schema = Object(Settings.properties)[member]
    const text = member === 'sendWindow' ? section('EMAIL') : settings
    const [described] = recordsOf(text, new RegExp(`${member}\\??: \\[?\\{`).exec(text)?.[0] ?? '')
    t.deepEqual(sorted(described ?? []), sorted(keysOf(schema.items ?? schema)), member)
  }
  const goals = section('Success goals')
  t.deepEqual(sorted(recordsOf(goals, 'successGoals: [{').flat()), sorted(keysOf(SuccessGoal)))
  t.deepEqual(missingWords(SuccessGoal, goals), [])
  const strategies = [...section('Groups').matchAll(/^- `(\w+)`/gm)].map(([, word = '']) => word)
  t.deepEqual(strategies.toSorted(), [...CONFLICT_STRATEGIES].toSorted())
})

test('it names the members of steps and edges, and no other', (t) => {
  const graph = section('The graph')
  const [step, edge] = [recordsOf(graph, 'A step: `{').flat(), recordsOf(graph, 'An edge: `{').flat()]
  t.deepEqual(sorted(step), sorted([...Object.keys(StepMembers), 'type', 'config']))
  t.deepEqual(sorted(edge), sorted(keysOf(Edge)))
  t.deepEqual(missingWords(StepMembers.onError, graph), [])
})

/** Actions of recorded decisions that the skill mentions. */
const ACTIONS: readonly Decision['action'][] = ['STEP_SKIPPED']
/** Names that the skill invents as examples, and abbreviations that are not words of the service. */
const OTHERS = ['PROJECT_CREATED', 'LEAD_SCORED', 'HTML', 'IANA', 'ISO', 'JSON', 'UTC']

test('every word in capitals is one that the service knows', (t) => {
  const known = new Set<string>([
    ...wordsOf([STEP_CONFIGS, TRIGGER_CONFIGS, WAIT_UNTIL_CONFIGS, StepMembers, Settings, SuccessGoal]),
    ...STEP_TYPES,
    ...CONFLICT_STRATEGIES,
    ...CONTENT_TYPES,
    ...PERIOD_UNITS,
    ...EXIT_REASONS,
    ...RUN_STATUSES,
    ...WORKFLOW_STATUSES,
    ...SUBSCRIBER_STATUSES,
    ...SUBSCRIBER_EVENT_TYPES,
    ...Object.keys(FAILURES),
    ...ACTIONS,
    ...OTHERS,
  ])
  const written = sorted(SKILL.match(/\b[A-Z][A-Z0-9_]{2,}\b/g) ?? [])
  t.deepEqual(
    written.filter((word) => !known.has(word)),
    [],
  )
})
