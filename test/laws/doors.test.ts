import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

import anyTest, { type ExecutionContext, type TestFn } from 'ava'

import { describeTool, type ToolDescription } from '../../src/catalogue/describe-tool.ts'
import { Failure, type FailureCode, FAILURES } from '../../src/catalogue/failure.ts'
import { invoke } from '../../src/catalogue/invoke.ts'
import { EXAMPLES } from '../../src/catalogue/openapi/examples.ts'
import { LANGUAGE, withLanguage } from '../../src/catalogue/openapi/language.ts'
import { authenticate } from '../../src/catalogue/principal.ts'
import { CATALOGUE, findOperation, findTool, LISTED_TOOLS } from '../../src/catalogue/registry.ts'
import { makeToken } from '../../src/catalogue/tokens.ts'
import type { Tool } from '../../src/catalogue/tool.ts'
import { newId } from '../../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from '../helpers/api.ts'
import {
  type Asked,
  CLI_DOOR,
  DOORS,
  letIn,
  MCP_DOOR,
  OAUTH_DOOR,
  readMessage,
  runCommand,
  type Said,
  SDK_DOOR,
  type Sent,
  TOOLS_DOOR,
  accessTokenOf,
} from '../helpers/doors.ts'
import { eventually } from '../helpers/eventually.ts'
import { listenOnLoopback } from '../helpers/listen.ts'
import { resolved } from '../helpers/resolved.ts'
import { inWorld, makeMissingWorld, makeWorld, type World } from '../helpers/world.ts'

/**
 * All interfaces ("doors") only translate: for the same call, each returns what the core returned, with the code,
 * status and name from the table in failure.ts, and the same message and details as the others.
 */
type Worlds = { own: World; missing: World }
type Law = { api: TestApi; organization: TestOrganization; worlds: Worlds }

const test = anyTest as TestFn<Law>
/** The codes that occurred in any test below. */
const met = new Set<FailureCode>()

test.before(async (t) => {
  const api = await startApi({ TEMPORAL_TASK_QUEUE: `doors-${process.pid}` })
  const organization = await api.organization()
  await letIn(api, organization)
  t.context = {
    api,
    organization,
    worlds: {
      own: await makeWorld(api, organization),
      missing: makeMissingWorld(api, organization),
    },
  }
})
test.after.always(async (t) => {
  await t.context.api?.close()
})

