import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import test from 'ava'

import { findInspector } from '../scripts/services/inspector.ts'
import { findTool, LISTED_TOOLS } from '../src/catalogue/registry.ts'
import { schemaFaults } from '../src/catalogue/schema-faults.ts'
import { SKILL_TYPES } from '../src/skills/skills.ts'
import { type Answer, startApi, type TestApi } from './helpers/api.ts'
import { conformanceFaults } from './helpers/conformance.ts'
import { inspect } from './helpers/inspector.ts'

const PATH = '/api/mcp/sse'
const ERAS = { '2026-07-28': { pin: '2026-07-28' }, '2025': 'legacy' } as const

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

type Era = (typeof ERAS)[keyof typeof ERAS]

async function connect(token: string, mode: Era = ERAS['2026-07-28']): Promise<Client> {
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } })
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${api.url}${PATH}`), {
      requestInit: { headers: { authorization: `Bearer ${token}` } },
    }),
  )
  return client
}

// oxlint-disable-next-line typescript/no-explicit-any -- assertions reach into results of every shape
async function run(client: Client, name: string, input: Record<string, unknown> = {}): Promise<any> {
  return await client.callTool({ name, arguments: input })
}

for (const [era, mode] of Object.entries(ERAS)) {
  test(`revision ${era}: every tool with its schemas and hints, called as over HTTP`, async (t) => {
    const organization = await api.organization()
    const client = await connect(organization.token, mode)
    t.teardown(() => client.close())
    t.regex(client.getInstructions() ?? '', /get_skill/)
    const { tools } = await client.listTools()
    const { body } = await api.request('GET', '/api/v2/tools', { token: organization.token })
    t.deepEqual(
      tools.map(({ name }) => name),
      LISTED_TOOLS.map(({ name }) => name),
    )
    for (const [index, tool] of tools.entries()) {
      const { description, inputSchema, outputSchema, annotations } = body.data.tools[index]
      t.like(tool, { description, annotations, title: annotations.title })
      t.deepEqual(tool.inputSchema, inputSchema)
      t.deepEqual(Object(tool.outputSchema).anyOf[0], outputSchema)
    }

    const made = await run(client, 'add_subscriber', { email: 'ada@reader.example', name: 'Ada' })
    t.falsy(made.isError)
    t.is(made.structuredContent.subscriber.email, 'ada@reader.example')
    t.deepEqual(JSON.parse(made.content[0].text), made.structuredContent)
    const { subscriber } = await organization.data('get_subscriber', { email: 'ada@reader.example' })
    t.deepEqual(made.structuredContent.subscriber, subscriber)
  })

  test(`revision ${era}: a refusal is a result that says what to repair, a confirmation too`, async (t) => {
    const organization = await api.organization()
    const client = await connect(organization.token, mode)
    t.teardown(() => client.close())
    const wrong = await run(client, 'add_subscriber', { emial: 'ada@reader.example' })
    const { body } = await organization.call('add_subscriber', { emial: 'ada@reader.example' })
    t.true(wrong.isError)
    t.deepEqual(wrong.structuredContent, body)
    const { tools } = await client.listTools()
    // Many clients check every structured content by the schema, that of a refusal too.
    const faultsOf = (name: string, { structuredContent }: { structuredContent: unknown }) =>
      schemaFaults(Object(tools.find((tool) => tool.name === name)).outputSchema, structuredContent)
    t.deepEqual(faultsOf('add_subscriber', wrong), [])
    await t.throwsAsync(run(client, 'add_subscribr', {}), { message: /add_subscriber/, code: -32_602 })

    const { tag } = await organization.data('create_tag', { name: 'old' })
    const asked = await run(client, 'delete_tag', { tagId: tag.id })
    t.true(asked.isError)
    const { code, confirmationCode, summary } = asked.structuredContent
    t.is(code, 'CONFIRMATION_REQUIRED')
    t.regex(confirmationCode, /^\d{5}$/)
    t.is(summary.action, 'delete_tag')
    t.deepEqual(faultsOf('delete_tag', asked), [])
    t.is((await organization.data('list_tags')).tags.length, 1)
    const done = await run(client, 'delete_tag', { tagId: tag.id, confirmationCode })
    t.falsy(done.isError, JSON.stringify(done))
    t.deepEqual(faultsOf('delete_tag', done), [])
    t.not(faultsOf('delete_tag', { structuredContent: {} }).length, 0)
    t.is((await organization.data('list_tags')).tags.length, 0)
  })
}

test('the documents of tasks are prompts', async (t) => {
  const client = await connect((await api.organization()).token)
  t.teardown(() => client.close())
  const { prompts } = await client.listPrompts()
  t.deepEqual(
    prompts.map(({ name }) => name),
    [...SKILL_TYPES],
  )
  const workflow = await client.getPrompt({ name: 'workflow' })
  const text = workflow.messages[0]?.content
  t.regex(text?.type === 'text' ? text.text : '', /TRIGGER/)
  const page = await client.getPrompt({ name: 'docs', arguments: { page: 'smtp' } })
  t.regex(JSON.stringify(page), /STARTTLS/)
  await t.throwsAsync(client.getPrompt({ name: 'docs', arguments: { page: 'nothing' } }), {
    message: /the pages are/,
  })
  await t.throwsAsync(client.getPrompt({ name: 'poetry' }), { code: -32_602 })
})

test('the documents for developers are resources, as anybody reads them', async (t) => {
  const client = await connect((await api.organization()).token)
  t.teardown(() => client.close())
  const { resources } = await client.listResources()
  t.deepEqual(
    resources.map(({ uri, mimeType }) => [uri, mimeType]),
    [
      [`${api.url}/`, 'text/markdown'],
      [`${api.url}/openapi.json`, 'application/json'],
    ],
  )
  for (const { uri, mimeType = '' } of resources) {
    const { contents } = await client.readResource({ uri })
    const answer = await fetch(uri, { headers: { accept: mimeType } })
    t.like(contents[0], { uri, mimeType, text: await answer.text() })
  }
  await t.throwsAsync(client.readResource({ uri: `${api.url}/secrets` }), { message: /secrets|not found/i })
})

test('a workflow is edited as the instructions say: document, read, one whole write, read back, each email seen', async (t) => {
  const organization = await api.organization()
  const client = await connect(organization.token)
  t.teardown(() => client.close())
  const data = async (name: string, input: Record<string, unknown> = {}) => {
    const { isError, structuredContent } = await run(client, name, input)
    t.falsy(isError, JSON.stringify(structuredContent))
    return structuredContent
  }
  t.regex((await data('get_skill', { type: 'workflow' })).skill.markdown, /expectedUpdatedAt/)
  await data('create_workflow', { name: 'Welcome' })
  const { workflows } = await data('list_workflows')
  const { workflow } = await data('get_workflow', { workflowId: workflows[0].id })
  const { senders } = await data('get_email_senders')
  await data('create_tag', { name: 'newcomer' })
  const graph = {
    steps: [
      { id: 'start', type: 'TRIGGER', config: { type: 'TAG_ADDED', tagNames: ['newcomer'] } },
      { id: 'wait', type: 'WAIT', config: { amount: 1, unit: 'DAYS' } },
      {
        id: 'welcome',
        type: 'EMAIL',
        config: {
          subject: 'Welcome, {{name}}',
          preview: 'Good to have you',
          content: 'Hello {{name}}, [leave]({{unsubscribeUrl}}).',
          contentType: 'MARKDOWN',
          senderId: senders[0].id,
        },
      },
    ],
    edges: [
      { from: 'start', to: 'wait' },
      { from: 'wait', to: 'welcome' },
    ],
  }
  const change = { workflowId: workflow.id, expectedUpdatedAt: workflow.updatedAt, ...graph }
  await data('configure_workflow_draft', change)
  const stale = await run(client, 'configure_workflow_draft', change)
  t.is(stale.structuredContent.code, 'STALE_VERSION')
  const { workflow: after } = await data('get_workflow', { workflowId: workflow.id })
  t.deepEqual(
    after.draft.steps.map(({ id }: { id: string }) => id),
    ['start', 'wait', 'welcome'],
  )
  const { campaignId } = after.draft.steps[2].config
  t.is((await data('get_campaign', { campaignId })).campaign.subject, 'Welcome, {{name}}')
  t.regex((await data('render_campaign', { campaignId })).html, /Hello/)
  t.is(after.status, 'DRAFT')
  await data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: after.updatedAt,
    edges: graph.edges,
    steps: after.draft.steps.with(2, {
      ...after.draft.steps[2],
      config: { ...after.draft.steps[2].config, subject: 'Hello, {{name}}' },
    }),
  })
  const { entries } = await organization.data('list_campaign_history', { campaignId })
  t.deepEqual(
    entries.map(({ subject, source }: { subject: string; source: string }) => [subject, source]),
    [
      ['Hello, {{name}}', 'ai'],
      ['Welcome, {{name}}', 'ai'],
    ],
  )
})

test('what an agent changes says so in the history of a campaign', async (t) => {
  const organization = await api.organization()
  const client = await connect(organization.token)
  t.teardown(() => client.close())
  const { campaign } = await organization.data('create_campaign', {
    subject: 'News',
    contentType: 'MARKDOWN',
    content: 'Hello [leave]({{unsubscribeUrl}})',
  })
  const operations = [{ type: 'replace_text', find: 'Hello', replace: 'Good day' }]
  const edited = await run(client, 'edit_campaign', { id: campaign.id, operations })
  t.falsy(edited.isError, JSON.stringify(edited))
  const { entries } = await organization.data('list_campaign_history', { campaignId: campaign.id })
  t.deepEqual(
    entries.map(({ source }: { source: string }) => source),
    ['ai', 'manual'],
  )
})

test('a token that is none, one that lacks the permission, and a foreign page are refused', async (t) => {
  const organization = await api.organization()
  for (const token of [undefined, 'pl_nonsense']) {
    const answer = await post(token, { jsonrpc: '2.0', id: 1, method: 'ping' })
    t.is(answer.status, 401)
    t.is(answer.headers.get('www-authenticate'), 'Bearer')
    t.is(answer.body.jsonrpc, '2.0')
  }
  const limited = await connect(await organization.tokenWith(['campaigns']))
  t.teardown(() => limited.close())
  const refused = await run(limited, 'list_tags')
  t.is(refused.structuredContent.code, 'FORBIDDEN')
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  const foreign = await post(organization.token, ping, { origin: 'https://evil.example' })
  t.is(foreign.status, 403)
  const own = await post(organization.token, ping, { origin: new URL(api.url).origin })
  t.is(own.status, 200, JSON.stringify(own.body))
  for (const method of ['GET', 'DELETE']) {
    const other = await api.request(method, PATH, { token: organization.token })
    t.is(other.status, 405)
    t.is(other.headers.get('allow'), 'POST')
    t.regex(other.body.error.message, /POST/)
  }
  const broken = await api.request('POST', PATH, { token: organization.token, raw: '{"jsonrpc":' })
  t.is(broken.status, 400)
  t.is(broken.body.error.code, -32_700)
})

test('messages spend from the window of the tools, each of a batch too, and a spent one says when to come again', async (t) => {
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  const spend = async (): Promise<Answer[]> => {
    const own = await api.organization({ plan: 'FREE', customLimits: { requestsPerMinute: 6 } })
    const list = () => own.call('list_tags')
    const send = (body: unknown) => post(own.token, body)
    const answers = [
      await send(ping),
      await list(),
      await send([ping, ping, ping]),
      await list(),
      await send(ping),
    ]
    const resets = answers.map(({ headers }) => Number(headers.get('ratelimit-reset') ?? 0))
    // Repeats the calls if the rate limit window ended between them.
    return resets.some((reset, at) => reset > (resets[at - 1] ?? reset)) ? await spend() : answers
  }
  const [first, second, , fourth, spent] = await spend()
  t.is(first?.headers.get('ratelimit-limit'), '6')
  t.is(first?.headers.get('ratelimit-remaining'), '5')
  t.is(second?.headers.get('ratelimit-remaining'), '4')
  t.is(fourth?.headers.get('ratelimit-remaining'), '0')
  t.is(spent?.status, 429)
  t.truthy(spent?.headers.get('retry-after'))
  t.is(spent?.body.error.data.code, 'RATE_LIMITED')
})

test('an input as large as its tool takes is read, whatever stands around it, and a larger one is refused', async (t) => {
  const { token, ...organization } = await api.organization()
  const client = await connect(token)
  t.teardown(() => client.close())
  for (const name of ['create_campaign', 'create_tag']) {
    const { bodyLimit } = findTool(name)
    const empty = name === 'create_tag' ? { name: '' } : { subject: '' }
    const [member = ''] = Object.keys(empty)
    const room = bodyLimit - JSON.stringify(empty).length
    const [full, over] = [room, room + 1].map((length) => ({ [member]: 'x'.repeat(length) }))
    const read = await run(client, name, full)
    t.is(read.structuredContent.code, 'INVALID_INPUT')
    t.deepEqual(read.structuredContent, (await organization.call(name, full)).body)
    const refused = await run(client, name, over)
    t.is(refused.structuredContent.code, 'TOO_LARGE')
    t.deepEqual(refused.structuredContent, (await organization.call(name, over)).body)
  }
})

test('an input that is nested too deep is refused in words, however deep and large it is', async (t) => {
  const { token } = await api.organization()
  for (const levels of [40, 50_000, 600_000]) {
    const name = '['.repeat(levels) + ']'.repeat(levels)
    const call = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'create_tag', arguments: {} },
    }
    const answer = await api.request('POST', PATH, {
      token,
      raw: JSON.stringify(call).replace('"arguments":{}', `"arguments":{"name":${name}}`),
      headers: { accept: 'application/json, text/event-stream' },
    })
    t.is(answer.status, 200, `${levels} levels`)
    t.regex(JSON.stringify(answer.body), /INVALID_INPUT.*nested deeper than 32 levels/)
  }
})

test('another organization is as far away as over HTTP', async (t) => {
  const [one, other] = [await api.organization(), await api.organization()]
  const { subscriber } = await one.data('add_subscriber', { email: 'ada@reader.example' })
  const client = await connect(other.token)
  t.teardown(() => client.close())
  const found = await run(client, 'get_subscriber', { subscriberId: subscriber.id })
  t.is(found.structuredContent.code, 'NOT_FOUND')
})

test('the conformance suite of the protocol finds no fault', async (t) => {
  const { token } = await api.organization()
  t.deepEqual(await conformanceFaults(api.url, PATH, token), [])
})

const inspector = findInspector()

if (inspector === undefined) {
  test.skip('the MCP Inspector lists, calls and reads (not run: it is not here; npm test installs it)', (t) =>
    t.fail())
} else {
  test('the MCP Inspector lists, calls and reads', async (t) => {
    const { token } = await api.organization()
    const server = { url: `${api.url}${PATH}`, token }
    t.is((await inspect(inspector, server, 'tools/list')).tools.length, LISTED_TOOLS.length)
    const tag = ['--tool-name', 'create_tag', '--tool-arg', 'name=Inspected']
    t.is((await inspect(inspector, server, 'tools/call', ...tag)).structuredContent.tag.name, 'Inspected')
    const { prompts } = await inspect(inspector, server, 'prompts/list')
    t.is(prompts.length, SKILL_TYPES.length)
    const start = ['--uri', `${api.services.config.baseUrl}/`]
    t.regex((await inspect(inspector, server, 'resources/read', ...start)).contents[0].text, /^# /)
  })
}

async function post(token: string | undefined, body: unknown, headers: Record<string, string> = {}) {
  return await api.request('POST', PATH, {
    ...(token !== undefined && { token }),
    body,
    headers: { accept: 'application/json, text/event-stream', ...headers },
  })
}
