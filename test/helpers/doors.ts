import Type, { type TSchema } from 'typebox'

import { ROUTES } from '../../api/routes.ts'
import { closed } from '../../schema/define.ts'
import { Postloom } from '../../sdk/src/index.ts'
import { Failure, type FailureCode, FAILURES, type Fault, toolCode } from '../../src/catalogue/failure.ts'
import { readInput } from '../../src/catalogue/input.ts'
import { findOperation } from '../../src/catalogue/registry.ts'
import { bare, type Reply, type Route, v1Reply } from '../../src/catalogue/route.ts'
import type { Tool } from '../../src/catalogue/tool.ts'
import { newId } from '../../src/ids.ts'
import type { Answer, TestApi, TestOrganization } from './api.ts'
import { type Ran, runHere } from './cli.ts'
import { connectClient, makeMember } from './oauth.ts'

/** A call of an operation, in a form that every interface ("door") supports. */
export type Asked = {
  token: string
  operation: string
  input: Readonly<Record<string, unknown>>
  headers?: Record<string, string>
}

/** The answer of a door: its status, and the body without the envelope of the protocol. */
export type Said = { status: number; body: unknown }

/** One interface through which operations can be called. */
export type Door = {
  name: string
  /** Whether operations with effect `impact` ask for a confirmation here. */
  gated: boolean
  /** Whether this door accepts the API token. Without this method, all tokens are accepted. */
  admits?(token: string): boolean
  /** Whether the door offers the operation. */
  has(tool: Tool): boolean
  /** Whether the door offers the operation and can express this input. */
  takes(tool: Tool, input: Asked['input']): boolean
  call(api: TestApi, asked: Asked): Promise<Said>
  /** Returns the expected body when the core returns `data`. */
  giving(tool: Tool, data: unknown): unknown
  /** Returns the schema of a successful answer. */
  schema(tool: Tool): TSchema
  refusing(failure: Failure, asked: Asked): Said
  /** Returns the expected answer when the request is refused before the operation is known. */
  refusingUnread(failure: Failure, asked: Asked): Said
  /**
   * Sends a raw request to the address of `add_subscriber`; it may be malformed. Absent where only calls can be made.
   */
  post?: (api: TestApi, sent: Sent) => Promise<Said & { retryAfter: string | null }>
}

/** A request to `add_subscriber`: `input` in the format of the door, or `raw` as the exact body. */
export type Sent = { token?: string; input?: object; raw?: string; headers?: Record<string, string> }

type Post = NonNullable<Door['post']>

/** Returns a `post` for an address. `wrap` makes a message from an input; `open` takes the content out of an answer. */
function postTo(
  address: string,
  { wrap, open }: { wrap: (input: object) => object; open: (body: Answer['body']) => unknown },
): Post {
  return async (api, { token, input = {}, raw = JSON.stringify(wrap(input)), headers }) => {
    const answer = await api.request('POST', address, {
      ...(token !== undefined && { token }),
      raw,
      headers: { accept: 'application/json, text/event-stream', ...headers },
    })
    return {
      status: answer.status,
      body: open(answer.body),
      retryAfter: answer.headers.get('retry-after'),
    }
  }
}

const AS_IT_IS = { wrap: (input: object) => input, open: (body: unknown) => body }

/** `POST /api/v2/tools/{name}`. */
export const TOOLS_DOOR: Door & { post: Post } = {
  name: 'Tools API',
  gated: true,
  has: (tool) => tool.listed,
  takes: (tool) => tool.listed,
  async call(api, { operation, input, token, headers }) {
    const path = `/api/v2/tools/${operation}`
    return said(await api.request('POST', path, { token, body: input, ...(headers && { headers }) }))
  },
  giving: (_tool, data) => ({ success: true, data }),
  schema: ({ output }) => closed({ success: Type.Literal(true), data: output }),
  refusing: refusingByStatus,
  refusingUnread: refusingByStatus,
  post: postTo('/api/v2/tools/add_subscriber', AS_IT_IS),
}

