import type { Context } from 'koa'

import { Failure, type Fault } from '../src/catalogue/failure.ts'
import type { RequestParts } from '../src/catalogue/input.ts'
import { type Reading, type Route, together } from '../src/catalogue/route.ts'
import type { Tool } from '../src/catalogue/tool.ts'
import type { Services } from '../src/services.ts'
import { openFile, readJson } from './body.ts'
import { type Door, runOperation } from './doors.ts'

/** REST v2 and v1 ask for no confirmation and share a rate limit window (decisions, section 2). */
export const REST_DOOR: Door = { bucket: 'rest', gated: false }

/** Runs the operation of an address with the input in the request; returns its data. */
export async function runRoute(
  services: Services,
  ctx: Context,
  tool: Tool,
  route: Pick<Route, 'file' | 'list' | 'input'>,
): Promise<unknown> {
  const { file, list, input = together } = route
  const parameters: Record<string, string> = { ...ctx['params'] }
  const query = readQuery(tool, ctx.query)
  const parts = partsOf(ctx, parameters, query, input.standsFor)
  const readInput = async (): Promise<unknown> => {
    refuseOtherEncoding(ctx)
    const body = file ? {} : await readBody(ctx, tool, list, query)
    refuseContradiction(parameters, { ...body, ...query })
    return input.read({ parameters, query, body })
  }
  const opened = file ? openFile(ctx, file, tool.bodyLimit) : undefined
  try {
    return await runOperation(services, ctx, REST_DOOR, () => tool, { readInput, parts, file: opened })
  } catch (error) {
    throw asRestFailure(error, new Set([...parts.inPath, ...Object.keys(query)]), list)
  }
}

function partsOf(
  { method }: Context,
  parameters: Record<string, string>,
  query: Record<string, unknown>,
  standsFor: Reading['standsFor'],
): RequestParts {
  const inPath = new Set(Object.keys(parameters).flatMap((name) => [name, ...(standsFor[name] ?? [])]))
  return {
    inPath,
    partOf(path) {
      const member = memberOf(path)
      if (inPath.has(member)) return 'The path'
      return method === 'GET' || method === 'HEAD' || Object.hasOwn(query, member) ? 'The query' : 'The body'
    },
  }
}

/** Returns the first name of a path. */
function memberOf(path: string): string {
  return path.split(/[.[]/, 1)[0] ?? ''
}

async function readBody(
  ctx: Context,
  tool: Tool,
  list: string | undefined,
  query: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return {}
  const [misplaced] = Object.keys(query)
  // Many clients send no body with a DELETE.
  if (misplaced !== undefined && ctx.method !== 'DELETE') refuseQuery(misplaced)
  const body = await readJson(ctx, tool.bodyLimit)
  if (list !== undefined) return { [list]: body }
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return { ...body }
  throw new Failure('MALFORMED_BODY', 'The body must be a JSON object; send {} when there is nothing to say.')
}

/** Refuses a member that names another record than the path does. */
function refuseContradiction(parameters: Record<string, string>, members: Record<string, unknown>): void {
  const path = Object.keys(parameters).find(
    (name) => Object.hasOwn(members, name) && members[name] !== parameters[name],
  )
  if (path !== undefined) refuseParameter(path, 'is not the one in the path; leave it out')
}

function refuseQuery(path: string): never {
  refuseParameter(path, 'is in the query, which is not read here; put it into the JSON body')
}

/** Refuses a query in another encoding than UTF-8, whose letters were replaced when it was decoded. */
function refuseOtherEncoding({ query, querystring }: Context): void {
  const [wrong] =
    Object.entries(query).find(([name, value]) => `${name}${String(value)}`.includes('\uFFFD')) ?? []
  if (wrong === undefined || /%ef%bf%bd/i.test(querystring)) return
  refuseParameter(wrong, 'is not percent-encoded UTF-8; encode it so, such as %C3%A9 for "é"')
}

function refuseParameter(path: string, message: string): never {
  throw new Failure('INVALID_PARAMETER', `${JSON.stringify(path)} ${message}.`, {
    details: [{ path, message }],
  })
}

/**
 * Reads the query, where every value is text, by the types of the schema: numbers, booleans, lists (comma-separated or
 * JSON) and objects (JSON).
 */
function readQuery(tool: Tool, query: Context['query']): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => [name, readValue(tool.input.properties[name], value)]),
  )
}

function readValue(schema: object | undefined, value: unknown): unknown {
  if (typeof value !== 'string' || !schema) return value
  switch (Reflect.get(schema, 'type')) {
    case 'integer':
    case 'number':
      return /^-?\d+(?:\.\d+)?$/.test(value) ? Number(value) : value
    case 'boolean':
      return value === 'true' || (value === 'false' ? false : value)
    case 'array':
      return readList(value)
    case 'object':
      return readObject(value)
    default:
      return value
  }
}

function readList(value: string): unknown[] {
  const found = value.startsWith('[') ? readObject(value) : undefined
  return Array.isArray(found) ? found : value.split(',')
}

/** Parses JSON; other text stays text, which validation refuses with the name of the field. */
function readObject(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

/**
 * Converts a failure for REST: a fault in the path or the query becomes `INVALID_PARAMETER` (decisions, section 9), and
 * for a body that is a list, paths do not begin with the name of the list.
 */
function asRestFailure(error: unknown, inAddress: ReadonlySet<string>, list: string | undefined): unknown {
  if (!(error instanceof Failure)) return error
  if (list !== undefined) return withoutName(error, list)
  if (!Array.isArray(error.details)) return error
  const found: Fault[] = error.details
  const isInAddress = found.some(({ path }) => inAddress.has(path) || inAddress.has(memberOf(path)))
  if (error.code !== 'INVALID_INPUT' || !isInAddress) return error
  return new Failure('INVALID_PARAMETER', error.message, { details: found, cause: error })
}

function withoutName(cause: Failure, list: string): Failure {
  const { code, message, details, retryAfter } = cause
  const sentence = message.replaceAll(`${list}[`, '[').replace(` at ${list}:`, ':')
  const faults: unknown = Array.isArray(details)
    ? details.map(({ path, ...fault }: Fault) => ({
        path: path.startsWith(list) ? path.slice(list.length) : path,
        ...fault,
      }))
    : details
  return new Failure(code, sentence, {
    details: faults,
    cause,
    ...(retryAfter !== undefined && { retryAfter }),
  })
}
