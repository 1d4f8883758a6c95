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

const workflowId = Type.String({ description: 'The id of a workflow, wf_….' })
const expectedUpdatedAt = Type.String({
  description: 'The updatedAt that get_workflow gave; when it is not the current one, the write is refused.',
})
const workflowOnly = closed({ workflow: Workflow })
const canceledRuns = Type.Integer({
  description:
    'Runs that are canceled. If there are more than a thousand, the others are canceled in the background, within minutes.',
})

export const listWorkflows = defineTool({
  name: 'list_workflows',
  title: 'List workflows',
  description: 'Lists workflows, newest first, with status, published version and how many are in them.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({
    limit: limitOf(20),
    query: Type.Optional(
      Type.String({ maxLength: 200, description: 'A part of the name, in any letter case.' }),
    ),
  }),
  output: listOf('workflows', WorkflowSummary),
  handler: listAutomations,
})

export const getWorkflow = defineTool({
  name: 'get_workflow',
  title: 'Get a workflow',
  description:
    'Reads a workflow: draft graph, settings, goals, published version, and how it does: entries, where active runs ' +
    'stand, conversions, emails, holdouts. Read it right before a draft write and send its updatedAt along; ' +
    'get_campaign reads the email of an EMAIL step.',
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
    'Makes an empty workflow in DRAFT. Configure it with configure_workflow_draft and publish it before anybody can enter.',
  group: 'workflows',
  effect: 'draft',
  permission: 'workflows',
  input: closed({ name: Type.String({ description: 'What people call it, such as "Welcome series".' }) }),
  output: workflowOnly,
  handler: async (call, { name }) => ({ workflow: await createAutomation(call, name) }),
})

/** Members around the content of an email in a list of steps: steps, step, config; a definition is one more. */
const DEPTH_OF_CONTENT = 3

export const configureWorkflowDraft = defineTool({
  name: 'configure_workflow_draft',
  title: 'Configure a workflow draft',
  description:
    'Replaces the whole draft graph in one piece and makes or updates the internal email of each EMAIL step; settings ' +
    'and successGoals that are left out stay. Publishes and sends nothing. get_skill with type workflow describes the language.',
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
    'Replaces the draft graph with a complete definition {steps, edges} and leaves settings and goals alone. A campaign ' +
    'of another workflow, or a broadcast, is copied into an email of this one.',
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
    'Makes the draft an immutable version that subscribers enter from now on; runs under way stay on theirs. Without ' +
    'activate, a first publish goes live and any later one keeps the status. Needs a confirmation.',
  group: 'workflows',
  effect: 'impact',
  permission: 'workflows',
  input: closed({
    workflowId,
    activate: Type.Optional(
      Type.Boolean({ description: 'true: live after it. false: paused after it. Left out: as it is now.' }),
    ),
  }),
  output: closed({
    workflow: Workflow,
    version: closed({ id: Type.String(), number: Type.Integer() }),
    resumedRuns: Type.Integer(),
    webhookSecret: Type.Optional(
      Type.String({ description: 'Where a WEBHOOK step stands: what the receiver checks signatures with.' }),
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
    'Sets a published workflow to ACTIVE, PAUSED (nobody enters, no step runs, waits go on counting) or ARCHIVED (its ' +
    'runs are canceled; it can only become PAUSED again). ACTIVE and ARCHIVED need a confirmation.',
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
    'Deletes a draft that was never published, with its emails. A published workflow is archived and its runs are canceled. Needs a confirmation.',
  group: 'workflows',
  effect: 'impact',
  permission: 'workflows',
  input: closed({ workflowId }),
  output: closed({
    workflowId: Type.String(),
    deleted: Type.Boolean({ description: 'It is gone.' }),
    archived: Type.Boolean({ description: 'It is in the archive.' }),
    canceledRuns,
  }),
  summarize: (call, input) => summarizeDeletion(call, input.workflowId),
  handler: (call, input) => deleteAutomation(call, input.workflowId),
})