/** Returns the failure with which the core refuses a call, or null if it succeeds. */
async function refusalOf({ api }: Law, asked: Asked, gated: boolean): Promise<Failure | null> {
  try {
    await runCore(api, asked, gated)
    return null
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

async function runCore(api: TestApi, { token, operation, input }: Asked, gated: boolean): Promise<unknown> {
  const principal = await authenticate(api.services, `Bearer ${token}`)
  return await invoke(api.services, principal, { tool: findOperation(operation), input, gated })
}

/** Makes a call to the core and to every door that offers the operation, and compares the answers. */
async function holdsEverywhere(t: ExecutionContext<Law>, asked: Asked, code?: FailureCode): Promise<void> {
  const tool = findOperation(asked.operation)
  const doors = DOORS.filter((door) => door.takes(tool, asked.input) && door.admits?.(asked.token) !== false)
  for (const [gated, alike] of Map.groupBy(doors, (door) => door.gated)) {
    const failure = await refusalOf(t.context, asked, gated)
    if (code !== undefined) t.is(failure?.code, code, JSON.stringify(asked))
    if (failure === null) continue
    met.add(failure.code)
    for (const door of alike) {
      const title = `${door.name}, ${asked.operation} ${JSON.stringify(asked.input)}`
      const seen = await door.call(t.context.api, asked)
      t.deepEqual(timeless(seen), timeless(door.refusing(failure, asked)), title)
    }
  }
}

/** Removes what differs between answers: confirmation codes, timestamps and waiting times. */
function timeless(said: Said): unknown {
  const text = JSON.stringify(said)
  const moments = /(?<=")\d{5}(?=\\?")|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)|\b\d+ s\b/g
  return JSON.parse(text.replaceAll(moments, '*'))
}

/** Operations that use the network; their result does not depend on the door. */
const ASKS_THE_WORLD = new Set(['fetch_web_page', 'upload_image', 'verify_domain', 'verify_email_address'])

const KINDS: Record<string, keyof World> = {
  subscriber: 'sub',
  subscriberId: 'sub',
  tag: 'tag',
  campaignId: 'cmp',
  domain: 'dom',
  emailId: 'eml',
  tokenId: 'tok',
  importId: 'imp',
  webhookId: 'whk',
  deliveryId: 'evt',
}

/** Returns the documented example of an operation with records of `world`, also for required members that it lacks. */
function exampleOf(tool: Tool, world: World): Record<string, unknown> {
  const { properties } = tool.input
  const required: string[] = tool.input.required ?? []
  const example = inWorld(EXAMPLES[tool.name] ?? {}, world)
  // Where a subscriber can be named in two ways, one of them must be present.
  const isNamed = 'email' in example || 'sample' in example
  const person = 'subscriberId' in properties && !isNamed ? ['subscriberId'] : []
  const places = [...required, ...person].filter((name) => name in KINDS)
  return { ...Object.fromEntries(places.map((name) => [name, world[KINDS[name] ?? 'sub']])), ...example }
}

/** Returns invalid inputs of various kinds. A query string can express only some of them. */
function wrongInputs(tool: Tool, example: Record<string, unknown>): Record<string, unknown>[] {
  const { properties } = tool.input
  const required = tool.input.required ?? []
  const members = Object.entries(properties).map(
    ([name, schema]: [string, object]) => [name, Reflect.get(schema, 'type') as unknown] as const,
  )
  const noNumbers = members
    .filter(([, type]) => type === 'integer' || type === 'number' || type === 'boolean')
    .map(([name]) => [name, 'x'] as const)
  const noTypes = members.map(([name, type]) => [name, type === 'object' ? 'x' : { unexpected: [] }] as const)
  return [
    {},
    { ...example, noSuchField: 'x', emial: 'x' },
    { ...example, ...Object.fromEntries(noNumbers), noSuchField: 'x' },
    { ...Object.fromEntries(noTypes), noSuchField: 'x' },
    ...required.map((missing) =>
      Object.fromEntries(Object.entries(example).filter(([name]) => name !== missing)),
    ),
    { ...example, noSuchField: 'bell\u0007' },
    { ...example, noSuchField: nested(80) },
    { ...example, ...JSON.parse('{"__proto__": {"a": 1}}') },
  ]
}

function nested(levels: number): unknown {
  let value: unknown = 'x'
  for (let level = 0; level < levels; level += 1) value = [value]
  return value
}

/** Operations that some door offers with an object as input. */
const OPERATIONS = [...CATALOGUE.values()].filter((tool) => DOORS.some((door) => door.has(tool)))

for (const tool of OPERATIONS) {
  const { name: operation } = tool
  test.serial(
    `${operation}: a wrong input and a missing permission are told in the same words at every door`,
    async (t) => {
      const { organization, worlds } = t.context
      const example = exampleOf(tool, worlds.own)
      const powerless = await organization.tokenWith([])
      const refused = tool.permission === null ? undefined : 'FORBIDDEN'
      await holdsEverywhere(t, { token: powerless, operation, input: example }, refused)
      for (const input of wrongInputs(tool, example)) {
        await holdsEverywhere(t, { token: organization.token, operation, input })
      }
    },
  )

  // Serial, because one test may create what another expects to be missing.
  test.serial(`${operation}: what is missing is so in the same words at every door`, async (t) => {
    const { organization, worlds } = t.context
    const input = exampleOf(tool, worlds.missing)
    if (!ASKS_THE_WORLD.has(operation)) {
      await holdsEverywhere(t, { token: organization.token, operation, input })
    }
    t.pass()
  })
}

test.serial('what one door reads, every door reads', async (t) => {
  const { api, organization, worlds } = t.context
  const { token } = organization
  for (const tool of CATALOGUE.values()) {
    if (tool.effect !== 'read' || ASKS_THE_WORLD.has(tool.name)) continue
    const input = exampleOf(tool, worlds.own)
    const doors = DOORS.filter((door) => door.takes(tool, input))
    for (const door of doors) {
      const asked = { token, operation: tool.name, input }
      const data = await runCore(api, asked, door.gated)
      const { status, body } = await door.call(api, asked)
      t.is(status, 200, `${door.name}, ${tool.name}`)
      t.deepEqual(timeless({ status, body }), timeless({ status, body: door.giving(tool, data) }), door.name)
    }
  }
})

/** Refusals that depend on state, not only on the input: each function prepares the state and returns the call. */
const STATES: Partial<Record<FailureCode, (law: Law) => Promise<Omit<Asked, 'token'> & { token?: string }>>> =
  {
    async WRONG_STATE({ organization }) {
      const { campaign } = await organization.data('create_campaign', { subject: 'Old' })
      await organization.confirmed('archive_campaign', { campaignId: campaign.id })
      return { operation: 'schedule_campaign', input: { campaignId: campaign.id } }
    },
    async CONFIRMATION_REQUIRED({ organization }) {
      const { tag } = await organization.data('create_tag', { name: 'to be deleted' })
      return { operation: 'delete_tag', input: { tagId: tag.id } }
    },
    async STALE_VERSION({ worlds }) {
      const input = { workflowId: worlds.own.wf, expectedUpdatedAt: '2026-01-01T00:00:00.000Z' }
      return { operation: 'configure_workflow_draft', input: { ...input, steps: [], edges: [] } }
    },
    async ALREADY_EXISTS({ worlds }) {
      return { operation: 'create_tag', input: { name: worlds.own.tagName } }
    },
    async FILTER_REFERENCE_MISSING({ organization }) {
      const { tag } = await organization.data('create_tag', { name: 'short-lived' })
      const { campaign } = await organization.data('create_campaign', {
        subject: 'News',
        contentType: 'MARKDOWN',
        content: '[Leave]({{unsubscribeUrl}})',
      })
      const filters = [{ field: 'tags', operator: 'has_any', value: ['short-lived'] }]
      await organization.data('update_campaign_filters', { campaignId: campaign.id, filters })
      await organization.confirmed('delete_tag', { tagId: tag.id })
      return { operation: 'schedule_campaign', input: { campaignId: campaign.id } }
    },
    async INVALID_FROM_ADDRESS() {
      return { operation: 'create_email', input: { ...EMAIL, from: 'nobody' } }
    },
    async DOMAIN_NOT_VERIFIED() {
      return { operation: 'create_email', input: { ...EMAIL, from: 'hello@unknown.example' } }
    },
    async QUOTA_EXCEEDED({ api }) {
      const { token, domain } = await api.organization({ customLimits: { emailsPerMonth: 1 } })
      const input = { ...EMAIL, from: `hello@${domain}` }
      await api.request('POST', '/api/v2/emails', { token, body: input })
      return { token, operation: 'create_email', input }
    },
  }
const EMAIL = { to: 'reader@reader.example', subject: 'Hi', html: 'Hi' }

for (const code of Object.keys(STATES)) {
  test.serial(`${code} is the same at every door`, async (t) => {
    const known = code as FailureCode
    const asked = await STATES[known]?.(t.context)
    if (asked) await holdsEverywhere(t, { token: t.context.organization.token, ...asked }, known)
  })
}

/** Refusals that do not depend on the operation: the request, and whether it is refused before a call is read. */
const REQUESTS: Partial<Record<FailureCode, { unread: boolean; sent: (law: Law) => Sent | Promise<Sent> }>> =
  {
    MISSING_TOKEN: { unread: true, sent: () => ({}) },
    UNAUTHENTICATED: { unread: true, sent: () => ({ token: makeToken() }) },
    MALFORMED_BODY: { unread: true, sent: ({ organization: { token } }) => ({ token, raw: '{"email": ' }) },
    UNSUPPORTED_MEDIA_TYPE: {
      unread: true,
      sent: ({ organization: { token } }) => ({ token, headers: { 'content-type': 'text/plain' } }),
    },
    TOO_LARGE: {
      unread: false,
      sent: ({ organization: { token } }) => ({
        token,
        input: { email: PERSON, name: 'x'.repeat(1_000_000) },
      }),
    },
    INVALID_IDEMPOTENCY_KEY: {
      unread: true,
      sent: ({ organization: { token } }) => ({ token, headers: { 'idempotency-key': '' } }),
    },
    IDEMPOTENCY_MISMATCH: {
      unread: false,
      async sent({ organization }) {
        const headers = { 'idempotency-key': newId() }
        await organization.call('add_subscriber', { email: PERSON }, headers)
        return { token: organization.token, input: { email: PERSON, name: 'Ada' }, headers }
      },
    },
    RATE_LIMITED: {
      unread: true,
      async sent({ api }) {
        const organization = await api.organization({ customLimits: { requestsPerMinute: 1 } })
        await letIn(api, organization)
        return { token: organization.token, input: { email: PERSON } }
      },
    },
  }
const PERSON = 'person@reader.example'

for (const code of Object.keys(REQUESTS)) {
  test.serial(`${code} is the same at every door, whatever is asked for`, async (t) => {
    // `REQUESTS` is keyed by failure codes.
    const known = code as FailureCode
    const { unread, sent } = REQUESTS[known] ?? {}
    if (sent)
      await refusedEverywhere(t, t.context.api, {
        code: known,
        unread: unread === true,
        sent: await sent(t.context),
      })
  })
}

/** Sends the same request to every door until it is refused. All refusals must agree with that of the Tools API. */
async function refusedEverywhere(
  t: ExecutionContext<Law>,
  api: TestApi,
  { code, unread, sent }: { code: FailureCode; unread: boolean; sent: Sent },
): Promise<void> {
  const asked = { token: '', operation: 'add_subscriber', input: {} }
  const {
    error: message,
    code: _word,
    success: _no,
    details,
    ...body
  } = Object((await untilRefused(api, TOOLS_DOOR.post, sent)).body)
  const failure = new Failure(code, message, { details, body })
  for (const door of DOORS) {
    const isOpen = unread || door.has(findOperation(asked.operation))
    if (!door.post || !isOpen || door.admits?.(sent.token ?? '') === false) continue
    const { retryAfter, ...seen } = await untilRefused(api, door.post, sent)
    const expected = unread ? door.refusingUnread(failure, asked) : door.refusing(failure, asked)
    t.deepEqual(timeless(seen), timeless(expected), door.name)
    t.is(retryAfter !== null, code === 'RATE_LIMITED' || code === 'UNAVAILABLE', door.name)
  }
  met.add(code)
}

/** Repeats a request until it is refused, because a rate limit window may end between two requests. */
async function untilRefused<Answer extends Said>(
  api: TestApi,
  post: (api: TestApi, sent: Sent) => Promise<Answer>,
  sent: Sent,
): Promise<Answer> {
  return await eventually('the door to refuse', async () => {
    const seen = await post(api, sent)
    return (seen.status >= 400 || Object(seen.body).success === false) && seen
  })
}

test.serial('a token of nobody is told in the same words by clients', async (t) => {
  const asked = { token: makeToken(), operation: 'create_tag', input: { name: 'of nobody' } }
  const failure = await refusalOf(t.context, asked, true)
  if (failure?.code !== 'UNAUTHENTICATED') return t.fail()
  for (const door of [SDK_DOOR, CLI_DOOR]) {
    const seen = await door.call(t.context.api, asked)
    t.deepEqual(timeless(seen), timeless(door.refusing(failure, asked)), door.name)
  }
})

test.serial('UNAVAILABLE is the same at every door while there is no database', async (t) => {
  const { api, organization } = t.context
  const line = await startLine(api.services.databaseUrl)
  const cut = await startApi({ DATABASE_URL: line.url, LOG_LEVEL: 'silent' })
  t.teardown(() => cut.close())
  t.is((await TOOLS_DOOR.post(cut, { token: organization.token, input: { email: PERSON } })).status, 200)
  await line.cut()
  await refusedEverywhere(t, cut, { code: 'UNAVAILABLE', unread: true, sent: organization })
})

/** Starts a proxy in front of the database whose connections can be cut. */
async function startLine(databaseUrl: string): Promise<{ url: string; cut: () => Promise<void> }> {
  const url = new URL(databaseUrl)
  const [host, port] = [url.hostname, Number(url.port)]
  const ends = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(port, host)
    for (const end of [near, far]) ends.add(end.on('error', () => end.destroy()))
    near.pipe(far).pipe(near)
  })
  url.host = `127.0.0.1:${await listenOnLoopback(server)}`
  return {
    url: url.href,
    async cut() {
      const closed = once(server, 'close')
      server.close()
      for (const end of ends) end.destroy()
      await closed
    },
  }
}

