import { Readable } from 'node:stream'

import Router from '@koa/router'
import { toWebRequest } from '@modelcontextprotocol/node'
import {
  createMcpHandler,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type CallToolResult,
  type Tool as McpTool,
} from '@modelcontextprotocol/server'
import type { Context } from 'koa'

import { describeTool } from '../src/catalogue/describe-tool.ts'
import { Failure, FAILURES } from '../src/catalogue/failure.ts'
import { hostileFaults } from '../src/catalogue/input.ts'
import { countRequest, invoke } from '../src/catalogue/invoke.ts'
import { API_VERSION } from '../src/catalogue/openapi.ts'
import { bearerToken, type Principal } from '../src/catalogue/principal.ts'
import { LISTED_TOOLS, unknownTool } from '../src/catalogue/registry.ts'
import type { Tool } from '../src/catalogue/tool.ts'
import { recognizeClient } from '../src/public/sign-in.ts'
import type { Services } from '../src/services.ts'
import { readJson, tooLarge } from './body.ts'
import { idempotencyKeyOf, recognize, writeRate } from './doors.ts'
import { toFailure, toolFailureBody } from './errors.ts'
import { serveDocuments } from './mcp-documents.ts'
import { audienceOf, SCOPES } from './oauth-server.ts'
import { noteValidToken } from './wrong-tokens.ts'

/**
 * The data of one request: its principal, the tools open to it, and its messages as received. The raw messages are kept
 * because the protocol library's copies drop some keys.
 */
type Caller = {
  principal: Principal
  catalogue: Catalogue
  ctx: Context
  messages: readonly unknown[]
  idempotencyKey: string | undefined
}

/** The tools of one MCP address: by name, and as the protocol lists them. */
type Catalogue = { tools: ReadonlyMap<string, Tool>; listed: McpTool[]; instructions: string }

/** Authenticates a request and returns its principal and tools, or throws. */
type Admit = (ctx: Context) => Promise<Pick<Caller, 'principal' | 'catalogue'>>

/** The shape of a refusal. It is structured content too, which many clients check against the output schema. */
const REFUSAL = {
  type: 'object',
  properties: { success: { const: false }, error: { type: 'string' }, code: { type: 'string' } },
  required: ['success', 'error', 'code'],
}

const INSTRUCTIONS =
  'Email marketing and transactional email: subscribers, tags, segments, campaigns, workflows. Before a task, read its ' +
  'document with get_skill (or as a prompt). To change a workflow: get_skill with type workflow, find it, get_workflow ' +
  'immediately before editing and keep updatedAt, look up what it names (tags, senders, snippets, campaigns, fields, ' +
  'goals, groups), configure_workflow_draft once with the whole graph and expectedUpdatedAt, then read it back and look ' +
  'at each of its emails with get_campaign and render_campaign. '

const WHOLE = catalogueOf(
  LISTED_TOOLS,
  'A tool that reaches people or destroys answers with a confirmation first: tell the person what it says, and repeat ' +
    'the same arguments with the code when they agree.',
)

/** Bytes of a message for the members around the input. */
const ENVELOPE = 10_000
/** The limit for any message, by the largest limit of a tool. The limit of the tool itself is checked after reading. */
const BODY_LIMIT = Math.max(...LISTED_TOOLS.map(({ bodyLimit }) => bodyLimit)) + ENVELOPE

/**
 * The Model Context Protocol over Streamable HTTP: all tools at `/api/mcp/sse` with an API token; tools that read or
 * draft at `/mcp` with an OAuth access token of a member (contract, "MCP server"). Both addresses take protocol
 * revision 2026-07-28 and those of 2025. Requests have no session, so any process can answer them.
 */
export function mcpRoutes(services: Services): Router {
  const handler = createMcpHandler(
    // Only serve() below calls it, always with a Caller.
    ({ authInfo }) => createServer(services, authInfo?.extra as Caller),
    { onerror: (error) => services.log.warn({ err: error }, 'an MCP request was refused') },
  )
  const serve = async (ctx: Context, admit: Admit): Promise<void> => {
    refuseForeignOrigin(services, ctx)
    const { principal, catalogue } = await admit(ctx)
    if (ctx.method !== 'POST') {
      ctx.set('Allow', 'POST')
      ctx.status = 405
      return
    }
    const body = await readJson(ctx, BODY_LIMIT)
    const messages: readonly unknown[] = Array.isArray(body) ? body : [body]
    for (const message of messages) await count(services, ctx, { principal, catalogue }, message)
    const caller: Caller = {
      principal: { ...principal, actor: { ...principal.actor, isAgent: true } },
      catalogue,
      ctx,
      messages,
      idempotencyKey: idempotencyKeyOf(ctx),
    }
    await answer(
      ctx,
      // The request carries an empty body, because writing a deeply nested one fails; `parsedBody` has the real one.
      await handler.fetch(await toWebRequest(ctx.req, {}, { signal: endOf(ctx) }), {
        authInfo: { token: '', clientId: principal.actor.id, scopes: [], extra: caller },
        parsedBody: body,
      }),
    )
  }
  const router = new Router()
  router.all('/api/mcp/sse', (ctx) =>
    serve(ctx, async () => ({ principal: await recognize(services, ctx), catalogue: WHOLE })),
  )
  router.all('/mcp', (ctx) => serve(ctx, () => admitClient(services, ctx)))
  return router
}

