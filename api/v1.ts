import Router from '@koa/router'

import { findOperation } from '../src/catalogue/registry.ts'
import { takeWebhook, WEBHOOK_BYTES } from '../src/public/inbound-webhooks.ts'
import type { Services } from '../src/services.ts'
import { readText } from './body.ts'
import { type Door, runOperation } from './doors.ts'
import { isInternal } from './internal.ts'

const V1_DOOR: Door = { bucket: 'rest', gated: false }

/** `/api/v1`: the frozen doors, in the envelope they have always had (contract, "Transactional send v1"). */
export function v1Routes(services: Services): Router {
  const router = new Router({ prefix: '/api/v1' })
  const send = findOperation('send_transactional_email')
  const submit = findOperation('submit_email')

  router.post('/emails', async (ctx) => {
    const data = await runOperation(services, ctx, V1_DOOR, () => (isInternal(ctx) ? submit : send))
    ctx.body = { success: true, message: 'Email queued for delivery.', ...Object(data) }
  })

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
