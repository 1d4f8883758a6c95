import Type from 'typebox'

import { closed } from '../../../schema/define.ts'
import { ADMIN_REQUEST, exampleOf } from '../admin.ts'
import type { FailureCode } from '../failure.ts'
import { ADMIN_TOOLS } from '../registry.ts'
import { jsonBody, type Operation, successResponse } from './operations.ts'
import { refusals } from './refusals.ts'

const REFUSALS: FailureCode[] = ['MISSING_TOKEN', 'UNAUTHENTICATED', 'RATE_LIMITED', 'FAULT', 'UNAVAILABLE']

const COMMON = { tags: ['Admin'], security: [{ adminKey: [] }] }

/** Returns the operations of `/api/v1/admin/tools`, which take an admin key instead of a token. */
export function adminPaths(): Record<string, Record<string, Operation>> {
  return { '/api/v1/admin/tools': { get: listTools(), post: runTool() } }
}

function listTools(): Operation {
  const tool = closed({
    name: Type.String(),
    description: Type.String(),
    inputSchema: Type.Unknown({ description: 'JSON Schema of the input.' }),
  })
  const usage = closed({
    execute: Type.String(),
    body: closed({ tool: Type.String(), input: Type.String() }),
    example: closed({ tool: Type.String(), input: Type.Unknown() }),
  })
  return {
    operationId: 'list_admin_tools',
    ...COMMON,
    summary: 'List the admin tools',
    description: 'Returns the tools that read any organization, and how to run them.',
    responses: {
      200: successResponse(
        closed({ success: Type.Literal(true), usage, total: Type.Integer(), tools: Type.Array(tool) }),
      ),
      ...refusals('admin', REFUSALS),
    },
  }
}

function runTool(): Operation {
  const ran = ADMIN_TOOLS.map(({ name, output }) =>
    closed({ success: Type.Literal(true), tool: Type.Literal(name), data: output }),
  )
  return {
    operationId: 'run_admin_tool',
    ...COMMON,
    summary: 'Run an admin tool',
    description: ADMIN_TOOLS.map(({ name, description }) => `\`${name}\`: ${description}`).join('\n\n'),
    'x-effect': 'read',
    requestBody: jsonBody(ADMIN_REQUEST, ADMIN_TOOLS.map(exampleOf)[0]),
    responses: {
      200: successResponse(Type.Union(ran)),
      ...refusals('admin', [
        ...REFUSALS,
        'INVALID_INPUT',
        'MALFORMED_BODY',
        'TOOL_NOT_FOUND',
        'TOO_LARGE',
        'UNSUPPORTED_MEDIA_TYPE',
      ]),
    },
  }
}
