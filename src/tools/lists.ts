import Type from 'typebox'

import { CampaignSummary } from '../../schema/campaign.ts'
import { closed, defaulted, listOf, oneOf, walkOf } from '../../schema/define.ts'
import { Domain } from '../../schema/domain.ts'
import { EmailSummary } from '../../schema/email.ts'
import { EventType, SubscriberEvent } from '../../schema/event.ts'
import { Subscriber, subscriberChoice } from '../../schema/subscriber.ts'
import { Tag } from '../../schema/tag.ts'
import { Token } from '../../schema/token.ts'
import { CAMPAIGN_STATUSES, SUBSCRIBER_STATUSES } from '../../schema/values.ts'
import { defineTool } from '../catalogue/tool.ts'
import { browseCampaigns as readCampaigns } from '../domain/campaigns/records.ts'
import { browseDomains as readDomains } from '../domain/domains/domains.ts'
import { browseEmails as readEmails } from '../domain/emails/records.ts'
import {
  browseEvents as readEvents,
  browseSubscriberEvents as readSubscriberEvents,
} from '../domain/subscriber-history.ts'
import { browseSubscribers as readSubscribers } from '../domain/subscriber-queries.ts'
import { browseTags as readTags } from '../domain/tag-records.ts'
import { browseTokens as readTokens } from '../domain/tokens.ts'

const restOnly = { effect: 'read', listed: false } as const
const query = Type.Optional(Type.String({ maxLength: 200, description: 'A part of what a reader sees.' }))

export const browseCampaigns = defineTool({
  ...restOnly,
  name: 'browse_campaigns',
  title: 'Browse campaigns',
  description:
    'Lists campaigns without their content, newest first, both ways. Archived ones show only with status ARCHIVED.',
  group: 'campaigns',
  permission: 'campaigns',
  input: closed({ ...walkOf(), status: Type.Optional(oneOf(CAMPAIGN_STATUSES)), query }),
  output: listOf('campaigns', CampaignSummary),
  handler: readCampaigns,
})

export const browseSubscribers = defineTool({
  ...restOnly,
  name: 'browse_subscribers',
  title: 'Browse subscribers',
  description:
    'Lists subscribers, newest first, both ways, by status, tag, or a part of the email, the name or a tag name.',
  group: 'subscribers',
  permission: 'subscribers',
  input: closed({
    ...walkOf(50),
    status: defaulted(oneOf(['all', ...SUBSCRIBER_STATUSES]), 'all'),
    tag: Type.Optional(Type.String({ description: 'A tag name, whatever its letter case.' })),
    query,
  }),
  output: listOf('subscribers', Subscriber),
  handler: readSubscribers,
})

export const browseSubscriberEvents = defineTool({
  ...restOnly,
  name: 'browse_subscriber_events',
  title: "Browse a subscriber's events",
  description: 'Lists what happened to one subscriber, newest first, both ways, all of it or one type.',
  group: 'events',
  permission: 'subscribers',
  input: closed({ ...subscriberChoice, ...walkOf(), eventType: Type.Optional(EventType) }),
  output: listOf('events', SubscriberEvent),
  handler: readSubscriberEvents,
})

export const browseEvents = defineTool({
  ...restOnly,
  name: 'browse_events',
  title: 'Browse events',
  description: 'Lists what happened to all subscribers, newest first, both ways, all of it or one type.',
  group: 'events',
  permission: 'subscribers',
  input: closed({ ...walkOf(), eventType: Type.Optional(EventType) }),
  output: listOf('events', SubscriberEvent),
  handler: readEvents,
})

export const browseTags = defineTool({
  ...restOnly,
  name: 'browse_tags',
  title: 'Browse tags',
  description: 'Lists tags, newest first, both ways, with the number of subscribers that have each.',
  group: 'tags',
  permission: 'subscribers',
  input: closed(walkOf()),
  output: listOf('tags', Tag),
  handler: readTags,
})

export const browseDomains = defineTool({
  ...restOnly,
  name: 'browse_domains',
  title: 'Browse domains',
  description: 'Lists sending domains, newest first, both ways, with the DNS records they need.',
  group: 'domains',
  permission: 'domains',
  input: closed(walkOf()),
  output: listOf('domains', Domain),
  handler: readDomains,
})

export const browseEmails = defineTool({
  ...restOnly,
  name: 'browse_emails',
  title: 'Browse emails',
  description: 'Lists transactional emails without their bodies, newest first, both ways.',
  group: 'emails',
  permission: 'emails',
  input: closed(walkOf()),
  output: listOf('emails', EmailSummary),
  handler: readEmails,
})

export const browseTokens = defineTool({
  ...restOnly,
  name: 'browse_tokens',
  title: 'Browse API tokens',
  description: 'Lists the API tokens of the organization that are not deleted, newest first, both ways.',
  group: 'organization',
  permission: 'tokens',
  input: closed(walkOf()),
  output: listOf('tokens', Token),
  handler: readTokens,
})