test.serial('a tool that does not exist is told in the same words by those who take names', async (t) => {
  const { api, organization } = t.context
  const asked = { token: organization.token, operation: 'add_subscribr', input: {} }
  const failure = t.throws(() => findTool(asked.operation), { instanceOf: Failure })
  for (const door of [TOOLS_DOOR, MCP_DOOR, OAUTH_DOOR, SDK_DOOR, CLI_DOOR]) {
    const { body } = await door.call(api, asked)
    const expected = door.refusing(failure, asked)
    t.deepEqual(timeless({ ...expected, body }), timeless(expected), door.name)
  }
  met.add(failure.code)
})

/** Refusals that no call of an operation in this file causes. */
const NOT_MET = new Set([
  // Only REST has it, for faults in the path or query. Elsewhere it is INVALID_INPUT.
  'INVALID_PARAMETER',
  // For an existing path with another method.
  'METHOD_NOT_ALLOWED',
  // Only while the first of two requests is still running.
  'IDEMPOTENCY_IN_PROGRESS',
  // An internal error.
  'FAULT',
])

test.after('every refusal there is was met at every door', (t) => {
  t.deepEqual(
    Object.keys(FAILURES).filter((code) => !NOT_MET.has(code) && !met.has(code as FailureCode)),
    [],
  )
})

