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

const groupId = Type.String({ description: 'The id of a workflow group, grp_….' })
const name = Type.String({ description: `1 to ${GROUP_LIMITS.name} characters on one line.` })
const conflictStrategy = oneOf(CONFLICT_STRATEGIES, {
  description:
    'Who gets in when a subscriber is in another workflow of the group. FIRST_WINS: the newcomer is skipped. LAST_WINS: ' +
    'the earlier run is canceled. PRIORITY: the workflow of higher settings.priority. QUEUE: the newcomer waits.',
})
const groupOnly = closed({ group: WorkflowGroup })

export const listWorkflowGroups = defineTool({
  name: 'list_workflow_groups',
  title: 'List workflow groups',
  description: 'Lists the groups with their conflict strategy and the workflows assigned to each, by name.',
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
    'Reads a group: conflict strategy, assigned workflows, and the updatedAt that deleting it asks for.',
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
    'Makes a group of which a subscriber is in one workflow at a time. A group of the same name and strategy is answered as it is; assign workflows with set_workflow_group.',
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
    'Renames a group or changes how conflicts are decided from now on; what is left out stays. maxQueueAge null lets people queue without end.',
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
    'Assigns a workflow to a group, or detaches it with groupId null. Refused while somebody has active runs in it and in another workflow of the group.',
  group: 'workflows',
  effect: 'write',
  permission: 'workflows',
  input: closed({
    workflowId: Type.String({ description: 'The id of a workflow, wf_….' }),
    groupId: nullable(groupId),
  }),
  output: closed({ workflowId: Type.String(), group: nullable(WorkflowGroup) }),
  handler: (call, input) => assignGroup(call, input.workflowId, input.groupId),
})

export const deleteWorkflowGroup = defineTool({
  name: 'delete_workflow_group',
  title: 'Delete a workflow group',
  description:
    'Deletes a group for good. Read it right before and send its updatedAt; refused while workflows are assigned to it. Needs a confirmation.',
  group: 'workflows',
  effect: 'impact',
  permission: 'workflows',
  input: closed({
    groupId,
    expectedUpdatedAt: Type.String({ description: 'The updatedAt that get_workflow_group gave.' }),
  }),
  output: closed({ groupId: Type.String() }),
  summarize: (call, input) => summarizeGroupDeletion(call, input.groupId, input.expectedUpdatedAt),
  handler: async (call, input) => {
    await deleteGroup(call, input.groupId, input.expectedUpdatedAt)
    return { groupId: input.groupId }
  },
})
