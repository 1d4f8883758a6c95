import Type from 'typebox'

import { AdminOrganization } from '../../schema/admin.ts'
import { closed } from '../../schema/define.ts'
import { defineAdminTool } from '../catalogue/admin-tool.ts'
import { readAnyOrganization } from '../domain/admin-organization.ts'

export const getOrg = defineAdminTool({
  name: 'get_org',
  description:
    'Reads one organization, whichever it is: what it is, its subscription, how many members, subscribers and campaigns it has, and its sending domains. Send exactly one of id and slug.',
  input: closed({
    id: Type.Optional(Type.String({ minLength: 1, description: 'Its id (org_…).' })),
    slug: Type.Optional(Type.String({ minLength: 1, description: 'Its slug.' })),
  }),
  output: AdminOrganization,
  handler: readAnyOrganization,
})