/** The interfaces that publish the catalogue, each with the members of a tool that it shows. */
const CATALOGUES: Record<string, (law: Law) => Promise<Partial<ToolDescription>[]>> = {
  async 'Tools API'({ api, organization: { token } }) {
    const { body } = await api.request('GET', '/api/v2/tools', { token })
    return body.data.tools
  },
  async 'command line'({ api, organization: { token } }) {
    const { json } = await runCommand(api, token, ['tools'])
    return json.tools
  },
  async OpenAPI({ api }) {
    const { body: document } = await api.request('GET', '/openapi.json')
    return Object.entries<{ post: OpenApiOperation }>(document.paths).flatMap(([path, { post }]) => {
      const name = /^\/api\/v2\/tools\/(\w+)$/.exec(path)?.[1]
      if (name === undefined) return []
      const schemaOf = ({ content }: OpenApiBody) => resolved(content['application/json'].schema, document)
      const answer = schemaOf(post.responses['200'])
      return [
        {
          name,
          inputSchema: schemaOf(post.requestBody),
          outputSchema: Object(answer).properties.data,
          description: post.description.split('\n\n')[0] ?? '',
        },
      ]
    })
  },
  'token MCP': async ({ api, organization }) => await listOverMcp(api, '/api/mcp/sse', organization.token),
  'OAuth MCP': async ({ api, organization }) =>
    await listOverMcp(api, '/mcp', accessTokenOf(organization.token)),
}

