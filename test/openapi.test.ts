import { Validator } from '@seriousme/openapi-schema-validator'
import test from 'ava'
import { Compile } from 'typebox/compile'

import { adminRoutes } from '../api/admin.ts'
import { documentationRoutes } from '../api/documentation.ts'
import { restRoutes } from '../api/rest.ts'
import { toolRoutes } from '../api/tools.ts'
import { v1Routes } from '../api/v1.ts'
import { STEP_CONFIGS, WAIT_MODES, WAIT_UNTIL_CONFIGS } from '../schema/automation-steps.ts'
import { TRIGGER_CONFIGS, TRIGGER_TYPES } from '../schema/automation-triggers.ts'
import { STEP_TYPES } from '../schema/automation.ts'
import { LISTED_TOOLS } from '../src/catalogue/registry.ts'
import { readDefinition } from '../src/domain/automations/definition/validate.ts'
import { type Answer, startApi, type TestApi } from './helpers/api.ts'
import { STEPS } from './helpers/language.ts'
import { resolved } from './helpers/resolved.ts'
import { inWorld, makeWorld, type World } from './helpers/world.ts'

type Operation = {
  operationId: string
  summary?: string
  'x-effect'?: string
  security?: Record<string, unknown>[]
  parameters?: { name: string; in: string; example?: unknown }[]
  requestBody?: { required: boolean; content: Record<string, { example?: unknown }> }
  responses: Record<string, unknown>
}
type Document = {
  openapi: string
  info: { description: string }
  servers: { url: string }[]
  components: { schemas: Record<string, object> }
  paths: Record<string, Record<string, Operation>>
}

let api: TestApi
let document: Document

test.before(async () => {
  api = await startApi()
  document = (await api.request('GET', '/openapi.json')).body
})
test.after.always(async () => {
  await api?.close()
})

/** Files that the documentation pages load. */
const NOT_DESCRIBED = new Set(['/docs/:file'])

test('the document is OpenAPI 3.1, valid by a validator that is not ours', async (t) => {
  t.is(document.openapi, '3.1.0')
  t.is(document.servers[0]?.url, api.url)
  const { valid, errors } = await new Validator().validate(structuredClone(document))
  t.true(valid, JSON.stringify(errors))
})

test('the doors of MCP are named, with where more is said of them', async (t) => {
  const { description } = document.info
  t.true(description.includes('`/api/mcp/sse`') && description.includes('`/mcp`'))
  const metadata = /\]\((\/[^)]*)\)/.exec(description)?.[1] ?? ''
  t.is((await api.request('GET', metadata)).body.issuer, api.url)
  const page: unknown = JSON.parse(/`get_skill` with `([^`]*)`/.exec(description)?.[1] ?? '')
  const organization = await api.organization()
  t.regex((await organization.data('get_skill', Object(page))).skill.markdown, /^# MCP/)
})

test('every tool and every address of the API is described, and nothing else', (t) => {
  const { services } = api
  const doors = [toolRoutes, restRoutes, v1Routes, adminRoutes, documentationRoutes].map((door) =>
    door(services),
  )
  const served = doors
    .flatMap((door) => door.stack)
    .flatMap(({ path, methods }) => methods.map((method) => ({ path: String(path), method })))
    .filter(({ path, method }) => method !== 'HEAD' && !NOT_DESCRIBED.has(path))
    .map(({ path, method }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}').replace(/(?<=.)\/$/, '')}`)
    // The document has a separate path for each tool.
    .filter((address) => address !== 'POST /api/v2/tools/{name}')
  const tools = LISTED_TOOLS.map(({ name }) => `POST /api/v2/tools/${name}`)
  const health = ['GET /healthz', 'GET /readyz', 'GET /metrics']
  const described = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  )
  t.deepEqual(described.toSorted(), [...served, ...tools, ...health].toSorted())
})

test('every operation has a name of its own, says what it does and how it refuses', (t) => {
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item))
  const names = operations.map(({ operationId }) => operationId)
  t.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  )
  t.true(operations.every(({ summary }) => typeof summary === 'string' && summary.length > 5))
  for (const [path, item] of Object.entries(document.paths)) {
    if (!path.startsWith('/api/')) continue
    for (const { responses } of Object.values(item)) {
      t.true(['401', '429', '500', '503'].every((status) => status in responses))
    }
  }
})

test('the document says what a workflow is made of, in all places by the same words', (t) => {
  const item = (name: string) => ({ type: 'array', items: { $ref: `#/components/schemas/${name}` } })
  const graph = { steps: item('Step'), edges: item('Edge') }
  const language = {
    ...graph,
    settings: { $ref: '#/components/schemas/WorkflowSettings' },
    successGoals: item('SuccessGoal'),
  }
  const takes = (tool: string) =>
    Object(document.paths[`/api/v2/tools/${tool}`]?.['post']?.requestBody?.content['application/json']).schema
      .properties
  t.like(takes('configure_workflow_draft'), language)
  t.like(takes('update_workflow_draft').definition.properties, graph)
  t.like(takes('simulate_workflow').definition.properties, language)
  const { draft, settings, successGoals } = Object(document.components.schemas['Workflow']).properties
  t.like({ ...draft.properties, settings, successGoals }, language)
})

