import type {
  BrowseCampaignsQuery,
  CreateCampaignInput,
  ScheduleCampaignBody,
  UpdateCampaignBody,
} from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** Emails to many people. */
export class Campaigns {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** A page of campaigns without their content, newest first. */
  list(query?: BrowseCampaignsQuery, options?: CallOptions) {
    return this.#rest.call('GET /campaigns', [], query, options)
  }

  /** All of them, one after another, page by page. */
  each(query?: Walk<BrowseCampaignsQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** A draft. */
  create(campaign: CreateCampaignInput, options?: WriteOptions) {
    return this.#rest.call('POST /campaigns', [], campaign, options)
  }

  /** One campaign with its content. */
  get(campaignId: string, options?: CallOptions) {
    return this.#rest.call('GET /campaigns/:campaignId', [campaignId], undefined, options)
  }

  /** Changes what is named of a draft. */
  update(campaignId: string, changes: UpdateCampaignBody, options?: WriteOptions) {
    return this.#rest.call('PATCH /campaigns/:campaignId', [campaignId], changes, options)
  }

  /** Deletes a draft, or what is archived. */
  delete(campaignId: string, options?: WriteOptions) {
    return this.#rest.call('DELETE /campaigns/:campaignId', [campaignId], undefined, options)
  }

  /** Sends it, now unless a date says when. Nothing asks for a confirmation. */
  send(campaignId: string, when?: ScheduleCampaignBody, options?: WriteOptions) {
    return this.#rest.call('POST /campaigns/:campaignId/send', [campaignId], when, options)
  }
}