async function listOverMcp(
  api: TestApi,
  address: string,
  token: string,
): Promise<Partial<ToolDescription>[]> {
  const { body } = await api.request('POST', address, {
    token,
    body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    headers: { accept: 'application/json, text/event-stream' },
  })
  // Over MCP, the schema of the output allows for refusals as well.
  return readMessage(body).result.tools.map(
    ({ outputSchema, ...tool }: { outputSchema: { anyOf: unknown[] } }) => ({
      ...tool,
      outputSchema: outputSchema.anyOf[0],
    }),
  )
}

type OpenApiBody = { content: { 'application/json': { schema: object } } }
type OpenApiOperation = {
  description: string
  requestBody: OpenApiBody
  responses: { 200: OpenApiBody }
}

/** The OpenAPI document has the full schema of workflow graphs where the catalogue has open lists. */
function inWholeLanguage(described: object): object {
  return resolved(withLanguage(described), { components: { schemas: LANGUAGE } })
}

for (const [name, read] of Object.entries(CATALOGUES)) {
  test(`${name} shows every tool by the same name, with the same schemas and words`, async (t) => {
    const shown = await read(t.context)
    const tools =
      name === OAUTH_DOOR.name ? LISTED_TOOLS.filter((tool) => OAUTH_DOOR.has(tool)) : LISTED_TOOLS
    t.deepEqual(
      shown.map((tool) => tool.name),
      tools.map((tool) => tool.name),
    )
    for (const [index, tool] of tools.entries()) {
      const described = JSON.parse(JSON.stringify({ title: tool.title, ...describeTool(tool) }))
      const facts = name === 'OpenAPI' ? inWholeLanguage(described) : described
      const seen = shown[index] ?? {}
      const common = Object.fromEntries(
        Object.keys(facts)
          .filter((key) => key in seen)
          .map((key) => [key, Reflect.get(facts, key)]),
      )
      t.deepEqual(seen, common, tool.name)
    }
  })
}
