import Router from '@koa/router'

import { findOperation } from '../src/catalogue/registry.ts'
import { bare, statusOf } from '../src/catalogue/route.ts'
import type { Services } from '../src/services.ts'
import { sendRejected } from './imports.ts'
import { ROUTES } from './routes.ts'
import { runRoute } from './run-route.ts'

/** `/api/v2`: resources by address, without envelope and confirmations (contract, "REST v2 resource endpoints"). */
export function restRoutes(services: Services): Router {
  const router = new Router({ prefix: '/api/v2' })
  for (const route of ROUTES) {
    const tool = findOperation(route.operation)
    const { reply = bare } = route
    router[route.method](route.path, async (ctx) => {
      const data = await runRoute(services, ctx, tool, route)
      ctx.status = statusOf(route, data)
      ctx.body = reply.body(data)
    })
  }
  router.get('/imports/:importId/rejected', (ctx) => sendRejected(services, ctx))
  return router
}
