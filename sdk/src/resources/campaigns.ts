import type {
  BrowseCampaignsQuery,
  CreateCampaignInput,
  ScheduleCampaignBody,
  UpdateCampaignBody,
} from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** Campaigns: emails to many recipients. */
export class Campaigns {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** Returns a page of campaigns without their content, newest first. */
  list(query?: BrowseCampaignsQuery, options?: CallOptions) {
    return this.#rest.call('GET /campaigns', [], query, options)
  }

  /** Iterates over all campaigns, one at a time, reading page by page. */
  each(query?: Walk<BrowseCampaignsQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** Creates a draft. */
  create(campaign: CreateCampaignInput, options?: WriteOptions) {
    return this.#rest.call('POST /campaigns', [], campaign, options)
  }

  /** Returns one campaign with its content. */
  get(campaignId: string, options?: CallOptions) {
    return this.#rest.call('GET /campaigns/:campaignId', [campaignId], undefined, options)
  }

  /** Changes the given members of a draft. */
  update(campaignId: string, changes: UpdateCampaignBody, options?: WriteOptions) {
    return this.#rest.call('PATCH /campaigns/:campaignId', [campaignId], changes, options)
  }

  /** Deletes a draft or an archived campaign. */
  delete(campaignId: string, options?: WriteOptions) {
    return this.#rest.call('DELETE /campaigns/:campaignId', [campaignId], undefined, options)
  }

  /** Sends a campaign, now or at the given date. There is no confirmation. */
  send(campaignId: string, when?: ScheduleCampaignBody, options?: WriteOptions) {
    return this.#rest.call('POST /campaigns/:campaignId/send', [campaignId], when, options)
  }
}
