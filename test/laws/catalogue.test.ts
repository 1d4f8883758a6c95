import anyTest, { type TestFn } from 'ava'

import { describeTool } from '../../src/catalogue/describe-tool.ts'
import { CATALOGUE, LISTED_TOOLS } from '../../src/catalogue/registry.ts'
import type { Tool } from '../../src/catalogue/tool.ts'
import { encodeId, ID_PREFIXES, type IdPrefix, newId } from '../../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from '../helpers/api.ts'

const test = anyTest as TestFn<{ api: TestApi; organization: TestOrganization }>

test.before(async (t) => {
  t.context.api = await startApi()
  t.context.organization = await t.context.api.organization()
})
test.after.always(async (t) => {
  await t.context.api.close()
})

for (const tool of CATALOGUE.values()) {
  test(`${tool.name}: input and output are closed, described objects`, (t) => {
    t.is(Reflect.get(tool.input, 'additionalProperties'), false)
    t.is(Reflect.get(tool.output, 'additionalProperties'), false)
    t.regex(tool.name, /^[a-z]+(_[a-z0-9]+)*$/)
    t.true(tool.description.length >= 30, 'a description says what the tool does and when to use it')
    t.true(tool.title.length > 0)
  })
}

for (const tool of LISTED_TOOLS) {
  test(`${tool.name}: a default is never required on the wire`, (t) => {
    const required = new Set(tool.input.required)
    const defaulted = Object.entries(tool.input.properties).filter(([, schema]) => 'default' in schema)
    t.deepEqual(
      defaulted.filter(([name]) => required.has(name)),
      [],
    )
  })

  test(`${tool.name}: hints and gate follow from its effect`, (t) => {
    const { annotations, requiresConfirmation, inputSchema } = describeTool(tool)
    t.is(annotations.readOnlyHint, tool.effect === 'read')
    t.is(annotations.destructiveHint, tool.effect === 'impact')
    t.is(requiresConfirmation, tool.effect === 'impact')
    t.is('confirmationCode' in Reflect.get(inputSchema, 'properties'), tool.effect === 'impact')
  })

  test(`${tool.name}: no token, no permission, an unknown field and a wrong type are refused`, async (t) => {
    const { api, organization } = t.context
    const path = `/api/v2/tools/${tool.name}`
    t.is((await api.request('POST', path, { body: {} })).status, 401)
    const token = await organization.tokenWith([])
    t.is((await api.request('POST', path, { token, body: {} })).status, 403)
    const unknown = await organization.call(tool.name, { noSuchField: 1 })
    t.is(unknown.status, 400)
    t.true(JSON.stringify(unknown.body).includes('noSuchField'))
    const least = inputWith(tool, (prefix) => encodeId(prefix, newId()))
    for (const [name, schema] of Object.entries(tool.input.properties)) {
      if (takesObjects(schema)) continue
      const wrong = await organization.call(tool.name, { ...least, [name]: { unexpected: [] } })
      t.is(wrong.status, 400, `${name} took an object of the wrong shape`)
      const faults: { path: string }[] = wrong.body.details
      t.true(
        faults.some(({ path }) => path.startsWith(name)),
        JSON.stringify(wrong.body),
      )
    }
  })

  test(`${tool.name}: schema`, (t) => {
    t.snapshot(describeTool(tool))
  })
}

const ID_FIELDS: Record<string, IdPrefix> = {
  subscriberId: 'sub',
  subscriber: 'sub',
  tagId: 'tag',
  workflowId: 'wf',
  campaignId: 'cmp',
  runId: 'run',
  senderId: 'snd',
  segmentId: 'seg',
  snippetId: 'snp',
  imageId: 'img',
}

for (const tool of LISTED_TOOLS.filter(({ input }) =>
  Object.keys(input.properties).some((name) => name in ID_FIELDS),
)) {
  test(`${tool.name}: a malformed id answers as a missing one`, async (t) => {
    const { organization } = t.context
    const statuses = []
    for (const make of [
      (prefix: IdPrefix) => encodeId(prefix, newId()),
      (prefix: IdPrefix) => `${prefix}_nonsense`,
      () => 'x',
    ]) {
      const answer = await organization.call(tool.name, inputWith(tool, make))
      statuses.push(answer.status)
      t.is(answer.body.code, 'NOT_FOUND', JSON.stringify(answer.body))
    }
    t.deepEqual(statuses, [404, 404, 404])
  })
}

/** Returns whether an object with any members is valid, so that it cannot serve as a wrong type. */
function takesObjects(schema: object): boolean {
  const { type } = { type: undefined, ...schema }
  return type === 'object' || type === undefined
}

/** Input members that a tool needs although its schema does not require them. */
const NEEDED: Record<string, readonly string[]> = {
  explain_delivery: ['campaignId'],
  simulate_workflow: ['workflowId'],
}

/** Returns the smallest input of a tool, with ids from `make`. */
function inputWith(tool: Tool, make: (prefix: IdPrefix) => string): Record<string, unknown> {
  const names = new Set([...(tool.input.required ?? []), ...(NEEDED[tool.name] ?? [])])
  const id = Object.keys(ID_FIELDS).find((name) => name in tool.input.properties)
  if (id) names.add(id)
  return Object.fromEntries(
    [...names].map((name) => {
      const prefix = ID_FIELDS[name]
      return [name, prefix ? make(prefix) : sampleOf(name, tool.input.properties[name])]
    }),
  )
}

const SAMPLES: Record<string, unknown> = {
  expectedUpdatedAt: '2026-01-01T00:00:00.000Z',
  definition: { steps: [], edges: [] },
  eventType: 'SUBSCRIBER_PAYMENT',
  status: 'PAUSED',
}

function sampleOf(name: string, schema: object | undefined): unknown {
  if (name in SAMPLES) return SAMPLES[name]
  switch (schema && Reflect.get(schema, 'type')) {
    case 'array':
      return name.endsWith('Ids') ? [encodeId('sub', newId())] : ['x']
    case 'integer':
    case 'number':
      return 1
    default:
      return 'x'
  }
}

test('every id prefix has a word for people', (t) => {
  t.true(Object.values(ID_PREFIXES).every((word) => word.length > 0))
})
