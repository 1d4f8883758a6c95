import { createHmac, createPrivateKey } from 'node:crypto'

import type Koa from 'koa'
import type { Context } from 'koa'
import { type Client, type Configuration, errors, interactionPolicy, Provider } from 'oidc-provider'

import { unavailablePage } from '../src/public/pages.ts'
import { lostSignInPage } from '../src/public/sign-in-pages.ts'
import { keepInDatabase, type StorageFaults } from '../src/public/sign-in.ts'
import type { Services } from '../src/services.ts'
import { Throttle } from '../src/throttle.ts'
import { showPage } from './page.ts'

/** The scopes of clients; each is the effect of the tools that it opens. */
export const SCOPES = ['read', 'draft'] as const

/** The HTTP status while the database cannot be reached. */
const AWAY = 503
const MINUTE = 60
const DAY = 24 * 60 * MINUTE
/** After this time the member must consent again, however often the client has refreshed its token. */
export const GRANT_SECONDS = 90 * DAY
const CLIENT_DOCUMENT = { bytes: 5 * 1_024, milliseconds: 5_000 }
/** Maximum number of fetches of client documents per hour from one address; a person needs only a few ever. */
const FETCHES = 60
/** The window of the limits per address. */
export const HOUR_MS = 3_600_000
/** How long a client's document is cached in seconds; its own cache headers apply only within these bounds. */
const DOCUMENT_AGE = { min: 60 * MINUTE, max: DAY }
/** The DER prefix of an Ed25519 private key in PKCS #8 (RFC 8410). */
const ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Returns the audience of access tokens: the address of the MCP server (RFC 8707). */
export function audienceOf(baseUrl: string): string {
  return `${baseUrl}/mcp`
}

/** Creates the OAuth 2.1 server that lets clients into `/mcp`; it stores everything in PostgreSQL. */
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
      const page = ctx.status === AWAY ? unavailablePage() : lostSignInPage(reasonOf(error, described))
      showPage(ctx, ctx.status, page)
    },
  })
  // speakAs() sets the headers that it trusts.
  server.proxy = true
  server.use(async (ctx, next) => {
    await next()
    if (ctx.status === AWAY) ctx.set('Retry-After', '1')
    if (ctx.oidc?.route === 'discovery') ctx.body = describeMetadata(Object(ctx.body), baseUrl)
  })
  server.on('server_error', (_ctx, error) => services.log.error({ err: error }, 'a sign-in failed'))
  const app: Koa = server
  app.on('error', (error: unknown) => services.log.warn({ err: error }, 'a connection broke'))
  return server
}

/** Returns what to tell a member about a refusal of the OAuth server. */
function reasonOf(error: string, described: string | undefined): string | undefined {
  if (error === 'invalid_client') {
    return 'This service does not know the app, or not any more: remove the connection there and add it again.'
  }
  if (error === 'server_error') return 'Something failed on our side.'
  return described === undefined
    ? undefined
    : `The app asked for something that is not possible: ${described}.`
}

function describeStorage(services: Services): Configuration {
  const { encryptionKey } = services.config
  const derive = (purpose: string) => createHmac('sha256', encryptionKey).update(purpose).digest()
  const key = createPrivateKey({
    key: Buffer.concat([ED25519, derive('oauth signing')]),
    format: 'der',
    type: 'pkcs8',
  }).export({ format: 'jwk' })
  return {
    adapter: (model) => keepInDatabase(services, model, storageFaults(services)),
    jwks: { keys: [{ ...key, kty: 'OKP', use: 'sig', alg: 'EdDSA' }] },
    enabledJWA: { idTokenSigningAlgValues: ['EdDSA'] },
    clientDefaults: { id_token_signed_response_alg: 'EdDSA' },
    cookies: { keys: [derive('oauth cookies').toString('hex')] },
  }
}

/** A client keeps what it has when this service is away for a moment, and asks again (RFC 6749, section 4.1.2.1). */
function storageFaults({ log }: Services): StorageFaults {
  return {
    usedAgain() {
      throw new errors.InvalidGrant('already used')
    },
    away(cause) {
      log.error({ err: cause }, 'the database cannot be reached for a sign-in')
      const error = new errors.TemporarilyUnavailable('The database cannot be reached', { cause })
      throw Object.assign(error, { status: AWAY, statusCode: AWAY })
    },
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
      // Without a request, a sign-in that was already counted continues.
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
        // Few clients state their type. A redirect that is not https leads to an app on the member's computer, or
        // nowhere.
        metadata.application_type = uris.every((uri) => /^https:/i.test(String(uri))) ? 'web' : 'native'
        // The member decides on the scopes, not the client.
        delete metadata.scope
      },
    },
    clientBasedCORS: (_ctx, origin, client) => originsOf(client).has(origin),
    // Follows no redirects, and reads at most CLIENT_DOCUMENT.bytes.
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

/**
 * Makes every client ask its member to sign in and consent each time; sessions last only from page to page of one
 * sign-in.
 */
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

/** Returns the metadata of RFC 8414, without members that only OpenID Connect has. */
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

/** Makes a request look like one to the server's own address, which its cookies and redirects depend on. */
export function speakAs({ issuer }: Provider, ctx: Context): void {
  const { req, ip } = ctx
  const { host, protocol } = new URL(issuer)
  // A client that opened the sign-in in a separate window needs its reference to that window.
  ctx.set('Cross-Origin-Opener-Policy', 'unsafe-none')
  req.headers.host = host
  req.headers['x-forwarded-proto'] = protocol.slice(0, -1)
  req.headers['x-forwarded-for'] = ip
  delete req.headers['x-forwarded-host']
}
