import Type, { type TSchema } from 'typebox'

import { closed } from '../../../schema/define.ts'
import { type FailureCode, FAILURES } from '../failure.ts'
import { findOperation } from '../registry.ts'
import { adminPaths } from './admin.ts'
import { EXAMPLES } from './examples.ts'
import { IDEMPOTENCY_KEY, jsonBody, type Operation, successResponse, summaryOf } from './operations.ts'
import { codesOf, refusals } from './refusals.ts'

/** The refusals of a request with a token that runs no operation. */
const DISCOVERY: FailureCode[] = ['MISSING_TOKEN', 'UNAUTHENTICATED', 'RATE_LIMITED', 'FAULT', 'UNAVAILABLE']

const NO_TOKEN = { security: [] }

const ToolDescription = closed({
  name: Type.String(),
  description: Type.String(),
  group: Type.String(),
  inputSchema: Type.Unknown({ description: 'JSON Schema of the input.' }),
  outputSchema: Type.Unknown({ description: 'JSON Schema of `data`.' }),
  annotations: closed({
    title: Type.String(),
    readOnlyHint: Type.Boolean(),
    destructiveHint: Type.Boolean(),
    idempotentHint: Type.Boolean(),
    openWorldHint: Type.Boolean(),
  }),
  requiresConfirmation: Type.Boolean(),
})

/** Returns the operations of addresses that are neither in the REST table nor tools. */
export function fixedPaths(): Record<string, Record<string, Operation>> {
  return {
    '/api/v2/tools': { get: listTools() },
    '/api/v2/tools/{name}': { get: describeOne() },
    '/api/v2/imports/{importId}/rejected': { get: rejectedRows() },
    '/api/v1/emails': { post: sendV1() },
    '/api/v1/integrations/webhook/{slug}': { post: takeWebhook() },
    ...adminPaths(),
    '/': { get: startDocument() },
    '/docs': { get: reference() },
    '/openapi.json': { get: ownDocument() },
    '/healthz': { get: alive() },
    '/readyz': { get: ready() },
    '/metrics': { get: metrics() },
  }
}

function listTools(): Operation {
  const data = closed({ tools: Type.Array(ToolDescription), total: Type.Integer() })
  return {
    operationId: 'discover_tools',
    tags: ['Discovery'],
    summary: 'List the tools',
    description:
      'Returns all tools with the JSON Schemas of their inputs and outputs, their annotations, and whether they require a confirmation.',
    responses: { 200: successResponse(succeeded(data)), ...refusals('tools', DISCOVERY) },
  }
}

function describeOne(): Operation {
  return {
    operationId: 'describe_tool',
    tags: ['Discovery'],
    summary: 'Describe a tool',
    description: 'Returns one tool. If there is none with this name, the answer lists similar names.',
    parameters: [pathText('name', 'The name of the tool.', 'list_tags')],
    responses: {
      200: successResponse(succeeded(ToolDescription)),
      ...refusals('tools', [...DISCOVERY, 'TOOL_NOT_FOUND']),
    },
  }
}

function rejectedRows(): Operation {
  const tool = findOperation('list_rejected_rows')
  return {
    operationId: 'v2_get_imports_rejected',
    tags: ['REST v2: imports'],
    ...summaryOf(tool, false),
    description:
      'Returns the rows that an import refused, as a CSV file with the number and the error of each row.',
    parameters: [pathText('importId', 'The id of the import (`imp_…`).', EXAMPLES[tool.name]?.['importId'])],
    responses: {
      200: {
        description: 'The refused rows.',
        content: { 'text/csv': { schema: { type: 'string' } } },
      },
      ...refusals('rest', codesOf(tool, { door: 'rest', hasBody: false, isGated: false })),
    },
  }
}

function sendV1(): Operation {
  const tool = findOperation('send_transactional_email')
  const sent = closed({ success: Type.Literal(true), message: Type.String(), id: Type.String() })
  return {
    operationId: 'v1_post_emails',
    tags: ['REST v1 (frozen): emails'],
    ...summaryOf(tool, false),
    parameters: [IDEMPOTENCY_KEY],
    requestBody: jsonBody(tool.input, EXAMPLES[tool.name]),
    responses: {
      200: successResponse(sent, 'The email is stored and will be sent.'),
      ...refusals('v1', codesOf(tool, { door: 'v1', hasBody: true, isGated: false })),
    },
  }
}

