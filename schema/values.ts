/** The closed sets of values used on the wire, in the order in which they are published. */

/** The most characters in one line of an email, such as its subject (RFC 5322, 2.1.1). */
export const EMAIL_LINE = 998

export const SUBSCRIBER_STATUSES = [
  'PENDING_CONFIRMATION',
  'SUBSCRIBED',
  'UNSUBSCRIBED',
  'BOUNCED',
  'BANNED',
  'COMPLAINED',
  'TRANSACTIONAL',
] as const
export type SubscriberStatus = (typeof SUBSCRIBER_STATUSES)[number]

export const SUBSCRIBER_EVENT_TYPES = [
  'SUBSCRIBED',
  'UNSUBSCRIBED',
  'TAG_ADDED',
  'TAG_REMOVED',
  'EMAIL_OPENED',
  'EMAIL_CLICKED',
  'EMAIL_SENT',
  'EMAIL_DELIVERY_DELAYED',
  'WORKFLOW_STARTED',
  'WORKFLOW_COMPLETED',
  'WORKFLOW_CANCELED',
  'FIELD_UPDATED',
  'EMAIL_BOUNCED',
  'EMAIL_COMPLAINED',
  'EMAIL_RECEIVED',
  'WEBHOOK_EXECUTED',
  'SUBSCRIBER_PAYMENT',
  'SUBSCRIBER_REFUND',
] as const
export type SubscriberEventType = (typeof SUBSCRIBER_EVENT_TYPES)[number]

export const DELIVERY_STATUSES = ['PENDING', 'SENT', 'DELIVERED', 'BOUNCED', 'COMPLAINED'] as const
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]

/** Bounce categories after which no more email is sent to an address. All other categories are soft bounces. */
export const HARD_BOUNCES = ['NO_SUCH_USER', 'INTERNAL'] as const

export const FIELD_TYPES = ['string', 'number', 'boolean', 'date'] as const
export type FieldType = (typeof FIELD_TYPES)[number]

export const CONTENT_TYPES = ['MAILY', 'PLATE', 'MARKDOWN'] as const
export type ContentType = (typeof CONTENT_TYPES)[number]

export const CAMPAIGN_STATUSES = ['DRAFT', 'SCHEDULED', 'SENDING', 'SENT', 'ARCHIVED', 'FAILED'] as const
export type CampaignStatus = (typeof CAMPAIGN_STATUSES)[number]

export const WORKFLOW_STATUSES = ['DRAFT', 'ACTIVE', 'PAUSED', 'ARCHIVED'] as const
export type WorkflowStatus = (typeof WORKFLOW_STATUSES)[number]

export const RUN_STATUSES = [
  'QUEUED',
  'ACTIVE',
  'WAITING',
  'COMPLETED',
  'CANCELED',
  'FAILED',
  'SKIPPED',
] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

export const EXIT_REASONS = [
  'END',
  'EXIT_STEP',
  'EXIT_RULE',
  'GOAL',
  'GROUP_CONFLICT',
  'UNSUBSCRIBED',
  'SUPPRESSED',
  'MANUAL',
  'ARCHIVED',
  'EXPIRED',
  'ERROR',
] as const
export type ExitReason = (typeof EXIT_REASONS)[number]

export const PLANS = ['FREE', 'PREMIUM', 'ENTERPRISE'] as const
export type Plan = (typeof PLANS)[number]

export const DOMAIN_STATUSES = ['PENDING', 'VERIFYING', 'VERIFIED', 'DEGRADED', 'FAILED'] as const
export type DomainStatus = (typeof DOMAIN_STATUSES)[number]

export const PERMISSIONS = [
  'emails',
  'subscribers',
  'campaigns',
  'workflows',
  'content',
  'domains',
  'organization',
  'tokens',
] as const
export type Permission = (typeof PERMISSIONS)[number]
