import Type from 'typebox'

import { closed, defaulted, listOf, nullable, walkOf } from '../../schema/define.ts'
import { NewWebhook, Webhook, WEBHOOK_LIMITS } from '../../schema/webhook.ts'
import { defineTool } from '../catalogue/tool.ts'
import {
  browseWebhooks as readWebhooks,
  createWebhook as create,
  deleteWebhook as remove,
  findWebhook,
  rotateSecret,
  updateWebhook as update,
} from '../domain/webhooks/webhooks.ts'

/** Events tell what there is to know of people, so whoever may have them told may read people. */
const facts = { group: 'events', permission: 'subscribers', listed: false } as const

const webhookId = Type.String({ description: 'The id of the webhook (`whk_…`).' })
const url = Type.String({
  description: 'The public http or https URL of the endpoint. Use https in production.',
})
const description = Type.String({
  description: `A description for your own use, up to ${WEBHOOK_LIMITS.description} characters.`,
})
const eventTypes = nullable(
  Type.Array(Type.String(), {
    minItems: 1,
    maxItems: WEBHOOK_LIMITS.eventTypes,
    description: 'The event types to send, including custom types. Null means all types.',
  }),
)

export const listWebhooks = defineTool({
  ...facts,
  name: 'list_webhooks',
  title: 'List webhooks',
  description: 'Returns the webhooks, newest first. Page in either direction with `after` or `before`.',
  effect: 'read',
  input: closed(walkOf()),
  output: listOf('webhooks', Webhook),
  handler: readWebhooks,
})

export const createWebhook = defineTool({
  ...facts,
  name: 'create_webhook',
  title: 'Create a webhook',
  description:
    'Creates a webhook: from now on, events are sent to a URL, signed according to Standard Webhooks. Returns the webhook with its secret, which is shown only this once.',
  effect: 'write',
  input: closed({
    url,
    description: defaulted(description, ''),
    eventTypes: defaulted(eventTypes, null),
  }),
  output: closed({ webhook: NewWebhook }),
  handler: async (call, input) => ({ webhook: await create(call, input) }),
  kept: withoutSecret,
})

export const getWebhook = defineTool({
  ...facts,
  name: 'get_webhook',
  title: 'Get a webhook',
  description: 'Returns one webhook with its event types and whether its endpoint is failing or disabled.',
  effect: 'read',
  input: closed({ webhookId }),
  output: closed({ webhook: Webhook }),
  handler: async (call, input) => ({ webhook: await findWebhook(call, input.webhookId) }),
})

export const updateWebhook = defineTool({
  ...facts,
  name: 'update_webhook',
  title: 'Update a webhook',
  description:
    'Changes the given members of a webhook; omitted members keep their values. A disabled webhook gets no events, and its pending deliveries fail. When it is enabled again, it gets the events that happen from then on. Returns the webhook.',
  effect: 'write',
  input: closed({
    webhookId,
    url: Type.Optional(url),
    description: Type.Optional(description),
    eventTypes: Type.Optional(eventTypes),
    enabled: Type.Optional(Type.Boolean()),
  }),
  output: closed({ webhook: Webhook }),
  handler: async (call, input) => ({ webhook: await update(call, input) }),
})

export const deleteWebhook = defineTool({
  ...facts,
  name: 'delete_webhook',
  title: 'Delete a webhook',
  description: 'Deletes a webhook together with its deliveries.',
  effect: 'write',
  input: closed({ webhookId }),
  output: closed({ id: Type.String() }),
  handler: async (call, input) => {
    await remove(call, input.webhookId)
    return { id: input.webhookId }
  },
})

export const rotateWebhookSecret = defineTool({
  ...facts,
  name: 'rotate_webhook_secret',
  title: 'Rotate the secret of a webhook',
  description:
    'Creates a new secret for a webhook and returns it, only this once. For 24 hours, every message has two signatures: one with the new secret and one with the previous secret.',
  effect: 'write',
  input: closed({ webhookId }),
  output: closed({ webhook: NewWebhook }),
  handler: async (call, input) => ({ webhook: await rotateSecret(call, input.webhookId) }),
  kept: withoutSecret,
})

/** A secret is shown once, also where an answer is given twice. */
function withoutSecret({ webhook }: { webhook: NewWebhook }): { webhook: NewWebhook } {
  return { webhook: { ...webhook, secret: null } }
}
