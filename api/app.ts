import { randomUUID } from 'node:crypto'

import Router from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import helmet from 'koa-helmet'

import { Failure } from '../src/catalogue/failure.ts'
import { createTracking, type Tracking } from '../src/public/tracking.ts'
import type { Services } from '../src/services.ts'
import { adminRoutes } from './admin.ts'
import { readClientAddress } from './client-address.ts'
import { documentationRoutes } from './documentation.ts'
import { answerFailures } from './errors.ts'
import { createMetrics, healthRoutes } from './health.ts'
import { recognizeInternal } from './internal.ts'
import { mcpRoutes } from './mcp.ts'
import { oauthRoutes } from './oauth.ts'
import { publicRoutes } from './public.ts'
import { reportRoutes } from './reports.ts'
import { restRoutes } from './rest.ts'
import { toolRoutes } from './tools.ts'
import { v1Routes } from './v1.ts'
import { answerVisits } from './visits.ts'
import { limitWrongTokens } from './wrong-tokens.ts'

/** Creates the HTTP application; the caller makes it listen. */
export function createApp(services: Services, tracking: Tracking = createTracking(services)): Koa {
  const app = new Koa()
  const { registry, requests } = createMetrics(tracking)

  const isKnownHost = createHostCheck(services)
  app.use(observe(services, requests))
  app.use(answerFailures(services.log))
  app.use(refuseUnknown)
  app.use(answerVisits(tracking, isKnownHost))
  app.use(readClientAddress(services.config.trustedProxies))
  app.use(recognizeInternal(services))
  app.use(helmet({ contentSecurityPolicy: false, crossOriginResourcePolicy: false }))
  mount(app, healthRoutes(services, registry))
  app.use(refuseForeignHost(isKnownHost))
  app.use(limitWrongTokens())
  // One router for all doors: each router in the middleware chain would cost every request two async steps and a
  // search.
  const doors = new Router()
  for (const door of [
    publicRoutes(services),
    documentationRoutes(services),
    toolRoutes(services),
    restRoutes(services),
    v1Routes(services),
    adminRoutes(services),
    reportRoutes(services),
    mcpRoutes(services),
    oauthRoutes(services),
  ]) {
    doors.use(door.routes())
  }
  mount(app, doors)
  app.on('error', (error: unknown) => services.log.warn({ err: error }, 'a connection broke'))
  return app
}

/** Gives each request an id, measures it, and logs it by its route pattern. */
function observe(services: Services, requests: ReturnType<typeof createMetrics>['requests']): Middleware {
  return async (ctx, next) => {
    const started = performance.now()
    const requestId = randomUUID()
    ctx.state['requestId'] = requestId
    ctx.set('x-request-id', requestId)
    await next()
    const matched: unknown = ctx['_matchedRoute']
    const route = typeof matched === 'string' ? matched : 'none'
    const milliseconds = performance.now() - started
    requests.observe({ method: ctx.method, route, status: ctx.status }, milliseconds / 1_000)
    services.log.debug({ requestId, method: ctx.method, route, status: ctx.status, milliseconds }, 'request')
  }
}

/** Answers unknown addresses and methods in the same shape as every other refusal. */
const refuseUnknown: Middleware = async (ctx, next) => {
  await next()
  const allowed = ctx.response.get('Allow')
  if ((ctx.status === 405 || ctx.status === 501) && allowed !== '') {
    throw new Failure('METHOD_NOT_ALLOWED', `${ctx.method} is not possible here; use ${allowed}.`)
  }
  // 501 without `Allow`: a method that no address has.
  if (ctx.status === 501 || (ctx.status === 404 && ctx.body === undefined)) {
    throw new Failure('NOT_FOUND', `There is nothing at this address for ${ctx.method}; check the path.`)
  }
}

const LOOPBACK_HOSTS = new Set(['127.0.0.1', 'localhost', '[::1]'])

function createHostCheck({ config }: Services): (ctx: Context) => boolean {
  let [baseUrl, ownHost, scheme] = ['', '', '']
  return (ctx) => {
    if (baseUrl !== config.baseUrl) {
      baseUrl = config.baseUrl
      ;({ host: ownHost, protocol: scheme } = new URL(baseUrl))
    }
    if (ctx.host === ownHost) return true
    // Letter case and a default port make no difference (RFC 9110, section 4.2.3).
    const asked = URL.parse(`${scheme}//${ctx.host}`)
    return asked !== null && (asked.host === ownHost || LOOPBACK_HOSTS.has(asked.hostname))
  }
}

/** Refuses requests for any other host name, which prevents DNS rebinding. */
function refuseForeignHost(isKnownHost: (ctx: Context) => boolean): Middleware {
  return async (ctx, next) => {
    if (!isKnownHost(ctx)) {
      throw new Failure(
        'NOT_FOUND',
        'Nothing is served under this host name; use the address in POSTLOOM_BASE_URL, or set it to this one.',
      )
    }
    await next()
  }
}

function mount(app: Koa, router: Router): void {
  app.use(router.routes())
  app.use(router.allowedMethods())
}
