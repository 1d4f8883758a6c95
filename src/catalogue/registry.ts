import * as admin from '../tools/admin.ts'
import * as audience from '../tools/audience.ts'
import * as campaignEmails from '../tools/campaign-emails.ts'
import * as campaignHistory from '../tools/campaign-history.ts'
import * as campaignResources from '../tools/campaign-resources.ts'
import * as campaignSending from '../tools/campaign-sending.ts'
import * as campaigns from '../tools/campaigns.ts'
import * as deliverability from '../tools/deliverability.ts'
import * as documentation from '../tools/documentation.ts'
import * as domains from '../tools/domains.ts'
import * as emailResources from '../tools/email-resources.ts'
import * as emails from '../tools/emails.ts'
import * as events from '../tools/events.ts'
import * as explanation from '../tools/explanation.ts'
import * as fields from '../tools/fields.ts'
import * as images from '../tools/images.ts'
import * as imports from '../tools/imports.ts'
import * as lists from '../tools/lists.ts'
import * as organization from '../tools/organization.ts'
import * as privacy from '../tools/privacy.ts'
import * as segments from '../tools/segments.ts'
import * as senders from '../tools/senders.ts'
import * as settings from '../tools/settings.ts'
import * as simulation from '../tools/simulation.ts'
import * as snippets from '../tools/snippets.ts'
import * as statistics from '../tools/statistics.ts'
import * as subscriberTags from '../tools/subscriber-tags.ts'
import * as subscribers from '../tools/subscribers.ts'
import * as suppressions from '../tools/suppressions.ts'
import * as tags from '../tools/tags.ts'
import * as tokens from '../tools/tokens.ts'
import * as web from '../tools/web.ts'
import * as webhookDeliveries from '../tools/webhook-deliveries.ts'
import * as webhooks from '../tools/webhooks.ts'
import * as workflowGroups from '../tools/workflow-groups.ts'
import * as workflowRuns from '../tools/workflow-runs.ts'
import * as workflowVersions from '../tools/workflow-versions.ts'
import * as workflows from '../tools/workflows.ts'
import type { AdminTool } from './admin-tool.ts'
import { Failure } from './failure.ts'
import { nearest } from './schema-faults.ts'
import type { Tool } from './tool.ts'

const GROUPS = [
  subscribers,
  suppressions,
  explanation,
  imports,
  audience,
  tags,
  subscriberTags,
  segments,
  fields,
  events,
  workflows,
  workflowRuns,
  workflowVersions,
  workflowGroups,
  simulation,
  campaigns,
  campaignEmails,
  campaignHistory,
  campaignSending,
  campaignResources,
  snippets,
  images,
  web,
  emails,
  emailResources,
  domains,
  deliverability,
  senders,
  organization,
  settings,
  statistics,
  documentation,
  privacy,
  tokens,
  webhooks,
  webhookDeliveries,
  lists,
]

/** All operations by name; every door uses this map. */
export const CATALOGUE: ReadonlyMap<string, Tool> = new Map(
  GROUPS.flatMap((group) => Object.values<Tool>(group)).map((tool) => [tool.name, tool]),
)

/** The tools that discovery shows, in catalogue order. */
export const LISTED_TOOLS: readonly Tool[] = [...CATALOGUE.values()].filter(({ listed }) => listed)

/** The tools of the admin door, which no other door can run. */
export const ADMIN_TOOLS: readonly AdminTool[] = Object.values(admin)

/** Returns the operation of this name. Throws `TOOL_NOT_FOUND` with similar names. */
export function findOperation(name: string): Tool {
  return CATALOGUE.get(name) ?? unknownTool(name)
}

/** Returns the listed tool of this name; operations that only REST has are not found here. */
export function findTool(name: string): Tool {
  const tool = CATALOGUE.get(name)
  return tool?.listed ? tool : unknownTool(name)
}

/** Throws `TOOL_NOT_FOUND` for an unknown tool, naming up to five similar ones. */
export function unknownTool(name: string): never {
  const shown = JSON.stringify(name.slice(0, 80))
  const near = nearNames(name)
  const hint = near.length > 0 ? `did you mean ${near.join(', ')}?` : 'GET /api/v2/tools lists them all.'
  throw new Failure('TOOL_NOT_FOUND', `There is no tool ${shown}; ${hint}`, { details: { nearNames: near } })
}

/** Returns up to five listed tools: the one spelled most similarly, then those that share the most words. */
function nearNames(name: string): string[] {
  const words = new Set(wordsOf(name))
  const names = LISTED_TOOLS.map((tool) => tool.name)
  const spelled = nearest(name, names)
  const sharing = LISTED_TOOLS.map((tool) => ({
    name: tool.name,
    shared: wordsOf(tool.name).filter((word) => words.has(word)).length,
  }))
    .filter(({ shared }) => shared > 0)
    .sort((one, other) => other.shared - one.shared)
    .map((tool) => tool.name)
  return [...new Set(spelled === undefined ? sharing : [spelled, ...sharing])].slice(0, 5)
}

function wordsOf(name: string): string[] {
  return name
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter(Boolean)
    .map((word) => word.replace(/s$/, ''))
}
