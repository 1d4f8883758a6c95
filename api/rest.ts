import Router from '@koa/router'
import type { Context } from 'koa'

import { Failure, type Fault } from '../src/catalogue/failure.ts'
import { findOperation } from '../src/catalogue/registry.ts'
import type { Tool } from '../src/catalogue/tool.ts'
import type { Services } from '../src/services.ts'
import { openFile, readJson } from './body.ts'
import { type Door, runOperation } from './doors.ts'
import { sendRejected } from './imports.ts'

/** The parts of a request that can hold input, each by name. */
type Parts = Record<'parameters' | 'query' | 'body', Record<string, unknown>>

/** One address of REST v2 and the operation behind it. */
type Row = {
  method: 'get' | 'post' | 'patch' | 'delete'
  path: string
  operation: string
  /** The body is a file of this type. */
  file?: string
  /** The operation's input; all parts together unless it needs another shape. */
  input?: (parts: Parts) => Record<string, unknown>
  /** 200 unless said otherwise. */
  status?: number
  /** The body of the answer; the operation's data unless said otherwise. */
  reply?: (data: unknown) => unknown
}

const REST_DOOR: Door = { bucket: 'rest', gated: false }

const ROWS: readonly Row[] = [
  {
    method: 'delete',
    path: '/subscribers/:subscriber',
    operation: 'erase_subscriber',
    reply: (data) => ({ object: 'subscriber', ...Object(data), deleted: true }),
  },
  { method: 'get', path: '/subscribers/:subscriber/export', operation: 'export_subscriber' },
  {
    method: 'post',
    path: '/imports',
    operation: 'create_import',
    file: 'text/csv',
    status: 202,
    reply: resource('import'),
  },
  { method: 'get', path: '/tokens/current', operation: 'get_current_token', reply: resource('token') },
  { method: 'get', path: '/imports', operation: 'list_imports', reply: list('imports') },
  { method: 'get', path: '/domains', operation: 'list_domains', reply: list('domains') },
  {
    method: 'post',
    path: '/domains',
    operation: 'create_domain',
    status: 201,
    reply: resource('domain'),
  },
  { method: 'get', path: '/domains/:domain', operation: 'get_domain', reply: resource('domain') },
  {
    method: 'post',
    path: '/domains/:domain/verify',
    operation: 'verify_domain',
    reply: resource('domain'),
  },
  { method: 'get', path: '/imports/:importId', operation: 'get_import', reply: resource('import') },
  { method: 'delete', path: '/imports/:importId', operation: 'cancel_import', reply: resource('import') },
]

/** One resource stands bare in an answer. */
function resource(key: string): NonNullable<Row['reply']> {
  return (data) => Object(data)[key]
}

/** The list shape of REST v2 (contract, "REST v2 resource endpoints"). */
function list(key: string): NonNullable<Row['reply']> {
  return (data) => {
    const { [key]: records, hasMore = false } = Object(data)
    return { object: 'list', data: records, has_more: hasMore }
  }
}

/** `/api/v2`: resources by address, without an envelope and without challenges (contract, "REST v2 resource endpoints"). */
export function restRoutes(services: Services): Router {
  const router = new Router({ prefix: '/api/v2' })
  for (const row of ROWS) {
    const tool = findOperation(row.operation)
    router[row.method](row.path, async (ctx) => {
      const data = await runRow(services, ctx, tool, row)
      ctx.status = row.status ?? 200
      ctx.body = row.reply ? row.reply(data) : data
    })
  }
  router.get('/imports/:importId/rejected', (ctx) => sendRejected(services, ctx))
  return router
}

/** What stands in the address wins over the body. */
function together({ parameters, query, body }: Parts): Record<string, unknown> {
  return { ...body, ...query, ...parameters }
}

async function runRow(
  services: Services,
  ctx: Context,
  tool: Tool,
  { file, input = together }: Row,
): Promise<unknown> {
  const parameters: Record<string, string> = ctx['params']
  const query = readQuery(tool, ctx.query)
  try {
    return await runOperation(
      services,
      ctx,
      REST_DOOR,
      () => tool,
      async () => input({ parameters, query, body: file ? {} : await readBody(ctx, tool) }),
      file ? openFile(ctx, file, tool.bodyLimit) : undefined,
    )
  } catch (error) {
    throw nameParameter(error, new Set(Object.keys({ ...parameters, ...query })))
  }
}

async function readBody(ctx: Context, tool: Tool): Promise<Record<string, unknown>> {
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return {}
  const body = await readJson(ctx, tool.bodyLimit)
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return { ...body }
  throw new Failure('MALFORMED_BODY', 'The body must be a JSON object; send {} when there is nothing to say.')
}

/** A query is all text; numbers, yes or no, lists (by commas) and JSON are read where expected. */
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
      return value.split(',')
    case 'object':
      return readObject(value)
    default:
      return value
  }
}

/** What is no JSON stays text, which the operation refuses by its name. */
function readObject(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

/** REST tells a bad value in the address from one in the body (decisions, section 9). */
function nameParameter(error: unknown, names: ReadonlySet<string>): unknown {
  if (!(error instanceof Failure) || error.code !== 'INVALID_INPUT' || !Array.isArray(error.details)) {
    return error
  }
  const faults: Fault[] = error.details
  const isInAddress = faults.some(({ path }) => names.has(path.split(/[.[]/, 1)[0] ?? ''))
  return isInAddress
    ? new Failure('INVALID_PARAMETER', error.message, { details: faults, cause: error })
    : error
}
