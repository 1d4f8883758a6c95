import { fixedPaths } from './openapi/fixed.ts'
import { LANGUAGE, withLanguage } from './openapi/language.ts'
import { liftShared } from './openapi/lift.ts'
import { type Operation, routeOperation, toolOperation } from './openapi/operations.ts'
import { refusalComponents } from './openapi/refusals.ts'
import { LISTED_TOOLS } from './registry.ts'
import type { Route } from './route.ts'

type Paths = Record<string, Record<string, Operation>>

/** The version of the API: of its tools and of REST v2. */
export const API_VERSION = '2.0.0'

const ABOUT = `Email marketing and transactional email that you run yourself.

The **tools** (\`/api/v2/tools\`) cover all functions, with one address for each. **REST v2** covers the common resources.
**REST v1** is frozen.

Send an API token with each request: \`Authorization: Bearer pl_…\`. Requests that change something accept an
\`Idempotency-Key\`, so that they can be repeated safely. Ids consist of a prefix and 26 letters or digits; times are
ISO 8601 in UTC.

Two interfaces have protocols of their own and are not described here. AI agents use the same tools over MCP: at
\`/api/mcp/sse\` with an API token, or at \`/mcp\` as a member who signed in by OAuth 2.1
([metadata](/.well-known/oauth-authorization-server/mcp)). \`get_skill\` with \`{"type": "docs", "page": "mcp"}\` describes
both.`

/** Returns the OpenAPI 3.1 document of a service at `baseUrl`, with all its addresses. */
export function describeService(baseUrl: string, routes: readonly Route[]): Record<string, unknown> {
  const { document, schemas } = liftShared(
    {
      paths: withLanguage(allPaths(routes)),
      components: { responses: refusalComponents(), headers: HEADERS, parameters: PARAMETERS },
      language: LANGUAGE,
    },
    new Set(Object.keys(LANGUAGE)),
  )
  const paths = Object(document['paths'])
  return {
    openapi: '3.1.0',
    info: { title: 'Postloom', version: API_VERSION, description: ABOUT },
    servers: [{ url: baseUrl }],
    security: [{ token: [] }],
    tags: tagsOf(paths).map((name) => ({ name })),
    paths,
    components: {
      ...Object(document['components']),
      schemas: { ...schemas, ...Object(document['language']) },
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'An API token of your organization, `pl_…`.' },
        adminKey: {
          type: 'http',
          scheme: 'bearer',
          description: 'An admin key of the installation, `pladmin_…`.',
        },
      },
    },
  }
}

function allPaths(routes: readonly Route[]): Paths {
  const paths: Paths = {}
  const add = (path: string, method: string, operation: Operation): void => {
    paths[path] = { ...paths[path], [method]: operation }
  }
  for (const route of routes) add(pathOf('v2', route), route.method, routeOperation(route, 'v2'))
  for (const tool of LISTED_TOOLS) add(`/api/v2/tools/${tool.name}`, 'post', toolOperation(tool))
  for (const route of routes) {
    if (route.v1) add(pathOf('v1', route), route.method, routeOperation(route, 'v1'))
  }
  for (const [path, operations] of Object.entries(fixedPaths())) {
    for (const [method, operation] of Object.entries(operations)) add(path, method, operation)
  }
  return paths
}

function pathOf(version: 'v1' | 'v2', { path }: Route): string {
  return `/api/${version}${path.replaceAll(/:(\w+)/g, '{$1}')}`
}

/** Returns the tags in the order of first use: REST v2, the tools, then the frozen v1. */
function tagsOf(paths: Paths): string[] {
  const operations = Object.values(paths).flatMap((item) => Object.values(item))
  return [...new Set(operations.flatMap(({ tags }) => (Array.isArray(tags) ? tags.map(String) : [])))]
}

const HEADERS = {
  RequestId: header('string', 'The id of this request in the logs.'),
  RateLimit: header(
    'integer',
    'The number of requests per minute: of the organization, or for admin requests of the IP address.',
  ),
  RateRemaining: header('integer', 'The number of requests left in this minute.'),
  RateReset: header('integer', 'The number of seconds until all requests are available again.'),
  RetryAfter: {
    ...header('integer', 'The number of seconds after which to repeat the request.'),
    required: true,
  },
}

const PARAMETERS = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description: 'Within 24 hours, a repeated request with the same key gets the first answer again.',
    schema: { type: 'string', minLength: 1, maxLength: 256, pattern: '^[\\x21-\\x7e][\\x20-\\x7e]*$' },
  },
}

function header(type: string, description: string): Operation {
  return { description, schema: { type } }
}
