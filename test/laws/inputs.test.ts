import { randomInt } from 'node:crypto'

import anyTest, { type TestFn } from 'ava'
import fc, { type Arbitrary } from 'fast-check'
import { sql } from 'kysely'

import { AUDIENCE_LIMITS, COUNT_OPERATORS, FIELDS, OPERATORS, PERIOD_UNITS } from '../../schema/audience.ts'
import { TRIGGER_TYPES } from '../../schema/automation-triggers.ts'
import { STEP_TYPES } from '../../schema/automation.ts'
import { CATALOGUE } from '../../src/catalogue/registry.ts'
import { schemaFaults } from '../../src/catalogue/schema-faults.ts'
import type { Tool } from '../../src/catalogue/tool.ts'
import { execute } from '../../src/database.ts'
import { type Answer, startApi, type TestApi, type TestOrganization } from '../helpers/api.ts'
import { letIn, SDK_DOOR, SERVED_DOORS } from '../helpers/doors.ts'
import { makeMissingWorld, makeWorld, type World } from '../helpers/world.ts'

/**
 * S1: generates inputs from each tool's own schema, valid and invalid, with existing and unknown ids, hostile text,
 * numbers at the limits and partly valid filters, steps and content, and sends them to the doors in turn. No answer may
 * be an internal error, and successful answers must match the output schema of the door. REPRO=seed repeats a run;
 * `TRIES` sets its length.
 */
const test = anyTest as TestFn<{ api: TestApi; organization: TestOrganization; worlds: World[] }>

const seed = Number(process.env['REPRO'] ?? randomInt(2 ** 31))
const tries = Number(process.env['TRIES'] ?? 20)

test.before(async (t) => {
  t.log(`seed ${seed}`)
  const api = await startApi({ TEMPORAL_TASK_QUEUE: `inputs-${process.pid}` })
  const organization = await api.organization()
  await letIn(api, organization)
  t.context.api = api
  t.context.organization = organization
  t.context.worlds = [await makeWorld(api, organization), makeMissingWorld(api, organization)]
})
test.after.always(async (t) => {
  await t.context.api?.close()
})

/** Text that has a special meaning in SQL, JSON, mail, CSV, dates, addresses or object keys. */
const HOSTILE_TEXT = [
  '',
  ' ',
  '\t',
  '\n',
  'x'.repeat(3_000),
  '𝄞'.repeat(300),
  '\u202e',
  '\u2028',
  '\ufeff',
  'é\u0301',
  '\ud800',
  "'",
  '"',
  '\\',
  '\\u0000',
  '%',
  '_',
  '%%%',
  '$1',
  '${x}',
  '{{x}}',
  '{{',
  '<script>',
  '--',
  ';',
  '/',
  '..',
  '@',
  ',',
  '=1+1',
  '\r\nBcc: a@b.co',
  '=?utf-8?B?QQ==?=',
  'null',
  'undefined',
  'NaN',
  '__proto__',
  'constructor',
  'toString',
  '0',
  '-1',
  '1e400',
  '2026-02-30',
  '2026-11-21T00:00:00Z',
  '99999-01-01',
  '0000-00-00',
  '+275760-09-13',
  '24:00',
  'Europe/Paris',
  'Nowhere/None',
  'EUR',
  'eur',
  '127.0.0.1',
  '::1',
  '1.2.3.4/8',
  'FR',
  'xx',
  'a@b.co',
  'a@é.co',
  'http://127.0.0.1:1/',
  'http://[::1]/',
  'http://0x7f.1/',
  'https://',
  'file:///etc/passwd',
  'http://a b/',
  'bnVsbA',
  'W10',
  'WyJ4IiwieCJd',
  'eyJhIjoxfQ',
]
const NUMBERS = [
  0,
  -0,
  1,
  -1,
  0.1,
  1e-9,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 53,
  -(2 ** 53),
  1e15,
  1e21,
  1e308,
  -1e308,
]