/** The REST routes of one version. */
function restDoor(version: 'v1' | 'v2'): Door {
  const refusing: Door['refusing'] = (failure, { operation, input }) => {
    const tool = findOperation(operation)
    const route = routeOf(version, tool)
    const [name, statusCode] = FAILURES[codeInAddress(failure, route, input)].rest
    const worded = wordedInParts(failure, route, tool, input)
    const { message, details } = worded
    const body =
      version === 'v1'
        ? { success: false, message: sentence(worded) }
        : { name, message, statusCode, ...(details !== undefined && { details }) }
    return { status: statusCode, body }
  }
  return {
    name: `REST ${version}`,
    gated: false,
    has: (tool) => routeOf(version, tool) !== undefined,
    takes(tool, input) {
      const route = routeOf(version, tool)
      return route !== undefined && isSayable(route, tool, input)
    },
    async call(api, { operation, input, token, headers }) {
      const route = routeOf(version, findOperation(operation))
      if (!route) throw new Error(`${operation} has no address in ${version}`)
      const { path, body } = placed(route, input)
      return said(
        await api.request(route.method.toUpperCase(), `/api/${version}${path}`, {
          token,
          ...(route.method !== 'get' && { body }),
          ...(headers && { headers }),
        }),
      )
    },
    giving(tool, data) {
      const route = routeOf(version, tool)
      return route && replyOf(version, route).body(data)
    },
    schema(tool) {
      const route = routeOf(version, tool)
      if (!route) return tool.output
      return route === SEND ? SENT : replyOf(version, route).schema(tool.output)
    },
    refusing,
    refusingUnread: refusing,
    post: postTo(`/api/${version}/subscribers`, AS_IT_IS),
  }
}

/** MCP at `address`, with raw protocol messages. `isThere` says which tools it offers. */
const mcpDoor = (name: string, address: string, isThere: (tool: Tool) => boolean): Door & { post: Post } => ({
  name,
  gated: true,
  has: (tool) => tool.listed && isThere(tool),
  takes: (tool) => tool.listed && isThere(tool),
  async call(api, { operation, input, token, headers }) {
    const { status, body } = await api.request('POST', address, {
      token,
      body: callOf(operation, input),
      headers: { accept: 'application/json, text/event-stream', ...headers },
    })
    return { status, body: contentOf(readMessage(body)) }
  },
  giving: (_tool, data) => data,
  schema: ({ output }) => output,
  // A tool's refusal is a result; a malformed call is a protocol error with the same content.
  refusing: (failure) => ({ status: 200, body: toolBody(failure) }),
  refusingUnread: refusingByStatus,
  post: postTo(address, {
    wrap: (input) => callOf('add_subscriber', input),
    open: (body) => contentOf(readMessage(body)),
  }),
})

/** MCP with an API token. */
export const MCP_DOOR: Door = mcpDoor('token MCP', '/api/mcp/sse', () => true)

/** The SDK, which returns errors instead of throwing them. */
export const SDK_DOOR: Door = {
  name: 'SDK',
  gated: true,
  has: (tool) => tool.listed,
  takes: (tool) => tool.listed,
  async call(api, { operation, input, token }) {
    const { data, error } = await new Postloom(token, { baseUrl: api.url, timeout: 600_000 }).catalogue.run(
      operation,
      input,
    )
    if (error === null) return { status: 200, body: data }
    const { name, message, details, challenge } = error
    return { status: error.statusCode ?? 0, body: { name, message, details, challenge } }
  },
  giving: (_tool, data) => data,
  schema: ({ output }) => output,
  refusing: refusingAsError,
  refusingUnread: refusingAsError,
}

/** Runs a command against the service with `--json`. */
export async function runCommand(api: TestApi, token: string, parameters: readonly string[]): Promise<Ran> {
  const settings = { POSTLOOM_BASE_URL: api.url, POSTLOOM_API_KEY: token }
  return await runHere([...parameters, '--json'], settings)
}

/** `postloom run`. It exits with 1 when the service refuses, and with 2 without a confirmation. */
export const CLI_DOOR: Door = {
  name: 'command line',
  gated: true,
  has: (tool) => tool.listed,
  takes: (tool) => tool.listed,
  async call(api, { operation, input, token }) {
    const { code: exitCode, json } = await runCommand(api, token, [
      'run',
      operation,
      '--input',
      JSON.stringify(input),
    ])
    if (exitCode === 0) return { status: 200, body: json }
    const { status = 0, ...error } = json.error
    return { status, body: { exitCode, ...error } }
  },
  giving: (_tool, data) => data,
  schema: ({ output }) => output,
  refusing: refusingAsCommand,
  refusingUnread: refusingAsCommand,
}

