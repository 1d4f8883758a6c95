import Type from 'typebox'

import { Duration } from '../../schema/automation-parts.ts'
import { closed, nullable, oneOf } from '../../schema/define.ts'
import { CONFLICT_STRATEGIES, GROUP_LIMITS, WorkflowGroup } from '../../schema/workflow-group.ts'
import { defineTool } from '../catalogue/tool.ts'
import { assignGroup } from '../domain/automations/groups/group-assignment.ts'
import {
  createGroup,
  deleteGroup,
  getGroup,
  listGroups,
  summarizeGroupDeletion,
  updateGroup,
} from '../domain/automations/groups/groups.ts'

const groupId = Type.String({ description: 'The id of a workflow group (`grp_…`).' })
const name = Type.String({ description: `The name, 1 to ${GROUP_LIMITS.name} characters on one line.` })
const conflictStrategy = oneOf(CONFLICT_STRATEGIES, {
  description:
    'The rule for a subscriber who enters a workflow while they are in another workflow of the group. FIRST_WINS: the new run is skipped. LAST_WINS: the earlier run is canceled. PRIORITY: the workflow with the higher `settings.priority` wins. QUEUE: the new run waits.',
})
const groupOnly = closed({ group: WorkflowGroup })

export const listWorkflowGroups = defineTool({
  name: 'list_workflow_groups',
  title: 'List workflow groups',
  description:
    'Returns the workflow groups in order of their names, with the conflict strategy and the assigned workflows of each.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({}),
  output: closed({ groups: Type.Array(WorkflowGroup) }),
  handler: async (call) => ({ groups: await listGroups(call) }),
})

export const getWorkflowGroup = defineTool({
  name: 'get_workflow_group',
  title: 'Get a workflow group',
  description:
    'Returns a workflow group with its conflict strategy, its assigned workflows, and the `updatedAt` that `delete_workflow_group` requires.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({ groupId }),
  output: groupOnly,
  handler: async (call, input) => ({ group: await getGroup(call, input.groupId) }),
})

export const createWorkflowGroup = defineTool({
  name: 'create_workflow_group',
  title: 'Create a workflow group',
  description:
    'Creates a workflow group: a subscriber can be in only one workflow of a group at a time. If a group with the same name and settings exists, returns it unchanged. Assign workflows with `set_workflow_group`.',
  group: 'workflows',
  effect: 'write',
  permission: 'workflows',
  input: closed({ name, conflictStrategy, maxQueueAge: Type.Optional(Duration) }),
  output: groupOnly,
  handler: async (call, input) => ({ group: await createGroup(call, input) }),
})

export const updateWorkflowGroup = defineTool({
  name: 'update_workflow_group',
  title: 'Update a workflow group',
  description:
    'Changes the name, the conflict strategy or the queue limit of a group; omitted values stay. A new strategy applies to conflicts from now on. With `maxQueueAge` null, runs may wait in the queue without limit. Returns the group.',
  group: 'workflows',
  effect: 'write',
  permission: 'workflows',
  input: closed({
    groupId,
    name: Type.Optional(name),
    conflictStrategy: Type.Optional(conflictStrategy),
    maxQueueAge: Type.Optional(nullable(Duration)),
  }),
  output: groupOnly,
  handler: async (call, { groupId: id, ...change }) => ({ group: await updateGroup(call, id, change) }),
})

export const setWorkflowGroup = defineTool({
  name: 'set_workflow_group',
  title: 'Set the group of a workflow',
  description:
    'Assigns a workflow to a group, or removes it from its group with `groupId` null. Refused while a subscriber has active runs both in this workflow and in another workflow of the group. Returns the group.',
  group: 'workflows',
  effect: 'write',
  permission: 'workflows',
  input: closed({
    workflowId: Type.String({ description: 'The id of the workflow (`wf_…`).' }),
    groupId: nullable(groupId),
  }),
  output: closed({ workflowId: Type.String(), group: nullable(WorkflowGroup) }),
  handler: (call, input) => assignGroup(call, input.workflowId, input.groupId),
})

export const deleteWorkflowGroup = defineTool({
  name: 'delete_workflow_group',
  title: 'Delete a workflow group',
  description:
    'Permanently deletes a workflow group. Call `get_workflow_group` right before and send its `updatedAt`. Refused while workflows are assigned to the group. Requires a confirmation code.',
  group: 'workflows',
  effect: 'impact',
  permission: 'workflows',
  input: closed({
    groupId,
    expectedUpdatedAt: Type.String({ description: 'The `updatedAt` from `get_workflow_group`.' }),
  }),
  output: closed({ groupId: Type.String() }),
  summarize: (call, input) => summarizeGroupDeletion(call, input.groupId, input.expectedUpdatedAt),
  handler: async (call, input) => {
    await deleteGroup(call, input.groupId, input.expectedUpdatedAt)
    return { groupId: input.groupId }
  },
})