const anything: Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, [], {}, [[]], [null], { a: { b: [1] } }),
  fc.constantFrom<unknown>(...HOSTILE_TEXT),
  fc.constantFrom<unknown>(...NUMBERS),
  fc.jsonValue({ maxDepth: 4 }),
)

const period = fc.record({
  amount: fc.constantFrom<unknown>(0, 1, 30, 36_500, 1e9, 1.5, 'x'),
  unit: fc.constantFrom(...PERIOD_UNITS),
})

/** Generates filters that are often valid: a known field, one of its operators, and any value. */
function leaf(text: Arbitrary<unknown>): Arbitrary<unknown> {
  const fields = Object.entries(FIELDS).map(([key, { kind }]) => ({
    key: key.replace('<name>', 'plan'),
    kind,
  }))
  const value = fc.oneof(text, fc.array(text, { maxLength: 4 }), period, anything)
  return fc.constantFrom(...fields).chain(({ key, kind }) => {
    const operator = fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom<string>(...OPERATORS[kind]) },
      fc.constant('like'),
    )
    const common = { field: fc.constant(key), operator }
    if (kind !== 'event') return fc.record({ ...common, value }, { requiredKeys: ['field', 'operator'] })
    const where = fc.array(
      fc.record({
        path: fc.constantFrom('amount', 'a.b', 'a.0', '', 'x'.repeat(70), '$.x', '__proto__'),
        operator: fc.constantFrom<string>(...OPERATORS.any),
        value,
      }),
      { maxLength: 3 },
    )
    const count = fc.record({
      operator: fc.constantFrom(...COUNT_OPERATORS),
      value: fc.constantFrom<unknown>(...NUMBERS),
    })
    const event = fc.constantFrom('SUBSCRIBER_PAYMENT', 'GO', 'no', '')
    return fc.record(
      { ...common, event, where, count, within: period },
      { requiredKeys: ['field', 'operator', 'event'] },
    )
  })
}

function filters(text: Arbitrary<unknown>): Arbitrary<unknown> {
  const { filter } = fc.letrec<{ filter: unknown }>((tie) => ({
    filter: fc.oneof(
      { maxDepth: AUDIENCE_LIMITS.depth, depthSize: 'small' },
      leaf(text),
      fc.record({ all: fc.array(tie('filter'), { maxLength: 3 }) }),
      fc.record({ any: fc.array(tie('filter'), { maxLength: 3 }) }),
      fc.record({ not: tie('filter') }),
    ),
  }))
  return fc.oneof({ weight: 6, arbitrary: fc.array(filter, { maxLength: 4 }) }, anything)
}

/** Generates steps with known members and any values. */
function steps(text: Arbitrary<unknown>): Arbitrary<unknown> {
  const value = fc.oneof(text, anything)
  const config = fc.record(
    {
      type: fc.constantFrom(...TRIGGER_TYPES),
      mode: fc.constantFrom('DATE', 'EVENT', 'CONDITION'),
      tagNames: fc.array(text, { maxLength: 3 }),
      segmentId: text,
      campaignId: text,
      senderId: text,
      date: text,
      subject: text,
      content: text,
      replyTo: text,
      preview: text,
      eventType: text,
      reason: text,
      timezone: text,
      amount: fc.constantFrom<unknown>(...NUMBERS),
      unit: fc.constantFrom('DAYS', 'SECONDS', 'YEARS'),
      at: text,
      days: value,
      paths: fc.array(fc.record({ id: text, filters: filters(text) }), { maxLength: 2 }),
      filters: filters(text),
      where: value,
      timeout: period,
      contentType: fc.constantFrom('MARKDOWN', 'MAILY'),
    },
    { requiredKeys: [] },
  )
  const step = fc.record(
    {
      id: fc.oneof(fc.constantFrom('start', 'a', 'b'), value),
      type: fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...STEP_TYPES) }, value),
      config: fc.oneof({ weight: 6, arbitrary: config }, anything),
      name: value,
      conditions: filters(text),
      onError: value,
    },
    { requiredKeys: ['id', 'type', 'config'] },
  )
  return fc.oneof({ weight: 6, arbitrary: fc.array(step, { maxLength: 5 }) }, anything)
}

