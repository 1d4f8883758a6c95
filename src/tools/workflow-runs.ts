import Type from 'typebox'

import { Filters } from '../../schema/audience.ts'
import { closed, limitOf, nullable, oneOf, pageOf } from '../../schema/define.ts'
import { Run, RunStory, StepReference } from '../../schema/run.ts'
import { subscriberChoice } from '../../schema/subscriber.ts'
import { RUN_STATUSES } from '../../schema/values.ts'
import { defineTool } from '../catalogue/tool.ts'
import { enterByHand } from '../domain/automations/entry/enter-by-hand.ts'
import { enterMany, summarizeMany } from '../domain/automations/entry/enter-many.ts'
import { retryRun } from '../domain/automations/runs/retry.ts'
import {
  removeFromWorkflow,
  requestFastForward,
  settleFastForward,
} from '../domain/automations/runs/run-control.ts'
import { listRuns } from '../domain/automations/runs/run-records.ts'
import { readStory } from '../domain/automations/runs/run-story.ts'

const workflowId = Type.String({ description: 'The id of the workflow (wf_…).' })

export const addSubscriberToWorkflow = defineTool({
  name: 'add_subscriber_to_workflow',
  title: 'Add a subscriber to a workflow',
  description:
    'Lets one subscriber enter an ACTIVE workflow by hand. Re-entry rules and the filters of the first trigger apply.',
  group: 'workflows',
  effect: 'write',
  permission: 'workflows',
  input: closed({
    workflowId,
    ...subscriberChoice,
    context: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: 'What filters read as entry.<path>.' }),
    ),
    startStepId: Type.Optional(
      Type.String({ description: 'A step of the published version to begin with, instead of its trigger.' }),
    ),
  }),
  output: closed({ run: Run }),
  handler: async (call, input) => ({ run: await enterByHand(call, input) }),
})

export const addSubscribersToWorkflow = defineTool({
  name: 'add_subscribers_to_workflow',
  title: 'Add many subscribers to a workflow',
  description:
    'Lets everybody who matches filters, or is in a segment, into an ACTIVE workflow: answers how many match and goes on in the background. Re-entry, groups and the filters of its manual or first trigger apply. Needs a confirmation.',
  group: 'workflows',
  effect: 'impact',
  permission: 'workflows',
  input: closed({
    workflowId,
    filters: Type.Optional(Filters),
    segmentId: Type.Optional(
      Type.String({ description: 'The id of a segment (seg_…), in place of filters.' }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 10_000_000,
        description: 'Ask for at most so many of them; who may not enter counts as well.',
      }),
    ),
  }),
  output: closed({
    count: Type.Integer({ description: 'How many match now.' }),
    temporalUrl: nullable(Type.String({ description: 'Where the Temporal Web UI shows how far it is.' })),
  }),
  summarize: summarizeMany,
  handler: enterMany,
})

export const removeSubscriberFromWorkflow = defineTool({
  name: 'remove_subscriber_from_workflow',
  title: 'Remove a subscriber from a workflow',
  description: 'Cancels the active runs of one subscriber in a workflow, also in the middle of a wait.',
  group: 'workflows',
  effect: 'write',
  permission: 'workflows',
  input: closed({
    workflowId,
    ...subscriberChoice,
    reason: Type.Optional(Type.String({ maxLength: 200, description: 'Kept with the event.' })),
  }),
  output: closed({
    runs: Type.Array(Run, { description: 'The runs that were canceled; an empty list is not an error.' }),
  }),
  handler: async (call, input) => ({ runs: await removeFromWorkflow(call, input) }),
})

export const getSubscriberWorkflowRuns = defineTool({
  name: 'get_subscriber_workflow_runs',
  title: "List a subscriber's workflow runs",
  description:
    'Lists the runs of one subscriber, newest first: status, where each stands and what comes next.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({
    ...subscriberChoice,
    workflowId: Type.Optional(workflowId),
    status: Type.Optional(oneOf(RUN_STATUSES)),
    limit: limitOf(20),
    cursor: Type.Optional(Type.String({ description: 'nextCursor of the page before.' })),
  }),
  output: pageOf('runs', Run),
  handler: listRuns,
})

export const fastForwardWorkflowSubscriber = defineTool({
  name: 'fast_forward_workflow_subscriber',
  title: 'Fast-forward a subscriber',
  description:
    'Expires the WAIT or WAIT_UNTIL a run stands in and answers after it moved on. A wait for an event leaves by its timeout port. Send expectedStepId so that a repeat can never expire the wait after it.',
  group: 'workflows',
  effect: 'write',
  permission: 'workflows',
  input: closed({
    workflowId,
    ...subscriberChoice,
    runId: Type.Optional(Type.String({ description: 'Which run (run_…), where several wait.' })),
    expectedStepId: Type.Optional(Type.String({ description: 'The step the run must be waiting in.' })),
  }),
  output: closed({ run: Run, fromStep: StepReference, toStep: nullable(StepReference) }),
  handler: requestFastForward,
  settle: (call, _input, data) => settleFastForward(call, data),
})

export const getWorkflowRun = defineTool({
  name: 'get_workflow_run',
  title: 'Get a workflow run',
  description:
    'One run with its whole timeline: each step it came to, what it decided, and when; its emails, decisions not to act, conversions, and what it waits for until when.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({ runId: Type.String({ description: 'The id of the run (run_…).' }) }),
  output: RunStory,
  handler: (call, { runId }) => readStory(call, runId),
})

export const retryWorkflowRun = defineTool({
  name: 'retry_workflow_run',
  title: 'Retry a workflow run',
  description:
    'Lets a FAILED run of an ACTIVE workflow go on: the step that failed is done once more, nothing before it is repeated. Put right what failed first; get_workflow_run shows it.',
  group: 'workflows',
  effect: 'write',
  permission: 'workflows',
  input: closed({ runId: Type.String({ description: 'The id of the run (run_…).' }) }),
  output: closed({ run: Run }),
  handler: async (call, { runId }) => ({ run: await retryRun(call, runId) }),
})
