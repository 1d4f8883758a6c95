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

/** Webhooks, which deliver events to other systems. */
export class Webhooks {
  readonly #rest: Rest
  readonly deliveries: WebhookDeliveries

  constructor(rest: Rest) {
    this.#rest = rest
    this.deliveries = new WebhookDeliveries(rest)
  }

  /** Returns a page of webhooks, newest first. */
  list(query?: ListWebhooksQuery, options?: CallOptions) {
    return this.#rest.call('GET /webhooks', [], query, options)
  }

  /** Iterates over all webhooks, one at a time, reading page by page. */
  each(query?: Walk<ListWebhooksQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** Creates a webhook. Only this result contains its secret. */
  create(webhook: CreateWebhookBody, options?: WriteOptions) {
    return this.#rest.call('POST /webhooks', [], webhook, options)
  }

  /** Returns one webhook. */
  get(webhookId: string, options?: CallOptions) {
    return this.#rest.call('GET /webhooks/:webhookId', [webhookId], undefined, options)
  }

  /** Changes the given members. */
  update(webhookId: string, changes: UpdateWebhookBody, options?: WriteOptions) {
    return this.#rest.call('PATCH /webhooks/:webhookId', [webhookId], changes, options)
  }

  /** Deletes a webhook. */
  delete(webhookId: string, options?: WriteOptions) {
    return this.#rest.call('DELETE /webhooks/:webhookId', [webhookId], undefined, options)
  }

  /** Replaces the secret. Only this result contains the new one. */
  rotateSecret(webhookId: string, options?: WriteOptions) {
    return this.#rest.call('POST /webhooks/:webhookId/rotate-secret', [webhookId], undefined, options)
  }

  /** Sends a test event to the webhook. */
  ping(webhookId: string, options?: WriteOptions) {
    return this.#rest.call('POST /webhooks/:webhookId/ping', [webhookId], undefined, options)
  }

  /** Sends the failed deliveries since a point in time again. */
  replay(webhookId: string, since: ReplayWebhookBody, options?: WriteOptions) {
    return this.#rest.call('POST /webhooks/:webhookId/replay', [webhookId], since, options)
  }
}

/** The deliveries of one webhook. */
class WebhookDeliveries {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** Returns a page of deliveries, newest first. */
  list(webhookId: string, query?: ListWebhookDeliveriesQuery, options?: CallOptions) {
    return this.#rest.call('GET /webhooks/:webhookId/deliveries', [webhookId], query, options)
  }

  /** Iterates over all deliveries, one at a time, reading page by page. */
  each(webhookId: string, query?: Walk<ListWebhookDeliveriesQuery>, options?: CallOptions) {
    return walk((page) => this.list(webhookId, { limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** Returns one delivery with the response of the endpoint. */
  get(webhookId: string, deliveryId: string, options?: CallOptions) {
    return this.#rest.call(
      'GET /webhooks/:webhookId/deliveries/:deliveryId',
      [webhookId, deliveryId],
      undefined,
      options,
    )
  }

  /** Sends a delivery again. */
  replay(webhookId: string, deliveryId: string, options?: WriteOptions) {
    return this.#rest.call(
      'POST /webhooks/:webhookId/deliveries/:deliveryId/replay',
      [webhookId, deliveryId],
      undefined,
      options,
    )
  }
}