test('what validation takes as a step, the document does, and what the document refuses, validation does', (t) => {
  const written = Compile(resolved(document.components.schemas['Step'], document))
  const faults = (step: object) =>
    readDefinition({ steps: [step], edges: [] }).faults.filter(({ path }) => path.startsWith('steps[0].'))
  for (const step of STEPS) {
    const name = JSON.stringify(step)
    t.deepEqual(
      faults(step).filter(({ path }) => !path.endsWith('.toStepId')),
      [],
      name,
    )
    t.true(written.Check(step), name)
    t.deepEqual(Object.keys(step.config).toSorted(), Object.keys(membersOf(step)).toSorted(), name)
    for (const changed of mistakes(step)) {
      if (!written.Check(changed)) t.not(faults(changed).length, 0, JSON.stringify(changed))
    }
    for (const unknown of [
      { ...step, other: 1 },
      { ...step, config: { ...step.config, other: 1 } },
    ]) {
      t.false(written.Check(unknown), JSON.stringify(unknown))
    }
  }
  const kinds = [...STEP_TYPES, ...TRIGGER_TYPES, ...WAIT_MODES]
  const used = new Set(STEPS.flatMap(({ type, config }) => [type, Object(config).type, Object(config).mode]))
  t.deepEqual(
    kinds.filter((kind) => !used.has(kind)),
    [],
  )
})

/** Returns the step with each member removed, and with each member changed to an invalid type. */
function mistakes(step: { config: object }): object[] {
  const { config } = step
  const within = Object.keys(config).flatMap((member) => {
    const { [member]: _left, ...others } = Object(config)
    return [others, { ...config, [member]: [[]] }, { ...config, [member]: 'other' }]
  })
  const around = Object.keys(step).flatMap((member) => {
    const { [member]: _left, ...others } = Object(step)
    return [others, { ...step, [member]: [[]] }]
  })
  return [...around, ...within.map((changed) => ({ ...step, config: changed }))]
}

/** Returns the members in the schema of a step's configuration. */
function membersOf({ type, config }: { type: string; config: object }): object {
  const { type: trigger, mode } = Object(config)
  if (type === 'TRIGGER') return Object(Object(TRIGGER_CONFIGS)[trigger]).properties
  return Object(type === 'WAIT_UNTIL' ? Object(WAIT_UNTIL_CONFIGS)[mode] : Object(STEP_CONFIGS)[type])
    .properties
}

test('anybody may read the document, and who has it is told so', async (t) => {
  const first = await api.request('GET', '/openapi.json')
  t.is(first.status, 200)
  t.is(first.headers.get('content-type'), 'application/json; charset=utf-8')
  const tag = first.headers.get('etag') ?? ''
  // Without this, `fetch()` sends `no-cache` together with a condition.
  const headers = { 'if-none-match': tag, 'cache-control': 'max-age=0' }
  t.is((await api.request('GET', '/openapi.json', { headers })).status, 304)
})

/** Operations whose valid examples are refused because the needed state takes an engine or an earlier read. */
const REFUSED_BY_STATE = new Map(
  Object.entries({
    remove_suppression: 404,
    resume_sending: 409,
    configure_workflow_draft: 409,
    update_workflow_draft: 409,
    add_subscriber_to_workflow: 409,
    fast_forward_workflow_subscriber: 409,
    retry_workflow_run: 409,
    delete_workflow_group: 409,
    unarchive_campaign: 409,
    cancel_campaign_schedule: 409,
    pause_campaign: 409,
    resume_campaign: 409,
    rotate_dkim_key: 409,
  }),
)
/** Operations that need a current signature, which a written example cannot have. */
const SIGNED = new Set(['take_webhook'])
/** Operations that fetch external URLs. */
const FETCHING = new Set(['fetch_web_page', 'upload_image'])

test('every operation shows a request as it can be sent', (t) => {
  const bare = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, operation]) => !requestOf(path, operation) && !SIGNED.has(operation.operationId))
      .map(([method]) => `${method} ${path}`),
  )
  t.deepEqual(bare, [])
})

test('what the document shows as a request is answered as a success', async (t) => {
  t.timeout(10 * 60_000)
  const shared = await newWorld()
  const adminKey = await api.adminKey()
  const wrong: string[] = []
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const { operationId } = operation
      const request = requestOf(path, operation)
      if (!request || FETCHING.has(operationId)) continue
      const world = operation['x-effect'] === 'read' ? shared : await newWorld()
      const token = operation.security?.some((each) => 'adminKey' in each) ? adminKey : world.token
      const { address, body, file } = inWorld(request, world)
      const send = (input: unknown): Promise<Answer> =>
        api.request(method.toUpperCase(), address, {
          token,
          ...(input !== undefined && { body: input }),
          ...(file && { raw: file.text, headers: { 'content-type': file.type } }),
        })
      let answer = await send(body)
      if (answer.status === 428) {
        answer = await send({ ...Object(body), confirmationCode: answer.body.confirmationCode })
      }
      const refused = REFUSED_BY_STATE.get(operationId)
      if (refused === undefined ? answer.status >= 300 : answer.status !== refused)
        wrong.push(`${operationId} ${answer.status} ${JSON.stringify(answer.body).slice(0, 300)}`)
    }
  }
  t.deepEqual(wrong, [])
})

/** Creates an organization with a record of every kind, and returns its token too. */
async function newWorld(): Promise<World & { token: string }> {
  const organization = await api.organization()
  return { ...(await makeWorld(api, organization)), token: organization.token }
}

type Request = { address: string; body?: unknown; file?: { type: string; text: string } }

/** Returns the request in the document's example, or undefined if it has none. */
function requestOf(path: string, { parameters = [], requestBody }: Operation): Request | undefined {
  const inPath = parameters.filter((parameter) => parameter.in === 'path')
  if (inPath.some(({ example }) => example === undefined)) return undefined
  const address = inPath.reduce((all, { name, example }) => all.replace(`{${name}}`, String(example)), path)
  const [content] = Object.entries(requestBody?.content ?? {})
  const [type, shown] = content ?? ['application/json', {}]
  const { example } = shown
  if (requestBody?.required && example === undefined) return undefined
  return type === 'application/json'
    ? { address, body: example }
    : { address, file: { type, text: String(example) } }
}
