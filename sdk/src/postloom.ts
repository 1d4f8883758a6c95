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

/** The client. Every method answers `{data, error, headers}` and throws nothing. */
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
  /** Everything that the service can do, by the names of its tools. */
  readonly tools: ToolMethods
  /** The same for a program that learns the names from the service. */
  readonly catalogue: Catalogue

  /** `apiKey` is a token, `pl_…`; without one, POSTLOOM_API_KEY of the environment. */
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