function takeWebhook(): Operation {
  const header = (name: string, description: string): Operation => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
  })
  const person = Type.Object({
    subscriberId: Type.Optional(Type.String()),
    email: Type.Optional(Type.String()),
  })
  return {
    operationId: 'take_webhook',
    tags: ['Inbound webhooks'],
    summary: 'Start a workflow from outside',
    description:
      'Receives a message for an INBOUND_WEBHOOK trigger, signed according to Standard Webhooks. Publishing the workflow returns the address and its secret.',
    ...NO_TOKEN,
    parameters: [
      pathText('slug', 'The slug of the trigger (`whk_…`).'),
      header('webhook-id', 'The id of the message, the same for each repetition.'),
      header('webhook-timestamp', 'The time of sending, in seconds since 1970.'),
      header('webhook-signature', '`v1,` and the HMAC-SHA256 of id, timestamp and body in base64.'),
    ],
    requestBody: jsonBody(person),
    responses: {
      200: successResponse(succeeded(Type.Unknown())),
      ...refusals('v1', [
        'MALFORMED_BODY',
        'INVALID_INPUT',
        'UNAUTHENTICATED',
        'NOT_FOUND',
        'WRONG_STATE',
        'TOO_LARGE',
        'RATE_LIMITED',
        'FAULT',
        'UNAVAILABLE',
      ]),
    },
  }
}

function ownDocument(): Operation {
  return {
    operationId: 'openapi',
    tags: ['Discovery'],
    summary: 'This document',
    ...NO_TOKEN,
    responses: {
      200: {
        description: 'This document, OpenAPI 3.1.',
        content: { 'application/json': { schema: { type: 'object' } } },
      },
    },
  }
}

function startDocument(): Operation {
  return {
    operationId: 'start',
    tags: ['Discovery'],
    summary: 'How to begin',
    description: 'Returns the start document for developers, in Markdown or HTML.',
    ...NO_TOKEN,
    responses: {
      200: {
        description: 'The start document. Its examples contain the address of this service.',
        content: {
          'text/markdown': { schema: { type: 'string' } },
          'text/html': { schema: { type: 'string' } },
        },
      },
    },
  }
}

function reference(): Operation {
  return {
    operationId: 'reference',
    tags: ['Discovery'],
    summary: 'This document as a page',
    ...NO_TOKEN,
    responses: {
      200: { description: 'The reference.', content: { 'text/html': { schema: { type: 'string' } } } },
    },
  }
}

function alive(): Operation {
  return health('healthz', 'Whether the process answers', {
    200: plain(closed({ status: Type.Literal('ok') }), 'The process answers.'),
  })
}

function ready(): Operation {
  const reached = Type.Enum(['ok', 'unreachable'])
  const state = closed({
    status: Type.Enum(['ready', 'not ready']),
    dependencies: closed({ database: reached, temporal: reached }),
  })
  return health('readyz', 'Whether the process can serve requests', {
    200: plain(state, 'It can. Without Temporal it accepts requests, and workflows continue later.'),
    [FAILURES.UNAVAILABLE.status]: plain(state, 'It cannot reach the database.'),
  })
}

function metrics(): Operation {
  return health('metrics', 'Metrics in the Prometheus format', {
    200: {
      description: 'The metrics of this process.',
      content: { 'text/plain': { schema: { type: 'string' } } },
    },
  })
}

function health(operationId: string, summary: string, responses: Operation): Operation {
  return { operationId, tags: ['Health'], summary, ...NO_TOKEN, responses }
}

function plain(schema: TSchema, description: string): Operation {
  return { description, content: { 'application/json': { schema } } }
}

function pathText(name: string, description: string, example?: unknown): Operation {
  const schema = { type: 'string', minLength: 1 }
  return { name, in: 'path', required: true, description, schema, ...(example !== undefined && { example }) }
}

function succeeded(data: TSchema): TSchema {
  return closed({ success: Type.Literal(true), data })
}