function edges(text: Arbitrary<unknown>): Arbitrary<unknown> {
  const end = fc.oneof(fc.constantFrom('start', 'a', 'b'), text)
  return fc.array(fc.record({ from: end, to: end, port: end }, { requiredKeys: ['from', 'to'] }), {
    maxLength: 5,
  })
}

/** Generates MAILY and Slate nodes of known and unknown types. */
function content(text: Arbitrary<unknown>): Arbitrary<unknown> {
  const attrs = fc.dictionary(
    fc.constantFrom('url', 'src', 'snippetId', 'level', 'id', 'width', 'show'),
    fc.oneof(text, anything),
  )
  const type = fc.constantFrom(
    'paragraph',
    'heading',
    'button',
    'image',
    'snippet',
    'section',
    'columns',
    'text',
    'p',
    'a',
    'x',
  )
  const { node } = fc.letrec<{ node: unknown }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 5 },
      fc.record(
        { type, text, attrs, marks: fc.array(fc.record({ type: text, attrs })) },
        { requiredKeys: ['type'] },
      ),
      fc.record({ type, attrs, content: fc.array(tie('node'), { maxLength: 3 }) }),
      fc.record({ type, children: fc.array(tie('node'), { maxLength: 3 }) }),
    ),
  }))
  const nodes = fc.array(node, { maxLength: 4 })
  return fc.oneof(
    fc.record({ type: fc.constant('doc'), content: nodes }),
    nodes,
    nodes.map((list) => JSON.stringify(list)),
    text,
    anything,
  )
}

type Languages = Record<string, (text: Arbitrary<unknown>) => Arbitrary<unknown>>
const LANGUAGES: Languages = {
  filters,
  steps,
  edges,
  content,
  definition: (text) => fc.record({ steps: steps(text), edges: edges(text) }, { requiredKeys: ['steps'] }),
}

/** Generates values that mostly fit the schema, and sometimes any value. */
function valueOf(schema: object, name: string, text: Arbitrary<unknown>): Arbitrary<unknown> {
  const language = LANGUAGES[name]
  const fitting =
    language && !('enum' in schema) && Reflect.get(schema, 'type') !== 'string'
      ? language(text)
      : plainValueOf(schema, text)
  return fc.oneof({ weight: 9, arbitrary: fitting }, { weight: 1, arbitrary: anything })
}

function plainValueOf(schema: object, text: Arbitrary<unknown>): Arbitrary<unknown> {
  const facts: Record<string, unknown> = { ...schema }
  const { enum: options, anyOf: branches, properties, items, type, minimum, maximum } = facts
  if (Array.isArray(options)) return fc.constantFrom<unknown>(...options)
  if (Array.isArray(branches))
    return fc.oneof(...branches.map((branch: object) => plainValueOf(branch, text)))
  if (isObject(properties)) return objectOf(properties, text)
  if (isObject(items)) return fc.array(plainValueOf(items, text), { maxLength: 4 })
  switch (type) {
    case 'string':
      return text
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'integer':
    case 'number':
      return fc.oneof(
        fc.constantFrom<unknown>(...NUMBERS),
        fc.constantFrom<unknown>(minimum ?? 1, maximum ?? 2, 3, 19.9),
      )
    case 'object':
      return fc.dictionary(
        fc.constantFrom('plan', 'seats', 'a b', '', 'x'.repeat(70), '=f', 'toString'),
        anything,
        { maxKeys: 3 },
      )
    default:
      return anything
  }
}

function objectOf(properties: object, text: Arbitrary<unknown>): Arbitrary<Record<string, unknown>> {
  const members = Object.entries(properties).map(
    ([name, schema]: [string, object]) => [name, valueOf(schema, name, text)] as const,
  )
  return fc.record(Object.fromEntries(members), { requiredKeys: [] })
}

