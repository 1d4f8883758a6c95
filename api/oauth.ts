import Router from '@koa/router'
import type { Context } from 'koa'
import type Provider from 'oidc-provider'

import { Failure } from '../src/catalogue/failure.ts'
import type { Services } from '../src/services.ts'
import { Throttle } from '../src/throttle.ts'
import { audienceOf, createOAuthServer, HOUR_MS, SCOPES, speakAs } from './oauth-server.ts'
import { signInRoutes } from './sign-in.ts'

const METADATA = '/.well-known/oauth-authorization-server'
/** Maximum number of new clients per hour from one address: each writes a row without authentication. */
const NEW_CLIENTS = 60
/** Maximum number of new sign-ins per hour from one address: each writes a row too. */
const NEW_SIGN_INS = 600

/**
 * The OAuth 2.1 server for `/mcp`: its metadata (RFC 8414, RFC 9728), client registration (RFC 7591, or a metadata
 * document of the client), consent of members, and tokens, their refresh and revocation.
 */
export function oauthRoutes(services: Services): Router {
  const { config } = services
  const serverOf = keepServer(services)
  const newClients = new Throttle(NEW_CLIENTS, HOUR_MS)
  const newSignIns = new Throttle(NEW_SIGN_INS, HOUR_MS)
  const router = new Router()

  /** Some clients look at the root of the address, others append the path of the resource. */
  for (const behind of ['', '/mcp']) {
    router.get(`/.well-known/oauth-protected-resource${behind}`, (ctx) => {
      ctx.set('Access-Control-Allow-Origin', '*')
      ctx.body = describeResource(config.baseUrl)
    })
    for (const method of ['get', 'options'] as const) {
      router[method](`${METADATA}${behind}`, async (ctx) => {
        ctx.req.url = METADATA
        await handOver(serverOf(), ctx)
      })
    }
  }

  router.get('/oauth/authorize', async (ctx) => {
    count(newSignIns, ctx, 'Too many sign-ins began from this address; wait a while.')
    ctx.req.url = `/oauth/authorize?${askedScopes(ctx.querystring)}`
    await handOver(serverOf(), ctx)
  })
  router.get('/oauth/authorize/:uid', (ctx) => handOver(serverOf(), ctx))
  for (const path of ['/oauth/token', '/oauth/revoke']) {
    router.post(path, (ctx) => handOver(serverOf(), ctx))
    router.options(path, (ctx) => handOver(serverOf(), ctx))
  }
  router.post('/oauth/register', async (ctx) => {
    count(newClients, ctx, 'Too many clients registered from this address; wait a while.')
    await handOver(serverOf(), ctx)
  })
  router.use(signInRoutes(services, serverOf).routes())
  return router
}

function count(throttle: Throttle, ctx: Context, message: string): void {
  const { left, endsInMs } = throttle.count(ctx.ip)
  if (left < 0) throw new Failure('RATE_LIMITED', message, { retryAfter: Math.ceil(endsInMs / 1_000) })
}

/** Returns the protected resource metadata of the MCP server (RFC 9728): which server issues its tokens. */
function describeResource(baseUrl: string): Record<string, unknown> {
  return {
    resource: audienceOf(baseUrl),
    authorization_servers: [new URL(baseUrl).origin],
    scopes_supported: SCOPES,
    bearer_methods_supported: ['header'],
    resource_name: 'Postloom',
    resource_documentation: `${baseUrl}/`,
  }
}

/** Returns a function that keeps one server until the base URL changes. */
function keepServer(services: Services): () => Provider {
  let kept: { baseUrl: string; server: Provider } | undefined
  return () => {
    const { baseUrl } = services.config
    if (kept?.baseUrl !== baseUrl) kept = { baseUrl, server: createOAuthServer(services) }
    return kept.server
  }
}

/** Returns the query with known scopes only; a client that names none asks for all. */
function askedScopes(query: string): string {
  const params = new URLSearchParams(query)
  const asked = params.getAll('scope').join(' ').split(' ')
  const known = SCOPES.filter((scope) => asked.includes(scope))
  params.set('scope', (known.length > 0 ? known : SCOPES).join(' '))
  return params.toString()
}

/**
 * Passes a request to the OAuth server, under the configured address of this service, whatever address a proxy uses.
 */
async function handOver(server: Provider, ctx: Context): Promise<void> {
  ctx.respond = false
  speakAs(server, ctx)
  await server.callback()(ctx.req, ctx.res)
}
