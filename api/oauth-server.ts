import { createHmac, createPrivateKey } from 'node:crypto'

import type Koa from 'koa'
import type { Context } from 'koa'
import { type Client, type Configuration, errors, interactionPolicy, Provider } from 'oidc-provider'

import { formSecurityPolicy } from '../src/public/page-frame.ts'
import { lostSignInPage } from '../src/public/sign-in-pages.ts'
import { keepInDatabase } from '../src/public/sign-in.ts'
import type { Services } from '../src/services.ts'
import { Throttle } from '../src/throttle.ts'

/** What a client may be given; each names the effect of the tools that it opens. */
export const SCOPES = ['read', 'draft'] as const

const MINUTE = 60
const DAY = 24 * 60 * MINUTE
/** After so long a member is asked again, however often the client has refreshed. */
export const GRANT_SECONDS = 90 * DAY
const CLIENT_DOCUMENT = { bytes: 5 * 1_024, milliseconds: 5_000 }
/** So many in an hour from one address; a person needs a few in a life. */
const FETCHES = 60
/** The window of what is counted by address. */
export const HOUR_MS = 3_600_000
/** How long a client's document is believed, in seconds, whatever it says itself. */
const DOCUMENT_AGE = { min: 60 * MINUTE, max: DAY }
/** The header of an Ed25519 key in PKCS #8 (RFC 8410). */
const ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Whom an access token is for: the address of the MCP server (RFC 8707). */
export function audienceOf(baseUrl: string): string {
  return `${baseUrl}/mcp`
}

/** The OAuth 2.1 server of this address, which lets clients into `/mcp`; it keeps everything in PostgreSQL. */
export function createOAuthServer(services: Services): Provider {
  const { baseUrl } = services.config
  const origin = new URL(baseUrl).origin
  const server = new Provider(origin, {
    ...describeStorage(services),
    ...describeTokens(),
    ...describeClients(services),
    ...describeSignIn(),
    features: describeFeatures(baseUrl),
    routes: {
      authorization: '/oauth/authorize',
      token: '/oauth/token',
      registration: '/oauth/register',
      revocation: '/oauth/revoke',
      jwks: '/oauth/keys',
    },
    async renderError(ctx, { error, error_description: described }) {
      ctx.type = 'text/html; charset=utf-8'
      ctx.set('Content-Security-Policy', formSecurityPolicy())
      ctx.body = lostSignInPage(error === 'server_error' ? undefined : described)
    },
  })
  // The headers it goes by are set by speakAs().
  server.proxy = true
  server.use(async (ctx, next) => {
    await next()
    if (ctx.oidc?.route === 'discovery') ctx.body = describeMetadata(Object(ctx.body), baseUrl)
  })
  server.on('server_error', (_ctx, error) => services.log.error({ err: error }, 'a sign-in failed'))
  const app: Koa = server
  app.on('error', (error: unknown) => services.log.warn({ err: error }, 'a connection broke'))
  return server
}

function describeStorage(services: Services): Configuration {
  const { encryptionKey } = services.config
  const derive = (purpose: string) => createHmac('sha256', encryptionKey).update(purpose).digest()
  const key = createPrivateKey({
    key: Buffer.concat([ED25519, derive('oauth signing')]),
    format: 'der',
    type: 'pkcs8',
  }).export({ format: 'jwk' })
  const refuse = (): never => {
    throw new errors.InvalidGrant('already used')
  }
  return {
    adapter: (model) => keepInDatabase(services, model, refuse),
    jwks: { keys: [{ ...key, kty: 'OKP', use: 'sig', alg: 'EdDSA' }] },
    enabledJWA: { idTokenSigningAlgValues: ['EdDSA'] },
    clientDefaults: { id_token_signed_response_alg: 'EdDSA' },
    cookies: { keys: [derive('oauth cookies').toString('hex')] },
  }
}

function describeTokens(): Configuration {
  return {
    responseTypes: ['code'],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: async () => false,
    ttl: {
      AccessToken: 60 * MINUTE,
      AuthorizationCode: MINUTE,
      RefreshToken: 30 * DAY,
      Grant: GRANT_SECONDS,
      Interaction: 30 * MINUTE,
      Session: 30 * MINUTE,
      IdToken: 60 * MINUTE,
    },
  }
}