/** Generates inputs of a tool in which required members are usually present. */
function inputsOf(tool: Tool, worlds: readonly World[]): Arbitrary<Record<string, unknown>> {
  const ids = worlds.flatMap((world) => Object.values(world))
  const text = fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom<unknown>(...ids) },
    { weight: 4, arbitrary: fc.constantFrom<unknown>(...HOSTILE_TEXT) },
    { weight: 2, arbitrary: fc.string({ unit: 'grapheme', maxLength: 30 }) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
  )
  const required = new Set(tool.input.required)
  const members = Object.entries(tool.input.properties).map(([name, schema]: [string, object]) => {
    // Tools that delete records get no existing id, so that the records remain for the others.
    const real = /^(?:delete|erase)_/.test(tool.name) ? undefined : naturalId(name, worlds)
    const value = valueOf(schema, name, text)
    return [
      name,
      real === undefined
        ? value
        : fc.oneof({ weight: 3, arbitrary: fc.constant<unknown>(real) }, { weight: 2, arbitrary: value }),
    ] as const
  })
  const requiredKeys = members.map(([name]) => name).filter((name) => required.has(name))
  const record = fc.record(Object.fromEntries(members), { requiredKeys })
  return fc.oneof(
    { weight: 9, arbitrary: record },
    { weight: 1, arbitrary: objectOf(tool.input.properties, text) },
  )
}

