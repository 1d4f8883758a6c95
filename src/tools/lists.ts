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
import { browseTokens as readTokens } from '../domain/organizations/tokens.ts'
import {
  browseEvents as readEvents,
  browseSubscriberEvents as readSubscriberEvents,
} from '../domain/subscribers/history.ts'
import { browseSubscribers as readSubscribers } from '../domain/subscribers/queries.ts'
import { browseTags as readTags } from '../domain/subscribers/tag-records.ts'

const restOnly = { effect: 'read', listed: false } as const
const query = Type.Optional(
  Type.String({
    maxLength: 200,
    description:
      'Text to find: in the name or subject of a campaign; in the email address, the name or a tag name of a subscriber.',
  }),
)

export const browseCampaigns = defineTool({
  ...restOnly,
  name: 'browse_campaigns',
  title: 'Browse campaigns',
  description:
    'Returns campaigns without their content, newest first. Archived campaigns are only included with `status` ARCHIVED. Page in either direction with `after` or `before`.',
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
    'Returns subscribers, newest first, optionally only those with a status, with a tag, or with a text in the email address, the name or a tag name. Page in either direction with `after` or `before`.',
  group: 'subscribers',
  permission: 'subscribers',
  input: closed({
    ...walkOf(50),
    status: defaulted(oneOf(['all', ...SUBSCRIBER_STATUSES]), 'all'),
    tag: Type.Optional(
      Type.String({ description: 'Only subscribers with this tag. Letter case is ignored.' }),
    ),
    query,
  }),
  output: listOf('subscribers', Subscriber),
  handler: readSubscribers,
})

export const browseSubscriberEvents = defineTool({
  ...restOnly,
  name: 'browse_subscriber_events',
  title: "Browse a subscriber's events",
  description:
    'Returns the events of one subscriber, newest first; optionally only those of one type. Page in either direction with `after` or `before`.',
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
  description:
    'Returns the events of all subscribers, newest first; optionally only those of one type. Page in either direction with `after` or `before`.',
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
  description:
    'Returns tags, newest first, with the number of subscribers that have each. Page in either direction with `after` or `before`.',
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
  description:
    'Returns sending domains, newest first, with the DNS records they need. Page in either direction with `after` or `before`.',
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
  description:
    'Returns transactional emails without their bodies, newest first. Page in either direction with `after` or `before`.',
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
  description:
    'Returns the API tokens of the organization, newest first, without deleted ones. Page in either direction with `after` or `before`.',
  group: 'organization',
  permission: 'tokens',
  input: closed(walkOf()),
  output: listOf('tokens', Token),
  handler: readTokens,
})
