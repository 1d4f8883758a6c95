import Type from 'typebox'

import { SuccessGoalsInput } from '../../schema/automation-goals.ts'
import { EdgeList, GraphInput, SettingsInput, StepList } from '../../schema/automation.ts'
import { closed, limitOf, listOf, oneOf } from '../../schema/define.ts'
import { DOCUMENT_LIMITS } from '../../schema/document.ts'
import { WorkflowStatistics } from '../../schema/workflow-statistics.ts'
import { InboundWebhook, SETTABLE_STATUSES, Workflow, WorkflowSummary } from '../../schema/workflow.ts'
import { defineTool } from '../catalogue/tool.ts'
import { saveDraft } from '../domain/automations/definition/draft.ts'
import { publish, summarizePublish } from '../domain/automations/definition/publish.ts'
import { createAutomation, getAutomation, listAutomations } from '../domain/automations/definition/records.ts'
import {
  deleteAutomation,
  summarizeDeletion,
  summarizeStatus,
  updateStatus,
} from '../domain/automations/definition/status.ts'
import { readStatistics } from '../domain/automations/runs/statistics.ts'

const workflowId = Type.String({ description: 'The id of the workflow (`wf_…`).' })
const expectedUpdatedAt = Type.String({
  description:
    'The `updatedAt` from `get_workflow`. If the workflow has changed since, the write is refused.',
})
const workflowOnly = closed({ workflow: Workflow })
const canceledRuns = Type.Integer({
  description:
    'The number of canceled runs. If there are more than a thousand, the others are canceled in the background within minutes.',
})

export const listWorkflows = defineTool({
  name: 'list_workflows',
  title: 'List workflows',
  description:
    'Returns workflows, newest first, with the status, the published version and the number of subscribers in each.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({
    limit: limitOf(20),
    query: Type.Optional(
      Type.String({ maxLength: 200, description: 'Text to find in the name; letter case is ignored.' }),
    ),
  }),
  output: listOf('workflows', WorkflowSummary),
  handler: listAutomations,
})

export const getWorkflow = defineTool({
  name: 'get_workflow',
  title: 'Get a workflow',
  description:
    'Returns a workflow with its draft graph, settings, goals and published version, and its statistics: entries, the steps of active runs, conversions, emails and holdouts. Call it right before writing a draft and send its `updatedAt` along. `get_campaign` returns the email of an EMAIL step.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({ workflowId }),
  output: closed({ workflow: Workflow, statistics: WorkflowStatistics }),
  handler: async (call, input) => {
    const workflow = await getAutomation(call, input.workflowId)
    return { workflow, statistics: await readStatistics(call, workflow) }
  },
})

export const createWorkflow = defineTool({
  name: 'create_workflow',
  title: 'Create a workflow',
  description:
    'Creates an empty workflow with the status DRAFT and returns it. Configure it with `configure_workflow_draft` and publish it with `publish_workflow` before subscribers can enter.',
  group: 'workflows',
  effect: 'draft',
  permission: 'workflows',
  input: closed({
    name: Type.String({ description: 'The name of the workflow, such as "Welcome series".' }),
  }),
  output: workflowOnly,
  handler: async (call, { name }) => ({ workflow: await createAutomation(call, name) }),
})

/** Members around the content of an email in a list of steps: steps, step, config; a definition is one more. */
const DEPTH_OF_CONTENT = 3

export const configureWorkflowDraft = defineTool({
  name: 'configure_workflow_draft',
  title: 'Configure a workflow draft',
  description:
    'Replaces the whole draft graph. For each EMAIL step, its internal email is created or updated. Omitted `settings` and `successGoals` keep their values. Publishes and sends nothing. `get_skill` with type workflow describes the workflow language. Returns the workflow.',
  group: 'workflows',
  effect: 'draft',
  permission: 'workflows',
  input: closed({
    workflowId,
    expectedUpdatedAt,
    settings: Type.Optional(SettingsInput),
    steps: StepList,
    edges: EdgeList,
    successGoals: Type.Optional(SuccessGoalsInput),
  }),
  output: workflowOnly,
  bodyLimit: DOCUMENT_LIMITS.bytes,
  jsonDepth: DOCUMENT_LIMITS.jsonDepth + DEPTH_OF_CONTENT,
  handler: async (call, { steps, edges, ...change }) => ({
    workflow: await saveDraft(call, { ...change, definition: { steps, edges } }),
  }),
})