/** Returns an existing id for a parameter, so that handlers get past looking it up. */
function naturalId(name: string, [world]: readonly World[]): unknown {
  const ids: Record<string, string | string[] | undefined> = {
    subscriberId: world?.sub,
    subscriber: world?.sub,
    subscriberIds: world && [world.sub],
    tagId: world?.tag,
    tag: world?.tagName,
    workflowId: world?.wf,
    campaignId: world?.cmp,
    runId: world?.run,
    snippetId: world?.snp,
    imageId: world?.img,
    segmentId: world?.seg,
    senderId: world?.snd,
    domain: world?.host,
    emailId: world?.eml,
    webhookId: world?.whk,
    importId: world?.imp,
  }
  return ids[name]
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/**
 * Mixes the bits of a seed, because close seeds generate similar inputs: with some seeds, no input of a tool could be
 * expressed at any door.
 */
function spread(number: number): number {
  const mixed = Math.imul(number ^ (number >>> 16), 0x85_eb_ca_6b)
  return mixed ^ (mixed >>> 13)
}

/** The command line is left out: it uses the SDK with a shorter timeout, and here all tests run concurrently. */
const DOORS = [...SERVED_DOORS, SDK_DOOR]

/** It queries DNS for any given address. test/email-verification.test.ts tests it with servers of its own. */
const NOT_ASKED = new Set(['verify_email_address'])

/** It needs a worker, and none runs here. For a domain created by another test it therefore answers UNAVAILABLE. */
const ASKS_WORKER = new Set(['verify_domain'])

for (const tool of CATALOGUE.values()) {
  // Some operations take a file or a list, and therefore no object as input.
  if (NOT_ASKED.has(tool.name) || !DOORS.some((door) => door.has(tool))) continue
  test(`${tool.name}: ${tries} inputs out of its schema are answered, none by a fault`, async (t) => {
    const { api, organization, worlds } = t.context
    const { token } = organization
    const inputs = inputsOf(tool, worlds).filter((input) => DOORS.some((door) => door.takes(tool, input)))
    let answered = 0
    for (let turn = 0; turn < tries; turn++) {
      // One at a time: generating all inputs at once blocks the process long enough for idle connections to be closed.
      const [drawn = {}] = fc.sample(inputs, { seed: spread(seed + turn), numRuns: 1 })
      const input = await current(tool, organization, drawn)
      // The doors that can express the input take turns.
      const doors = DOORS.filter((door) => door.takes(tool, input))
      const door = doors[turn % doors.length]
      if (!door) continue
      const { status, body } = await door.call(api, { token, operation: tool.name, input })
      const title = `seed ${seed}, ${door.name}: ${JSON.stringify(body)} to ${JSON.stringify(input)}`
      const isUnanswered = status === 503 && ASKS_WORKER.has(tool.name)
      t.true(isUnanswered || (status < 500 && Object(body).code !== 'FAULT'), title)
      if (status >= 300 || Object(body).success === false) continue
      answered += 1
      t.deepEqual(schemaFaults(door.schema(tool), body), [], title)
    }
    t.log(`${answered} of ${tries} succeeded`)
  })
}

/** Adds `expectedUpdatedAt` to a write of a draft; random values would never match. */
async function current(
  tool: Tool,
  organization: TestOrganization,
  input: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  if (!('expectedUpdatedAt' in tool.input.properties)) return input
  const { workflowId } = input
  const { status, body } = await organization.call('get_workflow', { workflowId })
  return status === 200 ? { ...input, expectedUpdatedAt: body.data.workflow.updatedAt } : input
}

/** Creates an organization in which every list has a second page. */
async function makePages(api: TestApi): Promise<{ organization: TestOrganization; world: World }> {
  const organization = await api.organization()
  const [world, second] = [await makeWorld(api, organization), await makeWorld(api, organization)]
  await organization.data('bulk_add_tags', { subscriberIds: [second.sub], tagNames: [world.tagName] })
  await organization.data('add_subscriber_to_workflow', { workflowId: second.wf, subscriberId: world.sub })
  await organization.data('edit_campaign', { id: world.cmp, subject: 'Again' })
  await organization.confirmed('publish_workflow', { workflowId: world.wf })
  await execute(
    api.services.orm.em.fork(),
    sql`insert into subscriber (id, organization_id, email, status)
      select gen_random_uuid(), ${organization.id}, 'b' || n || '@reader.example', 'BOUNCED' from generate_series(1, 2) as n`,
  )
  const emails = ['first@blocked.example', 'second@blocked.example']
  await organization.confirmed('import_suppressions', { emails })
  return { organization, world }
}

test('a cursor whose position is none is refused by every list', async (t) => {
  const { api } = t.context
  const { organization, world } = await makePages(api)
  const { sub: subscriberId, tag: tagId, cmp: campaignId, wf: workflowId } = world
  const ids = Object.entries({ subscriberId, tagId, campaignId, workflowId })
  for (const tool of CATALOGUE.values()) {
    if (!('cursor' in tool.input.properties)) continue
    // Only the first id that the list takes. Another one would filter it to less than two pages.
    const question = Object.fromEntries(ids.filter(([name]) => name in tool.input.properties).slice(0, 1))
    const ask = async (cursor: object): Promise<Answer> => {
      const input = { ...question, limit: 1, ...cursor }
      if (tool.listed) return await organization.call(tool.name, input)
      const query = new URLSearchParams({ limit: '1', ...cursor })
      return await api.request('GET', `/api/v2/imports?${query.toString()}`, organization)
    }
    const { body } = await ask({})
    const { nextCursor: genuine }: { nextCursor: unknown } = tool.listed ? body.data : body
    if (typeof genuine !== 'string')
      throw new Error(`${tool.name} has no second page; give it one in makePages()`)
    t.is((await ask({ cursor: genuine })).status, 200, tool.name)
    for (const cursor of forgeriesOf(genuine)) {
      const { status, body: refusal } = await ask({ cursor })
      t.true([400, 422].includes(status), `${tool.name} ${cursor}: ${status} ${JSON.stringify(refusal)}`)
    }
  }
})

/** Returns invalid cursors, alone and combined with the query of the genuine cursor. */
function forgeriesOf(genuine: string): string[] {
  const wrong: unknown[] = [
    '',
    'x',
    '0',
    'sub_x',
    '00000000-0000-0000-0000-00000000000x',
    '%00',
    null,
    1,
    {},
    [],
  ]
  const plain = wrong.filter((position) => typeof position === 'string')
  const read = readJson(Buffer.from(genuine, 'base64url').toString())
  if (!Array.isArray(read)) return plain
  const [fingerprint]: unknown[] = read
  const bound = wrong.map((position) =>
    Buffer.from(JSON.stringify([fingerprint, position])).toString('base64url'),
  )
  return [...plain, ...bound]
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
