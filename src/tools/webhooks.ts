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

const webhookId = Type.String({ description: 'The id of a webhook, whk_….' })
const url = Type.String({ description: 'An http or https address of the public internet; https in earnest.' })
const description = Type.String({
  description: `What you know it by, up to ${WEBHOOK_LIMITS.description} characters.`,
})
const eventTypes = nullable(
  Type.Array(Type.String(), {
    minItems: 1,
    maxItems: WEBHOOK_LIMITS.eventTypes,
    description: 'Types of events, those of your own as well; null for every type.',
  }),
)

export const listWebhooks = defineTool({
  ...facts,
  name: 'list_webhooks',
  title: 'List webhooks',
  description: 'Lists the addresses that events are told to, newest first, both ways.',
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
    'Has events told to an address from now on, each signed as Standard Webhooks says. Answers the secret, once.',
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
  description: 'Reads one webhook: what it is told, and whether its endpoint is failing or disabled.',
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
    'Changes what is given. A webhook that is disabled is told nothing, and what was pending fails; enabled again, it is told what happens from then on.',
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
  description: 'Takes a webhook away, with its deliveries.',
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
    'Makes a new secret and answers it, once. For 24 hours every message carries two signatures, by the new secret and by the one before.',
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
