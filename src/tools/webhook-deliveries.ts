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

const webhookId = Type.String({ description: 'The id of the webhook (`whk_…`).' })
const deliveryId = Type.String({ description: 'The id of the event (`evt_…`).' })

export const pingWebhook = defineTool({
  ...facts,
  name: 'ping_webhook',
  title: 'Try out a webhook',
  description:
    'Queues a test event of the type WEBHOOK_PING, which is sent once and without retries. Returns its delivery; read it again with `get_webhook_delivery` to see the response of the endpoint.',
  effect: 'write',
  input: closed({ webhookId }),
  output: closed({ delivery: WebhookDelivery }),
  handler: async (call, input) => ({ delivery: await ping(call, input.webhookId) }),
})

export const listWebhookDeliveries = defineTool({
  ...facts,
  name: 'list_webhook_deliveries',
  title: 'List the deliveries of a webhook',
  description: `Returns the deliveries of a webhook in the last ${WEBHOOK_LIMITS.days} days, newest event first. Page in either direction with \`after\` or \`before\`.`,
  effect: 'read',
  input: closed({ webhookId, ...walkOf(), status: Type.Optional(oneOf(WEBHOOK_DELIVERY_STATUSES)) }),
  output: listOf('deliveries', WebhookDelivery),
  handler: browseDeliveries,
})

export const getWebhookDelivery = defineTool({
  ...facts,
  name: 'get_webhook_delivery',
  title: 'Get a delivery',
  description: 'Returns the delivery of one event to one webhook.',
  effect: 'read',
  input: closed({ webhookId, deliveryId }),
  output: closed({ delivery: WebhookDelivery }),
  handler: async (call, input) => ({ delivery: await findDelivery(call, input) }),
})

export const replayWebhookDelivery = defineTool({
  ...facts,
  name: 'replay_webhook_delivery',
  title: 'Replay a delivery',
  description:
    'Sends an event to the endpoint again under its original id, with another day of retries. Returns the delivery.',
  effect: 'write',
  input: closed({ webhookId, deliveryId }),
  output: closed({ delivery: WebhookDelivery }),
  handler: async (call, input) => ({ delivery: await replayDelivery(call, input) }),
})

export const replayWebhook = defineTool({
  ...facts,
  name: 'replay_webhook',
  title: 'Replay everything since a time',
  description: `Sends every event since a given time to the webhook again, under the original ids, if the webhook accepts its type: events that were delivered, events that failed, and events from before the webhook was created. The time must be within the last ${WEBHOOK_LIMITS.days} days. The events are queued in the background. Returns the webhook.`,
  effect: 'write',
  input: closed({
    webhookId,
    since: Type.String({
      description:
        'The time from which events are sent again, ISO 8601. A date, or a time without an offset, is in the time zone of the organization.',
    }),
  }),
  output: closed({ webhook: Webhook }),
  handler: async (call, input) => ({ webhook: await replaySince(call, input) }),
})
