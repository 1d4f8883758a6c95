import Router from '@koa/router'

import { findOperation } from '../src/catalogue/registry.ts'
import { statusOf, v1Reply } from '../src/catalogue/route.ts'
import { takeWebhook, WEBHOOK_BYTES } from '../src/public/inbound-webhooks.ts'
import type { Services } from '../src/services.ts'
import { readText } from './body.ts'
import { runOperation } from './doors.ts'
import { isInternal } from './internal.ts'
import { ROUTES } from './routes.ts'
import { REST_DOOR, runRoute } from './run-route.ts'

/** `/api/v1`: the frozen API, with its original envelope (contract, "Transactional send v1"). */
export function v1Routes(services: Services): Router {
  const router = new Router({ prefix: '/api/v1' })
  const send = findOperation('send_transactional_email')
  const submit = findOperation('submit_email')

  router.post('/emails', async (ctx) => {
    const data = await runOperation(services, ctx, REST_DOOR, () => (isInternal(ctx) ? submit : send))
    ctx.body = { success: true, message: 'Email queued for delivery.', ...Object(data) }
  })

  for (const route of ROUTES) {
    if (!route.v1) continue
    const tool = findOperation(route.v1.operation ?? route.operation)
    const reply = v1Reply(route)
    router[route.method](route.path, async (ctx) => {
      const data = await runRoute(services, ctx, tool, route)
      ctx.status = statusOf(route, data)
      ctx.body = reply.body(data)
    })
  }

  router.post('/integrations/webhook/:slug', async (ctx) => {
    const received = await takeWebhook(services, ctx.params['slug'] ?? '', {
      id: ctx.get('webhook-id'),
      timestamp: ctx.get('webhook-timestamp'),
      signatures: ctx.get('webhook-signature'),
      body: await readText(ctx, WEBHOOK_BYTES),
    })
    ctx.body = { success: true, data: received }
  })

  return router
}