export const updateWorkflowDraft = defineTool({
  name: 'update_workflow_draft',
  title: 'Update a workflow draft',
  description:
    'Replaces the draft graph with a complete definition {steps, edges}; settings and goals keep their values. A step that names a broadcast, or a campaign of another workflow, gets a copy of it as its own email. Returns the workflow.',
  group: 'workflows',
  effect: 'draft',
  permission: 'workflows',
  input: closed({
    workflowId,
    expectedUpdatedAt,
    definition: GraphInput,
  }),
  output: workflowOnly,
  bodyLimit: DOCUMENT_LIMITS.bytes,
  jsonDepth: DOCUMENT_LIMITS.jsonDepth + DEPTH_OF_CONTENT + 1,
  handler: async (call, input) => ({ workflow: await saveDraft(call, { ...input, path: 'definition' }) }),
})

export const publishWorkflow = defineTool({
  name: 'publish_workflow',
  title: 'Publish a workflow',
  description:
    'Publishes the draft as an immutable version, which subscribers enter from now on. Active runs stay on their version. Without `activate`, the first publish activates the workflow and later ones keep its status. Requires a confirmation code.',
  group: 'workflows',
  effect: 'impact',
  permission: 'workflows',
  input: closed({
    workflowId,
    activate: Type.Optional(
      Type.Boolean({
        description:
          'Whether the workflow is ACTIVE (true) or PAUSED (false) afterwards. If omitted, the first publish activates it and later ones keep its status.',
      }),
    ),
  }),
  output: closed({
    workflow: Workflow,
    version: closed({ id: Type.String(), number: Type.Integer() }),
    resumedRuns: Type.Integer(),
    webhookSecret: Type.Optional(
      Type.String({
        description:
          'The secret with which receivers of WEBHOOK steps check signatures. Only present if the workflow has a WEBHOOK step.',
      }),
    ),
    inboundWebhooks: Type.Array(InboundWebhook),
  }),
  summarize: (call, input) => summarizePublish(call, input.workflowId, input.activate),
  handler: (call, input) => publish(call, input.workflowId, input.activate),
  kept: ({ workflow, version, resumedRuns, inboundWebhooks }) => ({
    workflow,
    version,
    resumedRuns,
    inboundWebhooks: inboundWebhooks.map((each) => ({ ...each, secret: null })),
  }),
})

export const updateWorkflowStatus = defineTool({
  name: 'update_workflow_status',
  title: 'Set the status of a workflow',
  description:
    'Sets the status of a published workflow. ACTIVE: subscribers enter and runs continue. PAUSED: nobody enters and no step is executed, but waiting times go on. ARCHIVED: its runs are canceled, and it can only become PAUSED again. ACTIVE and ARCHIVED require a confirmation code.',
  group: 'workflows',
  effect: 'impact',
  permission: 'workflows',
  input: closed({ workflowId, status: oneOf(SETTABLE_STATUSES) }),
  output: closed({ workflow: Workflow, canceledRuns, resumedRuns: Type.Integer() }),
  confirm: ({ status }) => status !== 'PAUSED',
  summarize: (call, input) => summarizeStatus(call, input.workflowId, input.status),
  handler: (call, input) => updateStatus(call, input.workflowId, input.status),
})

export const deleteWorkflow = defineTool({
  name: 'delete_workflow',
  title: 'Delete a workflow',
  description:
    'Deletes a workflow that was never published, together with its emails. A published workflow is archived instead, and its runs are canceled. Requires a confirmation code.',
  group: 'workflows',
  effect: 'impact',
  permission: 'workflows',
  input: closed({ workflowId }),
  output: closed({
    workflowId: Type.String(),
    deleted: Type.Boolean({ description: 'Whether the workflow was deleted.' }),
    archived: Type.Boolean({ description: 'Whether the workflow was archived.' }),
    canceledRuns,
  }),
  summarize: (call, input) => summarizeDeletion(call, input.workflowId),
  handler: (call, input) => deleteAutomation(call, input.workflowId),
})
