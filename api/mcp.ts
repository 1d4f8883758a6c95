import { Readable } from 'node:stream'

import Router from '@koa/router'
import { toWebRequest } from '@modelcontextprotocol/node'
import {
  createMcpHandler,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
} from '@modelcontextprotocol/server'
import type { CallToolResult, GetPromptResult, Tool as McpTool } from '@modelcontextprotocol/server'
import type { Context } from 'koa'

import { describeTool } from '../src/catalogue/describe-tool.ts'
import { Failure } from '../src/catalogue/failure.ts'
import { countRequest, invoke } from '../src/catalogue/invoke.ts'
import type { Principal } from '../src/catalogue/principal.ts'
import { findOperation, LISTED_TOOLS, unknownTool } from '../src/catalogue/registry.ts'
import type { Tool } from '../src/catalogue/tool.ts'
import { startDocument } from '../src/public/developer-pages.ts'
import type { Services } from '../src/services.ts'
import { SKILL_TYPES, SKILLS } from '../src/skills/skills.ts'
import { readJson, tooLarge } from './body.ts'
import { openApiText } from './documentation.ts'
import { idempotencyKeyOf, recognize, writeRate } from './doors.ts'
import { toFailure, toolFailureBody } from './errors.ts'

/** Who speaks in one request, the request, and its messages as they came: the protocol's own copies leave keys out. */
type Caller = {
  principal: Principal
  ctx: Context
  messages: readonly unknown[]
  idempotencyKey: string | undefined
}

const INSTRUCTIONS =
  'Email marketing and transactional email: subscribers, tags, segments, campaigns, workflows. Before a task, read its ' +
  'document with get_skill (or as a prompt). To change a workflow: get_skill with type workflow, find it, get_workflow ' +
  'immediately before editing and keep updatedAt, look up what it names (tags, senders, snippets, campaigns, fields, ' +
  'goals, groups), configure_workflow_draft once with the whole graph and expectedUpdatedAt, then read it back and look ' +
  'at each of its emails with get_campaign and render_campaign. A tool that reaches people or destroys answers with a ' +
  'confirmation first: tell the person what it says, and repeat the same arguments with the code when they agree.'

const BODY_LIMIT = 5_000_000

/**
 * `/api/mcp/sse`: the whole catalogue over the Model Context Protocol, Streamable HTTP, with an API token (contract, "MCP
 * server"). Revision 2026-07-28 and those of 2025 at one address; every request stands by itself, so any process
 * answers it.
 */
export function mcpRoutes(services: Services): Router {
  const handler = createMcpHandler(
    // serve() below is the only one that calls it, and always says who.
    ({ authInfo }) => createServer(services, authInfo?.extra as Caller),
    { onerror: (error) => services.log.warn({ err: error }, 'an MCP request was refused') },
  )
  const router = new Router()
  router.all('/api/mcp/sse', async (ctx) => {
    refuseForeignOrigin(services, ctx)
    const principal = await recognize(services, ctx)
    const body = ctx.method === 'POST' ? await readJson(ctx, BODY_LIMIT) : undefined
    const messages: readonly unknown[] = Array.isArray(body) ? body : [body]
    for (const message of messages) await count(services, ctx, principal, message)
    const caller: Caller = {
      principal: { ...principal, actor: { ...principal.actor, isAgent: true } },
      ctx,
      messages,
      idempotencyKey: idempotencyKeyOf(ctx),
    }
    await answer(
      ctx,
      await handler.fetch(await toWebRequest(ctx.req, body, { signal: endOf(ctx) }), {
        authInfo: { token: '', clientId: principal.actor.id, scopes: [], extra: caller },
        parsedBody: body,
      }),
    )
  })
  return router
}

/** A page in a browser may only speak for itself: what another site sends is refused (DNS rebinding). */
function refuseForeignOrigin({ config }: Services, ctx: Context): void {
  const origin = ctx.get('origin')
  if (origin === '' || origin === new URL(config.baseUrl).origin) return
  if (URL.canParse(origin) && ['localhost', '127.0.0.1', '[::1]'].includes(new URL(origin).hostname)) return
  throw new Failure(
    'FORBIDDEN',
    `Requests of pages at ${JSON.stringify(origin.slice(0, 100))} are not taken; use a client that is no web page, or one of this server's own address.`,
  )
}

/** Each message counts as a call of the Tools API does, and sends as little. */
async function count(
  services: Services,
  ctx: Context,
  principal: Principal,
  message: unknown,
): Promise<void> {
  const { method, params } = Object(message)
  const tool = method === 'tools/call' ? TOOLS.get(Object(params).name) : undefined
  await countRequest(services, principal, {
    bucket: 'tools',
    onRate: (state) => writeRate(ctx, state),
    isFree: tool?.counted === false,
  })
}

async function answer(ctx: Context, response: Response): Promise<void> {
  ctx.status = response.status
  for (const [name, value] of response.headers) ctx.set(name, value)
  if (response.body === null) {
    ctx.body = null
    ctx.status = response.status
  } else if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    ctx.body = Readable.fromWeb(response.body)
  } else ctx.body = await response.text()
}

/** Ends when the client goes. */
function endOf(ctx: Context): AbortSignal {
  const gone = new AbortController()
  ctx.res.once('close', () => gone.abort())
  return gone.signal
}

