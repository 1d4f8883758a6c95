import Type from 'typebox'
import { Compile } from 'typebox/compile'

import { closed } from '../../schema/define.ts'
import { prepared, row } from '../database.ts'
import type { Services } from '../services.ts'
import type { AdminTool } from './admin-tool.ts'
import { Failure } from './failure.ts'
import { type InputReader, readInput } from './input.ts'
import { EXAMPLES } from './openapi/examples.ts'
import { bearerToken, noteUse } from './principal.ts'
import { ADMIN_TOOLS } from './registry.ts'
import { hashToken, isWellFormedAdminKey } from './tokens.ts'
import { JSON_DEPTH } from './tool.ts'
import { crossOrganization } from './unit-of-work.ts'

const readKey = prepared(
  'read_admin_key',
  `select coalesce(last_used_at < now() - interval '1 minute', true) as "isStale" from admin_key
    where key_hash = $1 and revoked_at is null`,
)

/**
 * Throws `MISSING_TOKEN` or `UNAUTHENTICATED` unless the header has a valid admin key. Each call queries the database,
 * so a revoked key stops working at once (contract, "Authentication").
 */
export async function authenticateAdmin(
  services: Services,
  authorization: string | undefined,
): Promise<void> {
  const key = bearerToken(authorization, 'admin key', 'pladmin_…')
  if (!isWellFormedAdminKey(key)) refuseKey()
  const hash = hashToken(key)
  const found = await row<{ isStale: boolean }>(crossOrganization(services), readKey(hash))
  if (!found) refuseKey()
  if (found.isStale) noteUse(services, 'admin_key', 'key_hash', hash)
}

/** Schema of the body of a request that runs a tool. */
export const ADMIN_REQUEST = closed({
  tool: Type.String({ description: 'The name of the tool.' }),
  input: Type.Optional(Type.Object({}, { description: 'What the tool takes; nothing is the same as {}.' })),
})

/** Reads the body that names the tool; it is not a tool itself. */
const ENVELOPE: InputReader = {
  name: 'admin',
  listed: false,
  effect: 'read',
  jsonDepth: JSON_DEPTH,
  input: ADMIN_REQUEST,
  whole: ADMIN_REQUEST,
  validator: Compile(ADMIN_REQUEST),
}

/** Runs the tool that the body `{tool, input?}` names, across organizations. */
export async function invokeAdmin(
  services: Services,
  body: unknown,
): Promise<{ tool: string; data: unknown }> {
  // readInput() has validated the body against ENVELOPE.
  const { tool: name, input = {} } = readInput(ENVELOPE, body).input as { tool: string; input?: object }
  const tool = ADMIN_TOOLS.find((each) => each.name === name) ?? unknownAdminTool(name)
  const read = readInput(tool, input)
  return { tool: tool.name, data: await tool.handler(crossOrganization(services), read.input) }
}

/** Returns the description of the admin tools at `address` (contract, "Admin tools API"). */
export function describeAdminTools(address: string): Record<string, unknown> {
  return {
    usage: {
      execute: `POST ${address}`,
      body: {
        tool: 'The name of a tool; required.',
        input: 'An object as the inputSchema of the tool says; optional.',
      },
      example: ADMIN_TOOLS.map(exampleOf)[0],
    },
    total: ADMIN_TOOLS.length,
    tools: ADMIN_TOOLS.map(({ name, description, input }) => ({ name, description, inputSchema: input })),
  }
}

/** Returns an example of a body that runs this tool. */
export function exampleOf({ name }: AdminTool): { tool: string; input: unknown } {
  return { tool: name, input: EXAMPLES[name] }
}

function unknownAdminTool(name: string): never {
  const known = ADMIN_TOOLS.map((tool) => tool.name).join(', ')
  throw new Failure(
    'TOOL_NOT_FOUND',
    `There is no admin tool ${JSON.stringify(name.slice(0, 80))}; there are: ${known}.`,
  )
}

function refuseKey(): never {
  throw new Failure(
    'UNAUTHENTICATED',
    'This admin key is not valid: it is mistyped or revoked, or not an admin key at all; send one as "Authorization: Bearer pladmin_…".',
  )
}