/** OAuth access tokens, by the API token of their organization. */
const given = new Map<string, string>()

/** Connects an OAuth client to an organization, so that OAUTH_DOOR accepts the organization's API token. */
export async function letIn(api: TestApi, organization: TestOrganization): Promise<void> {
  const member = await makeMember(api, `${newId()}@member.example`, organization)
  given.set(organization.token, (await connectClient(api, member, organization)).access)
}

/** Returns the access token that replaces an API token. */
export function accessTokenOf(token: string): string {
  return given.get(token) ?? token
}

const isReadOrDraft = ({ effect }: Tool) => effect === 'read' || effect === 'draft'
const behindOAuth = mcpDoor('OAuth MCP', '/mcp', isReadOrDraft)

/** MCP for a client that a member has approved. Answers to other tokens are tested in oauth.test.ts. */
export const OAUTH_DOOR: Door = {
  ...behindOAuth,
  post: (api, sent) =>
    behindOAuth.post(api, { ...sent, ...(sent.token !== undefined && { token: accessTokenOf(sent.token) }) }),
  admits: (token) => given.has(token),
  call: (api, asked) => behindOAuth.call(api, { ...asked, token: accessTokenOf(asked.token) }),
}

/** The doors of the service itself. Add new ones here. */
export const SERVED_DOORS: readonly Door[] = [
  TOOLS_DOOR,
  restDoor('v2'),
  restDoor('v1'),
  MCP_DOOR,
  OAUTH_DOOR,
]

/** All doors, including those in the SDK and the command line. */
export const DOORS: readonly Door[] = [...SERVED_DOORS, SDK_DOOR, CLI_DOOR]

function said({ status, body }: Answer): Said {
  return { status, body }
}

/** Returns a refusal in the format of the Tools API, which several doors use. */
function toolBody({ code, message, details, body }: Failure): object {
  return {
    success: false,
    error: message,
    code: toolCode(code),
    ...(details !== undefined && { details }),
    ...body,
  }
}

function refusingByStatus(failure: Failure): Said {
  return { status: FAILURES[failure.code].status, body: toolBody(failure) }
}

function refusingAsError({ code, message, details, body }: Failure): Said {
  const challenge = code === 'CONFIRMATION_REQUIRED' ? body : undefined
  return { status: FAILURES[code].status, body: { name: toolCode(code), message, details, challenge } }
}

function refusingAsCommand({ code, message, details, body }: Failure): Said {
  if (code !== 'CONFIRMATION_REQUIRED') {
    return { status: FAILURES[code].status, body: { exitCode: 1, code: toolCode(code), message, details } }
  }
  // The command asks for the confirmation itself and does not report the status of the service.
  const { summary } = Object(body)
  const unconfirmed = `${summary.action} needs a confirmation: repeat the command with --confirm. Nothing was done.`
  return { status: 0, body: { exitCode: 2, code: 'NOT_CONFIRMED', message: unconfirmed, summary } }
}

function callOf(name: string, input: object): object {
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: input } }
}

function contentOf({ error, result }: Answer['body']): unknown {
  return error ? error.data : result.structuredContent
}

/** Parses a protocol message, which is the whole body or the only event of a stream. */
export function readMessage(body: Answer['body']): Answer['body'] {
  if (typeof body !== 'string') return body
  const data = /^data: ([^\n]+)$/m.exec(body)?.[1]
  if (data === undefined) throw new Error(`no message: ${body}`)
  return JSON.parse(data)
}

/** Returns the message of v1, which has no details and therefore lists all faults. */
function sentence({ message, details }: Failure): string {
  if (!Array.isArray(details) || details.length < 2) return message
  return details.map((fault: Fault) => `${fault.path}: ${fault.message}`).join('; ')
}