/** Admits an OAuth client. It sees the tools whose effect is one of its scopes, so none that reaches people. */
async function admitClient(services: Services, ctx: Context): ReturnType<Admit> {
  try {
    const { principal, scopes } = await recognizeClient(
      services,
      bearerToken(ctx.get('authorization') || undefined, 'access token', '…'),
      audienceOf(services.config.baseUrl),
    )
    noteValidToken(ctx)
    return { principal, catalogue: curated(scopes) }
  } catch (error) {
    if (error instanceof Failure && FAILURES[error.code].status === 401) {
      const { baseUrl } = services.config
      const fault = error.code === 'UNAUTHENTICATED' ? 'error="invalid_token", ' : ''
      ctx.set(
        'WWW-Authenticate',
        `Bearer ${fault}resource_metadata="${baseUrl}/.well-known/oauth-protected-resource/mcp", scope="${SCOPES.join(' ')}"`,
      )
    }
    throw error
  }
}

const curatedBy = new Map<string, Catalogue>()

function curated(scopes: readonly string[]): Catalogue {
  const effects = SCOPES.filter((scope) => scopes.includes(scope))
  const key = effects.join(' ')
  const kept =
    curatedBy.get(key) ??
    catalogueOf(
      LISTED_TOOLS.filter(({ effect }) => effects.some((open) => open === effect)),
      'What sends, schedules, publishes, deletes, archives or unsubscribes is not here: leave it to the person.',
    )
  curatedBy.set(key, kept)
  return kept
}

/** Refuses requests from web pages of other sites (DNS rebinding). */
function refuseForeignOrigin({ config }: Services, ctx: Context): void {
  const origin = ctx.get('origin')
  if (origin === '' || origin === new URL(config.baseUrl).origin) return
  if (URL.canParse(origin) && ['localhost', '127.0.0.1', '[::1]'].includes(new URL(origin).hostname)) return
  throw new Failure(
    'FORBIDDEN',
    `Requests of pages at ${JSON.stringify(origin.slice(0, 100))} are refused; use a client that is not a web page, or a page of this server.`,
  )
}

/** Counts each message like a call of the Tools API; email sends are free here too. */
async function count(
  services: Services,
  ctx: Context,
  { principal, catalogue }: Pick<Caller, 'principal' | 'catalogue'>,
  message: unknown,
): Promise<void> {
  const { method, params } = Object(message)
  const tool = method === 'tools/call' ? catalogue.tools.get(Object(params).name) : undefined
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

/** Returns a signal that aborts when the client disconnects. */
function endOf(ctx: Context): AbortSignal {
  const gone = new AbortController()
  ctx.res.once('close', () => gone.abort())
  return gone.signal
}

function catalogueOf(tools: readonly Tool[], manners: string): Catalogue {
  return {
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    listed: tools.map(listTool),
    instructions: INSTRUCTIONS + manners,
  }
}

function listTool(tool: Tool): McpTool {
  const { name, description, inputSchema, outputSchema, annotations } = describeTool(tool)
  const answers = { type: 'object', anyOf: [outputSchema, REFUSAL] }
  // TypeBox schemas are JSON Schemas. These are objects at the root, which is all that the protocol requires.
  const [input, output] = [inputSchema, answers] as unknown as [
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
}

function createServer(services: Services, caller: Caller): Server {
  const { catalogue } = caller
  const server = new Server(
    { name: 'postloom', title: 'Postloom', version: API_VERSION },
    { capabilities: { tools: {}, prompts: {}, resources: {} }, instructions: catalogue.instructions },
  )
  server.setRequestHandler('tools/list', () => ({ tools: catalogue.listed }))
  server.setRequestHandler('tools/call', async ({ params: { name } }, { mcpReq }) => {
    const tool = catalogue.tools.get(name) ?? refuseTool(name)
    return await callTool(services, caller, tool, argumentsOf(caller, { id: mcpReq.id, name }))
  })
  serveDocuments(server, services, caller)
  return server
}

function refuseTool(name: string): never {
  const effect = WHOLE.tools.get(name)?.effect
  if (effect !== undefined) {
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      SCOPES.some((scope) => scope === effect)
        ? `${name} is not open with the scopes that the member gave; sign in again and ask for the scope "${effect}".`
        : `${name} is not available to clients that signed in by OAuth; call it at /api/mcp/sse, with an API token.`,
    )
  }
  try {
    return unknownTool(name)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, error.message, toolFailureBody(error))
  }
}

/**
 * Returns the input of a call from the raw message, where `__proto__` is an ordinary key, so that validation refuses
 * it.
 */
function argumentsOf({ messages }: Caller, called: { id: string | number; name: string }): unknown {
  const message = messages.find((each) => {
    const { id, params } = Object(each)
    return id === called.id && Object(params).name === called.name
  })
  return Object(Object(message).params).arguments ?? {}
}

/** Throws `TOO_LARGE` for an input larger than its tool takes, unless it is nested too deep: invoke() refuses that. */
function refuseTooLarge(ctx: Context, { bodyLimit, jsonDepth }: Tool, input: unknown): void {
  if ((ctx.request.length ?? Infinity) <= bodyLimit || hostileFaults(input, jsonDepth).length > 0) return
  if (Buffer.byteLength(JSON.stringify(input)) > bodyLimit) throw tooLarge(bodyLimit)
}

/** Runs a tool. A refusal (a challenge too) becomes a result with `isError` and the body of the Tools API. */
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
