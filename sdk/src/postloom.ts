import { Campaigns } from './resources/campaigns.ts'
import { Domains } from './resources/domains.ts'
import { Emails } from './resources/emails.ts'
import { Events } from './resources/events.ts'
import { Imports } from './resources/imports.ts'
import { Subscribers } from './resources/subscribers.ts'
import { Tags } from './resources/tags.ts'
import { Tokens } from './resources/tokens.ts'
import { Webhooks } from './resources/webhooks.ts'
import { Rest } from './rest.ts'
import { type PostloomOptions, readSettings } from './settings.ts'
import { Catalogue, toolMethods, type ToolMethods } from './tools.ts'
import { Transport } from './transport.ts'

/** The client. Every method returns `{data, error, headers}` and never throws. */
export class Postloom {
  readonly campaigns: Campaigns
  readonly domains: Domains
  readonly emails: Emails
  readonly events: Events
  readonly imports: Imports
  readonly subscribers: Subscribers
  readonly tags: Tags
  readonly tokens: Tokens
  readonly webhooks: Webhooks
  /** All tools of the service as methods, by name. */
  readonly tools: ToolMethods
  /** All tools for programs that learn their names from the service at run time. */
  readonly catalogue: Catalogue

  /** `apiKey` is a token, `pl_…`. Without it, the environment variable POSTLOOM_API_KEY is used. */
  constructor(apiKey?: string, options: PostloomOptions = {}) {
    const transport = new Transport(readSettings(apiKey, options))
    const rest = new Rest(transport)
    this.campaigns = new Campaigns(rest)
    this.domains = new Domains(rest)
    this.emails = new Emails(rest)
    this.events = new Events(rest)
    this.imports = new Imports(rest)
    this.subscribers = new Subscribers(rest)
    this.tags = new Tags(rest)
    this.tokens = new Tokens(rest)
    this.webhooks = new Webhooks(rest)
    this.catalogue = new Catalogue(transport)
    this.tools = toolMethods(this.catalogue)
  }
}
