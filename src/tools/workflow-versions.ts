import Type from 'typebox'

import { closed, limitOf, pageOf } from '../../schema/define.ts'
import { VersionComparison, WorkflowVersion } from '../../schema/workflow-version.ts'
import { defineTool } from '../catalogue/tool.ts'
import { compareVersions, listVersions } from '../domain/automations/definition/version-records.ts'

const workflowId = Type.String({ description: 'The id of a workflow, wf_….' })
const versionNumber = (description: string) =>
  Type.Integer({ minimum: 1, maximum: 2_147_483_647, description })

export const listWorkflowVersions = defineTool({
  name: 'list_workflow_versions',
  title: 'List workflow versions',
  description:
    'Lists the published versions of a workflow, newest first: who published each, when, and how many runs are still on it.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({
    workflowId,
    limit: limitOf(20),
    cursor: Type.Optional(Type.String({ description: 'nextCursor of the page before.' })),
  }),
  output: pageOf('versions', WorkflowVersion),
  handler: listVersions,
})

export const compareWorkflowVersions = defineTool({
  name: 'compare_workflow_versions',
  title: 'Compare workflow versions',
  description:
    'Tells what changed from one published version to another, or to the draft: steps added, removed and changed, each with what changed in it and in its email, edges, settings and goals.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({
    workflowId,
    fromVersion: versionNumber('The number of the earlier version.'),
    toVersion: Type.Optional(versionNumber('The number of the later version; left out, the draft.')),
  }),
  output: closed({ comparison: VersionComparison }),
  handler: async (call, input) => ({ comparison: await compareVersions(call, input) }),
})
