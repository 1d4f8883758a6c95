import type {
  CreateWebhookBody,
  ListWebhookDeliveriesQuery,
  ListWebhooksQuery,
  ReplayWebhookBody,
  UpdateWebhookBody,
} from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** Where events are told to other systems. */
export class Webhooks {
  readonly #rest: Rest
  readonly deliveries: WebhookDeliveries

  constructor(rest: Rest) {
    this.#rest = rest
    this.deliveries = new WebhookDeliveries(rest)
  }

  /** A page of webhooks, newest first. */
  list(query?: ListWebhooksQuery, options?: CallOptions) {
    return this.#rest.call('GET /webhooks', [], query, options)
  }

  /** All of them, one after another, page by page. */
  each(query?: Walk<ListWebhooksQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** A new webhook, whose secret is shown this once. */
  create(webhook: CreateWebhookBody, options?: WriteOptions) {
    return this.#rest.call('POST /webhooks', [], webhook, options)
  }

  /** One webhook. */
  get(webhookId: string, options?: CallOptions) {
    return this.#rest.call('GET /webhooks/:webhookId', [webhookId], undefined, options)
  }

  /** Changes what is named. */
  update(webhookId: string, changes: UpdateWebhookBody, options?: WriteOptions) {
    return this.#rest.call('PATCH /webhooks/:webhookId', [webhookId], changes, options)
  }

  /** Ends it. */
  delete(webhookId: string, options?: WriteOptions) {
    return this.#rest.call('DELETE /webhooks/:webhookId', [webhookId], undefined, options)
  }

  /** A new secret, shown this once. */
  rotateSecret(webhookId: string, options?: WriteOptions) {
    return this.#rest.call('POST /webhooks/:webhookId/rotate-secret', [webhookId], undefined, options)
  }

  /** Sends a message to try it. */
  ping(webhookId: string, options?: WriteOptions) {
    return this.#rest.call('POST /webhooks/:webhookId/ping', [webhookId], undefined, options)
  }

  /** Sends once more what could not be delivered since a time. */
  replay(webhookId: string, since: ReplayWebhookBody, options?: WriteOptions) {
    return this.#rest.call('POST /webhooks/:webhookId/replay', [webhookId], since, options)
  }
}

/** What was sent to one webhook. */
class WebhookDeliveries {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** A page of deliveries, newest first. */
  list(webhookId: string, query?: ListWebhookDeliveriesQuery, options?: CallOptions) {
    return this.#rest.call('GET /webhooks/:webhookId/deliveries', [webhookId], query, options)
  }

  /** All of them, one after another, page by page. */
  each(webhookId: string, query?: Walk<ListWebhookDeliveriesQuery>, options?: CallOptions) {
    return walk((page) => this.list(webhookId, { limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** One delivery, with what the other side answered. */
  get(webhookId: string, deliveryId: string, options?: CallOptions) {
    return this.#rest.call(
      'GET /webhooks/:webhookId/deliveries/:deliveryId',
      [webhookId, deliveryId],
      undefined,
      options,
    )
  }

  /** Sends it once more. */
  replay(webhookId: string, deliveryId: string, options?: WriteOptions) {
    return this.#rest.call(
      'POST /webhooks/:webhookId/deliveries/:deliveryId/replay',
      [webhookId, deliveryId],
      undefined,
      options,
    )
  }
}
