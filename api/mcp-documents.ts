import {
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type GetPromptResult,
  type Server,
} from '@modelcontextprotocol/server'
import type { Context } from 'koa'

import { FAILURES } from '../src/catalogue/failure.ts'
import { invoke } from '../src/catalogue/invoke.ts'
import type { Principal } from '../src/catalogue/principal.ts'
import { findOperation } from '../src/catalogue/registry.ts'
import { startDocument } from '../src/public/developer-pages.ts'
import type { Services } from '../src/services.ts'
import { SKILL_TYPES, SKILLS } from '../src/skills/skills.ts'
import { openApiText } from './documentation.ts'
import { toFailure, toolFailureBody } from './errors.ts'

type Reader = { principal: Principal; ctx: Context }

/** Adds documents to an MCP server: skills as prompts, and the documents for developers as resources. */
export function serveDocuments(server: Server, services: Services, reader: Reader): void {
  server.setRequestHandler('prompts/list', () => ({ prompts: PROMPTS }))
  server.setRequestHandler('prompts/get', async ({ params }) => await readPrompt(services, reader, params))
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
}

/** Returns the documents for developers, which are public at the same addresses. */
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
  { principal, ctx }: Reader,
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
    const failure = toFailure(ctx, error, services.log)
    const code = FAILURES[failure.code].status >= 500 ? 'InternalError' : 'InvalidParams'
    throw new ProtocolError(ProtocolErrorCode[code], failure.message, toolFailureBody(failure))
  }
}
