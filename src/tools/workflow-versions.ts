import Type from 'typebox'

import { closed, cursor, limitOf, pageOf } from '../../schema/define.ts'
import { VersionComparison, WorkflowVersion } from '../../schema/workflow-version.ts'
import { defineTool } from '../catalogue/tool.ts'
import { compareVersions, listVersions } from '../domain/automations/definition/version-records.ts'

const workflowId = Type.String({ description: 'The id of the workflow (`wf_…`).' })
const versionNumber = (description: string) =>
  Type.Integer({ minimum: 1, maximum: 2_147_483_647, description })

export const listWorkflowVersions = defineTool({
  name: 'list_workflow_versions',
  title: 'List workflow versions',
  description:
    'Returns the published versions of a workflow, newest first: who published each and when, and the number of active runs on it. Continue with `nextCursor`.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({
    workflowId,
    limit: limitOf(20),
    cursor,
  }),
  output: pageOf('versions', WorkflowVersion),
  handler: listVersions,
})

export const compareWorkflowVersions = defineTool({
  name: 'compare_workflow_versions',
  title: 'Compare workflow versions',
  description:
    'Returns the differences between two published versions of a workflow, or between a version and the draft: added, removed and changed steps (with the changes in each and in its email), edges, settings and goals.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({
    workflowId,
    fromVersion: versionNumber('The number of the earlier version.'),
    toVersion: Type.Optional(versionNumber('The number of the later version. Defaults to the draft.')),
  }),
  output: closed({ comparison: VersionComparison }),
  handler: async (call, input) => ({ comparison: await compareVersions(call, input) }),
})
