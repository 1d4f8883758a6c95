import { closed } from '../../schema/define.ts'
import { OrganizationStats } from '../../schema/organization.ts'
import { defineTool } from '../catalogue/tool.ts'
import { readStats } from '../domain/organizations/stats.ts'

export const getOrgStats = defineTool({
  name: 'get_org_stats',
  title: 'Get organization statistics',
  description:
    'Returns statistics of the organization: subscribers by status, the numbers of tags, segments, campaigns, workflows and active runs, and the email of the last 30 days.',
  group: 'organization',
  effect: 'read',
  permission: 'organization',
  input: closed({}),
  output: closed({ stats: OrganizationStats }),
  handler: async (call) => ({ stats: await readStats(call) }),
})