/** REST answers INVALID_PARAMETER, not INVALID_INPUT, for a fault in the path or query. */
function codeInAddress({ code, details }: Failure, route: Route | undefined, input: object): FailureCode {
  if (code !== 'INVALID_INPUT' || !route || !Array.isArray(details)) return code
  const names = route.method === 'get' ? Object.keys(input) : parametersOf(route)
  const isThere = details.some((fault: Fault) => names.includes(fault.path.split(/[.[]/, 1)[0] ?? ''))
  return isThere ? 'INVALID_PARAMETER' : code
}

/** REST names the part of the request that has a fault, and suggests no member that the path provides. */
function wordedInParts(failure: Failure, route: Route | undefined, tool: Tool, input: object): Failure {
  if (!route || (failure.code !== 'INVALID_INPUT' && failure.code !== 'MISSING_FIELD')) return failure
  const places = parametersOf(route)
  const inPath = new Set(places.flatMap((place) => [place, ...(route.input?.standsFor[place] ?? [])]))
  const other = route.method === 'get' ? 'The query' : 'The body'
  const partOf = (path: string) => (inPath.has(path.split(/[.[]/, 1)[0] ?? '') ? 'The path' : other)
  try {
    readInput(tool, input, { inPath, partOf })
    return failure
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

/** The frozen v1 operation that sends an email; ROUTES does not contain it. */
const SENT = closed({ success: Type.Literal(true), message: Type.String(), id: Type.String() })
const SEND: Route = { method: 'post', path: '/emails', operation: 'send_transactional_email', v1: {} }

function routeOf(version: 'v1' | 'v2', tool: Tool): Route | undefined {
  return [...ROUTES, ...(version === 'v1' ? [SEND] : [])].find(({ operation, v1, file, list }) => {
    // The body of these routes is a file or a list, not an object of members.
    if (file !== undefined || list !== undefined) return false
    return version === 'v2' ? operation === tool.name : v1 && (v1.operation ?? operation) === tool.name
  })
}

function replyOf(version: 'v1' | 'v2', route: Route): Reply {
  return version === 'v1' ? v1Reply(route) : (route.reply ?? bare)
}

/** Returns the names of the path parameters. */
function parametersOf({ path }: Route): string[] {
  return Array.from(path.matchAll(/:(\w+)/g), ([, name = '']) => name)
}

/**
 * Returns the input member for a path parameter. Where an id or an email is possible, it is the one that is given;
 * undefined if none or both are.
 */
function memberAt(route: Route, place: string, input: Asked['input']): string | undefined {
  const names = route.input?.standsFor[place] ?? [place]
  const there = names.filter((name) => name in input)
  return there.length === 1 ? there[0] : undefined
}

/** Returns whether an input can be expressed: path and query can only carry text. */
function isSayable(route: Route, tool: Tool, input: Asked['input']): boolean {
  const inPath = parametersOf(route).map((place) => memberAt(route, place, input))
  if (!inPath.every((name) => name !== undefined && isWord(input[name], route, name))) return false
  if (route.method !== 'get') return true
  return Object.entries(input).every(([name, value]) => {
    if (inPath.includes(name)) return true
    const type: unknown = Reflect.get(tool.input.properties[name] ?? {}, 'type')
    if (typeof value === 'string') return type !== 'array' && type !== 'object'
    return typeof value === type || (typeof value === 'number' && type === 'integer')
  })
}

/**
 * Returns whether a value can be a path parameter: it needs non-empty text, and `@` distinguishes an email from an id.
 */
function isWord(value: unknown, { input }: Route, name: string): boolean {
  if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value) || /^\.+$/.test(value)) return false
  return input === undefined || value.includes('@') === (name === 'email')
}

function placed(route: Route, input: Asked['input']): { path: string; body: object } {
  const rest: Record<string, unknown> = { ...input }
  const path = route.path.replaceAll(/:(\w+)/g, (_, place: string) => {
    const name = memberAt(route, place, input) ?? place
    delete rest[name]
    return encodeURIComponent(String(input[name]))
  })
  if (route.method !== 'get') return { path, body: rest }
  const query = new URLSearchParams(
    Object.entries(rest).map(([name, value]): [string, string] => [name, String(value)]),
  )
  return { path: `${path}?${query.toString()}`, body: {} }
}
