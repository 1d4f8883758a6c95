import Type from 'typebox'

import { AdminOrganization } from '../../schema/admin.ts'
import { closed } from '../../schema/define.ts'
import { defineAdminTool } from '../catalogue/admin-tool.ts'
import { readAnyOrganization } from '../domain/organizations/admin-organization.ts'

export const getOrg = defineAdminTool({
  name: 'get_org',
  description:
    'Returns any one organization: its details, its subscription, its numbers of members, subscribers and campaigns, and its sending domains. Send exactly one of `id` and `slug`.',
  input: closed({
    id: Type.Optional(Type.String({ minLength: 1, description: 'The id of the organization (`org_…`).' })),
    slug: Type.Optional(Type.String({ minLength: 1, description: 'The slug of the organization.' })),
  }),
  output: AdminOrganization,
  handler: readAnyOrganization,
})