const TOOLS: ReadonlyMap<string, Tool> = new Map(LISTED_TOOLS.map((tool) => [tool.name, tool]))

const LISTED: readonly McpTool[] = LISTED_TOOLS.map((tool) => {
  const { name, description, inputSchema, outputSchema, annotations } = describeTool(tool)
  // TypeBox makes JSON Schema; these are closed objects at the root, which is all that the protocol asks for.
  const [input, output] = [inputSchema, outputSchema] as unknown as [
    McpTool['inputSchema'],
    McpTool['outputSchema'],
  ]
  return {
    name,
    title: annotations.title,
    description,
    inputSchema: input,
    outputSchema: output,
    annotations,
  }
})

function createServer(services: Services, caller: Caller): Server {
  const server = new Server(
    { name: 'postloom', title: 'Postloom', version: '2.0.0' },
    { capabilities: { tools: {}, prompts: {}, resources: {} }, instructions: INSTRUCTIONS },
  )
  server.setRequestHandler('tools/list', () => ({ tools: [...LISTED] }))
  server.setRequestHandler('tools/call', async ({ params: { name } }, { mcpReq }) => {
    const tool = TOOLS.get(name) ?? refuseTool(name)
    return await callTool(services, caller, tool, argumentsOf(caller, { id: mcpReq.id, name }))
  })
  server.setRequestHandler('prompts/list', () => ({ prompts: PROMPTS }))
  server.setRequestHandler('prompts/get', async ({ params }) => await readPrompt(services, caller, params))
  server.setRequestHandler('resources/list', () => ({
    resources: resourcesOf(services.config.baseUrl).map(({ resource }) => resource),
  }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }))
  server.setRequestHandler('resources/read', ({ params }) => {
    const found = resourcesOf(services.config.baseUrl).find(({ resource }) => resource.uri === params.uri)
    if (!found) throw new ResourceNotFoundError(params.uri)
    const { uri, mimeType } = found.resource
    return { contents: [{ uri, mimeType, text: found.read() }] }
  })
  return server
}

function refuseTool(name: string): never {
  try {
    return unknownTool(name)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, error.message, toolFailureBody(error))
  }
}

/** The input of a call, in which `__proto__` is a key like any other and refused by its name. */
function argumentsOf({ messages }: Caller, called: { id: string | number; name: string }): unknown {
  const message = messages.find((each) => {
    const { id, params } = Object(each)
    return id === called.id && Object(params).name === called.name
  })
  return Object(Object(message).params).arguments ?? {}
}

/** A message may be as large as any tool's input; this is what its own tool takes. */
function refuseTooLarge(ctx: Context, { bodyLimit }: Tool, input: unknown): void {
  if ((ctx.request.length ?? Infinity) <= bodyLimit) return
  if (Buffer.byteLength(JSON.stringify(input)) > bodyLimit) throw tooLarge(bodyLimit)
}

/** A refusal, a challenge too, is a result that says so, as the body of the Tools API would. */
async function callTool(
  services: Services,
  { principal, ctx, idempotencyKey }: Caller,
  tool: Tool,
  input: unknown,
): Promise<CallToolResult> {
  try {
    refuseTooLarge(ctx, tool, input)
    const data = await invoke(services, principal, { tool, input, gated: true, idempotencyKey })
    return { content: [{ type: 'text', text: JSON.stringify(data) }], structuredContent: Object(data) }
  } catch (error) {
    const body = toolFailureBody(toFailure(ctx, error, services.log))
    return { content: [{ type: 'text', text: JSON.stringify(body) }], structuredContent: body, isError: true }
  }
}

/** The documents for developers, which anybody may read at the same addresses. */
function resourcesOf(baseUrl: string) {
  return [
    {
      resource: {
        uri: `${baseUrl}/`,
        name: 'start',
        title: 'Developer start',
        description: 'What the API is, and the first calls.',
        mimeType: 'text/markdown',
      },
      read: () => startDocument(baseUrl),
    },
    {
      resource: {
        uri: `${baseUrl}/openapi.json`,
        name: 'openapi',
        title: 'OpenAPI 3.1',
        description: 'Every address with its input, its answers and its refusals.',
        mimeType: 'application/json',
      },
      read: () => openApiText(baseUrl),
    },
  ]
}

const PROMPTS = SKILL_TYPES.map((type) => ({
  name: type,
  title: SKILLS[type].length === 1 ? SKILLS[type][0]?.title : 'Documentation',
  description: `How to do it, with examples: ${SKILLS[type].map(({ title }) => title).join(', ')}.`,
  ...(SKILLS[type].length > 1 && {
    arguments: [{ name: 'page', description: 'The slug of one page; without it, the list of pages.' }],
  }),
}))

async function readPrompt(
  services: Services,
  { principal, ctx }: Caller,
  { name, arguments: { page } = {} }: { name: string; arguments?: Record<string, string> },
): Promise<GetPromptResult> {
  try {
    const tool = findOperation('get_skill')
    const input = { type: name, ...(page !== undefined && { page }) }
    const { skill } = Object(await invoke(services, principal, { tool, input, gated: true }))
    return {
      description: skill.title,
      messages: [{ role: 'user', content: { type: 'text', text: skill.markdown } }],
    }
  } catch (error) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, toFailure(ctx, error, services.log).message)
  }
}