function describeFeatures(baseUrl: string): NonNullable<Configuration['features']> {
  const fetches = new Throttle(FETCHES, HOUR_MS)
  return {
    resourceIndicators: {
      enabled: true,
      defaultResource: async (_ctx, _client, oneOf) => oneOf ?? audienceOf(baseUrl),
      useGrantedResource: async () => true,
      getResourceServerInfo: async (_ctx, resource) => {
        if (resource !== audienceOf(baseUrl)) throw new errors.InvalidTarget()
        return { scope: SCOPES.join(' '), audience: resource, accessTokenFormat: 'opaque' }
      },
    },
    registration: { enabled: true, issueRegistrationAccessToken: false },
    clientIdMetadataDocument: {
      enabled: true,
      ack: 'draft-02',
      // Without a request it is a sign-in that goes on, which was counted when it began.
      allowFetch: async (ctx) => ctx === undefined || fetches.count(ctx.ip).left >= 0,
      cacheDuration: DOCUMENT_AGE,
    },
    revocation: {
      enabled: true,
      allowedPolicy: async (_ctx, client, token) => token.clientId === client.clientId,
    },
    devInteractions: { enabled: false },
    userinfo: { enabled: false },
    dPoP: { enabled: false },
    pushedAuthorizationRequests: { enabled: false },
    rpInitiatedLogout: { enabled: false },
  }
}

function describeClients(services: Services): Configuration {
  return {
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    extraClientMetadata: {
      properties: ['application_kind'],
      validator(_ctx, _key, _value, metadata) {
        const uris = Array.isArray(metadata.redirect_uris) ? metadata.redirect_uris : []
        // Few clients say what they are. What is not https goes to an app on the person's machine, or nowhere.
        metadata.application_type = uris.every((uri) => /^https:/i.test(String(uri))) ? 'web' : 'native'
        // What a client may is for the member to say.
        delete metadata.scope
      },
    },
    clientBasedCORS: (_ctx, origin, client) => originsOf(client).has(origin),
    // One address, no redirect: whatever else answers is refused.
    async fetch(given) {
      const { web } = services
      const url = new URL(given instanceof Request ? given.url : given).href
      const answer = await web.request({
        url,
        headers: { accept: 'application/json' },
        limits: CLIENT_DOCUMENT,
      })
      return new Response(new Uint8Array(answer.body), {
        status: answer.status,
        headers: { 'cache-control': answer.headers['cache-control'] ?? '' },
      })
    },
  }
}

/** Every client asks its member to sign in and to agree, each time: sessions serve for the way between the pages only. */
function describeSignIn(): Configuration {
  const policy = interactionPolicy.base()
  policy
    .get('login')
    ?.checks.add(
      new interactionPolicy.Check('fresh', 'the member signs in', ({ oidc }) =>
        oidc.result?.login === undefined
          ? interactionPolicy.Check.REQUEST_PROMPT
          : interactionPolicy.Check.NO_NEED_TO_PROMPT,
      ),
    )
  return {
    interactions: { policy, url: (_ctx, { uid }) => `/oauth/sign-in/${uid}` },
    async loadExistingGrant({ oidc }) {
      const grantId = oidc.result?.consent?.grantId
      return grantId === undefined ? undefined : await oidc.provider.Grant.find(grantId)
    },
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  }
}

/** RFC 8414, without what only OpenID Connect has. */
function describeMetadata(metadata: Record<string, unknown>, baseUrl: string): Record<string, unknown> {
  const foreign = /^(?:claim|id_token|subject_types|acr_|jwks_uri|request_)/
  return {
    ...Object.fromEntries(Object.entries(metadata).filter(([name]) => !foreign.test(name))),
    grant_types_supported: ['authorization_code', 'refresh_token'],
    scopes_supported: SCOPES,
    service_documentation: `${baseUrl}/docs`,
  }
}

function originsOf({ redirectUris = [] }: Client): Set<string> {
  return new Set(redirectUris.map((uri) => new URL(uri).origin))
}

/** Makes a request one of the server's own address, which its cookies and redirects go by. */
export function speakAs({ issuer }: Provider, ctx: Context): void {
  const { req, ip } = ctx
  const { host, protocol } = new URL(issuer)
  // A client that opened us in a window of its own hears from it when the answer has come back.
  ctx.set('Cross-Origin-Opener-Policy', 'unsafe-none')
  req.headers.host = host
  req.headers['x-forwarded-proto'] = protocol.slice(0, -1)
  req.headers['x-forwarded-for'] = ip
  delete req.headers['x-forwarded-host']
}
