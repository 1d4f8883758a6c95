import Type, { type TObject, type TSchema } from 'typebox'

import { describeTool } from '../describe-tool.ts'
import { findOperation } from '../registry.ts'
import { bare, type Route, statusesOf, v1Reply } from '../route.ts'
import { JSON_DEPTH, type Tool } from '../tool.ts'
import { EXAMPLE_FILES, EXAMPLES } from './examples.ts'
import { codesOf, type Door, refusals } from './refusals.ts'

export type Operation = Record<string, unknown>

const RATE_HEADERS = {
  'ratelimit-limit': { $ref: '#/components/headers/RateLimit' },
  'ratelimit-remaining': { $ref: '#/components/headers/RateRemaining' },
  'ratelimit-reset': { $ref: '#/components/headers/RateReset' },
  'x-request-id': { $ref: '#/components/headers/RequestId' },
}

/** Describes `POST /api/v2/tools/{name}`. */
export function toolOperation(tool: Tool): Operation {
  const { inputSchema, requiresConfirmation } = describeTool(tool)
  return {
    operationId: tool.name,
    tags: [`Tools: ${tool.group}`],
    ...summaryOf(tool, requiresConfirmation),
    ...(tool.effect !== 'read' && { parameters: [IDEMPOTENCY_KEY] }),
    requestBody: jsonBody(inputSchema, EXAMPLES[tool.name]),
    responses: {
      200: successResponse(
        Type.Object({ success: Type.Literal(true), data: tool.output }, { additionalProperties: false }),
      ),
      ...refusals('tools', codesOf(tool, { door: 'tools', hasBody: true, isGated: requiresConfirmation })),
    },
  }
}

/** Describes one address of REST, in the shape of v2 or v1. */
export function routeOperation(route: Route, version: 'v2' | 'v1'): Operation {
  const name = version === 'v1' ? (route.v1?.operation ?? route.operation) : route.operation
  const tool = findOperation(name)
  const reply = version === 'v1' ? v1Reply(route) : (route.reply ?? bare)
  const door: Door = version === 'v1' ? 'v1' : 'rest'
  const { parameters, body } = requestOf(route, tool)
  const success = successResponse(reply.schema(tool.output))
  return {
    operationId: `${version}_${route.method}_${route.path.replaceAll(/[^a-zA-Z]+/g, '_').slice(1)}`,
    tags: [`${version === 'v1' ? 'REST v1 (frozen)' : 'REST v2'}: ${route.path.split('/')[1] ?? ''}`],
    ...summaryOf(tool, false),
    parameters: tool.effect === 'read' ? parameters : [...parameters, IDEMPOTENCY_KEY],
    ...(body && { requestBody: body }),
    responses: {
      ...Object.fromEntries(statusesOf(route).map((status) => [status, success])),
      ...refusals(door, codesOf(tool, { door, hasBody: body !== undefined, isGated: false })),
    },
  }
}

/** Describes a success with this JSON body. */
export function successResponse(schema: TSchema, description = 'Done.'): Operation {
  return { description, headers: RATE_HEADERS, content: { 'application/json': { schema } } }
}

/** Describes a JSON body with an example. The body is optional if `{}` is valid, because no body means `{}`. */
export function jsonBody(schema: TSchema, example?: unknown): Operation {
  const { type, required = [] } = Object(schema)
  return {
    required: type !== 'object' || required.length > 0,
    content: { 'application/json': { schema, ...(example !== undefined && { example }) } },
  }
}

/** The parameter of every operation that changes something. */
export const IDEMPOTENCY_KEY = { $ref: '#/components/parameters/IdempotencyKey' }

/** Returns the summary and description of an operation: permission, confirmation and unusual limits included. */
export function summaryOf(tool: Tool, asksConfirmation: boolean): Operation {
  const { title, description, permission, effect, bodyLimit, jsonDepth } = tool
  const facts = [
    permission === null
      ? 'Requires a token with any permissions.'
      : `Requires the permission \`${permission}\`.`,
    ...(asksConfirmation ? ['The first call answers 428 with a confirmation code.'] : []),
    ...(jsonDepth > JSON_DEPTH
      ? [`The body has at most ${bodyLimit} bytes and ${jsonDepth} levels of nesting.`]
      : []),
  ]
  return { summary: title, description: `${description}\n\n${facts.join(' ')}`, 'x-effect': effect }
}

type Request = { parameters: Operation[]; body?: Operation }

/** Describes where a request carries the members of the input: path, query or body (as api/run-route.ts reads them). */
function requestOf(route: Route, tool: Tool): Request {
  const inPath = Array.from(route.path.matchAll(/:(\w+)/g), ([, name = '']) => name)
  const stands = inPath.flatMap((name) => route.input?.standsFor[name] ?? [name])
  const rest = Object.entries(tool.input.properties).filter(([name]) => !stands.includes(name))
  const parameters = inPath.map((name) => pathParameter(name, tool, route.input?.standsFor[name]))
  const required = new Set(tool.input.required)
  if (route.method === 'get' || route.file !== undefined) {
    const query = rest.map(([name, schema]) => queryParameter(name, schema, required.has(name)))
    const file = route.file === undefined ? {} : { body: fileBody(route.file, EXAMPLE_FILES[tool.name]) }
    return { parameters: [...parameters, ...query], ...file }
  }
  if (route.list !== undefined) {
    const items = rest.find(([name]) => name === route.list)?.[1]
    const example = Object(EXAMPLES[tool.name])[route.list]
    return { parameters, ...(items && { body: jsonBody(items, example) }) }
  }
  if (route.method === 'delete' && rest.length === 0) return { parameters }
  return { parameters, body: jsonBody(bodyOf(tool.input, rest), exampleOf(tool, rest)) }
}

function bodyOf(input: TObject, members: readonly (readonly [string, TSchema])[]): TSchema {
  return Type.Object(Object.fromEntries(members), { ...optionsOf(input), additionalProperties: false })
}

function optionsOf({ description }: TObject & { description?: string }): { description?: string } {
  return description === undefined ? {} : { description }
}

function exampleOf(
  { name: operation }: Tool,
  members: readonly (readonly [string, TSchema])[],
): Record<string, unknown> | undefined {
  const example = EXAMPLES[operation]
  if (!example) return undefined
  const names = new Set(members.map(([name]) => name))
  return Object.fromEntries(Object.entries(example).filter(([name]) => names.has(name)))
}

function pathParameter(
  name: string,
  { input, name: operation }: Tool,
  standsFor: readonly string[] = [name],
): Operation {
  const { description } = Object(input.properties[name])
  const example: unknown = standsFor
    .map((member) => EXAMPLES[operation]?.[member])
    .find((value) => value !== undefined)
  return {
    name,
    in: 'path',
    required: true,
    description: description ?? `The ${name}: its ${standsFor.join(' or ')}.`,
    schema: { type: 'string', minLength: 1 },
    ...(example !== undefined && { example }),
  }
}

/** Describes a query parameter: lists are separated by commas, objects are JSON (as api/run-route.ts reads them). */
function queryParameter(name: string, schema: TSchema, required: boolean): Operation {
  const { type, description } = Object(schema)
  const common = { name, in: 'query', required, ...(description && { description }) }
  if (type === 'object') return { ...common, content: { 'application/json': { schema } } }
  return { ...common, schema, ...(type === 'array' && { style: 'form', explode: false }) }
}

function fileBody(type: string, example: string | undefined): Operation {
  return { required: true, content: { [type]: { schema: { type: 'string' }, example } } }
}
