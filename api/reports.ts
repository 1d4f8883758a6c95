import Router from '@koa/router'

import { REPORT_BODY_BYTES, takeInboundReport } from '../src/public/reports.ts'
import type { Services } from '../src/services.ts'
import { readJson } from './body.ts'
import { isInternal } from './internal.ts'

/**
 * `/internal/reports`: takes reports from the inbound SMTP listener; for any other client the address does not exist.
 */
export function reportRoutes(services: Services): Router {
  const router = new Router()

  router.post('/internal/reports', async (ctx) => {
    if (!isInternal(ctx)) return
    ctx.body = await takeInboundReport(services, await readJson(ctx, REPORT_BODY_BYTES))
  })

  return router
}
