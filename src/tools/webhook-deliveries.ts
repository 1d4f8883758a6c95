import Type from 'typebox'

import { closed, listOf, oneOf, walkOf } from '../../schema/define.ts'
import { Webhook, WEBHOOK_DELIVERY_STATUSES, WEBHOOK_LIMITS, WebhookDelivery } from '../../schema/webhook.ts'
import { defineTool } from '../catalogue/tool.ts'
import {
  browseDeliveries,
  findDelivery,
  pingWebhook as ping,
  replayDelivery,
  replaySince,
} from '../domain/webhooks/deliveries.ts'

const facts = { group: 'events', permission: 'subscribers', listed: false } as const

const webhookId = Type.String({ description: 'The id of a webhook, whk_….' })
const deliveryId = Type.String({ description: 'The id of the event, evt_….' })

export const pingWebhook = defineTool({
  ...facts,
  name: 'ping_webhook',
  title: 'Try out a webhook',
  description:
    'Sends an event of the type WEBHOOK_PING, once and without retries; the delivery tells what was answered.',
  effect: 'write',
  input: closed({ webhookId }),
  output: closed({ delivery: WebhookDelivery }),
  handler: async (call, input) => ({ delivery: await ping(call, input.webhookId) }),
})

export const listWebhookDeliveries = defineTool({
  ...facts,
  name: 'list_webhook_deliveries',
  title: 'List the deliveries of a webhook',
  description: `Lists what became of the events of the last ${WEBHOOK_LIMITS.days} days, newest event first, both ways.`,
  effect: 'read',
  input: closed({ webhookId, ...walkOf(), status: Type.Optional(oneOf(WEBHOOK_DELIVERY_STATUSES)) }),
  output: listOf('deliveries', WebhookDelivery),
  handler: browseDeliveries,
})

export const getWebhookDelivery = defineTool({
  ...facts,
  name: 'get_webhook_delivery',
  title: 'Get a delivery',
  description: 'Reads what became of one event at one webhook.',
  effect: 'read',
  input: closed({ webhookId, deliveryId }),
  output: closed({ delivery: WebhookDelivery }),
  handler: async (call, input) => ({ delivery: await findDelivery(call, input) }),
})

export const replayWebhookDelivery = defineTool({
  ...facts,
  name: 'replay_webhook_delivery',
  title: 'Replay a delivery',
  description: 'Sends an event to the endpoint once more under the id it had, with another day of retries.',
  effect: 'write',
  input: closed({ webhookId, deliveryId }),
  output: closed({ delivery: WebhookDelivery }),
  handler: async (call, input) => ({ delivery: await replayDelivery(call, input) }),
})

export const replayWebhook = defineTool({
  ...facts,
  name: 'replay_webhook',
  title: 'Replay everything since a time',
  description: `Sends every event since a time of the last ${WEBHOOK_LIMITS.days} days that the webhook is told, under the ids they had: delivered, failed, or from before there was a webhook. They are queued page by page.`,
  effect: 'write',
  input: closed({ webhookId, since: Type.String({ description: 'ISO 8601, with its offset from UTC.' }) }),
  output: closed({ webhook: Webhook }),
  handler: async (call, input) => ({ webhook: await replaySince(call, input) }),
})
