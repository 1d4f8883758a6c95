import Type from 'typebox'

import { Filters } from '../../schema/audience.ts'
import { closed, cursor, limitOf, nullable, oneOf, pageOf } from '../../schema/define.ts'
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

const workflowId = Type.String({ description: 'The id of the workflow (`wf_…`).' })

export const addSubscriberToWorkflow = defineTool({
  name: 'add_subscriber_to_workflow',
  title: 'Add a subscriber to a workflow',
  description:
    'Adds one subscriber to an ACTIVE workflow by hand and returns the new run. The re-entry rules apply. A run that begins at the trigger (the manual trigger, or else the first one) must also match its filters.',
  group: 'workflows',
  effect: 'write',
  permission: 'workflows',
  input: closed({
    workflowId,
    ...subscriberChoice,
    context: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: 'Data for the run, which filters read as `entry.<path>`.',
      }),
    ),
    startStepId: Type.Optional(
      Type.String({
        description:
          'The id of a step of the published version at which the run begins, instead of the trigger.',
      }),
    ),
  }),
  output: closed({ run: Run }),
  handler: async (call, input) => ({ run: await enterByHand(call, input) }),
})

export const addSubscribersToWorkflow = defineTool({
  name: 'add_subscribers_to_workflow',
  title: 'Add many subscribers to a workflow',
  description:
    'Adds all subscribers who match `filters` or are in a segment to an ACTIVE workflow. Returns how many match and continues in the background. The re-entry rules, the rules of the workflow group, and the filters of the trigger (the manual trigger, or else the first one) apply. Requires a confirmation code.',
  group: 'workflows',
  effect: 'impact',
  permission: 'workflows',
  input: closed({
    workflowId,
    filters: Type.Optional(Filters),
    segmentId: Type.Optional(
      Type.String({ description: 'The id of a segment (`seg_…`). Send this or `filters`, not both.' }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 10_000_000,
        description:
          'The maximum number of matching subscribers to process. Those who may not enter count as well.',
      }),
    ),
  }),
  output: closed({
    count: Type.Integer({ description: 'The number of subscribers that match now.' }),
    temporalUrl: nullable(
      Type.String({
        description:
          'The address in the Temporal Web UI that shows the progress. Null if there is nothing to do, or if the installation has no Web UI address.',
      }),
    ),
  }),
  summarize: summarizeMany,
  handler: enterMany,
})

export const removeSubscriberFromWorkflow = defineTool({
  name: 'remove_subscriber_from_workflow',
  title: 'Remove a subscriber from a workflow',
  description:
    'Cancels the active runs of one subscriber in a workflow, even during a wait. Returns the canceled runs.',
  group: 'workflows',
  effect: 'write',
  permission: 'workflows',
  input: closed({
    workflowId,
    ...subscriberChoice,
    reason: Type.Optional(
      Type.String({ maxLength: 200, description: 'The reason, which is kept with the event.' }),
    ),
  }),
  output: closed({
    runs: Type.Array(Run, { description: 'The runs that were canceled. An empty list is not an error.' }),
  }),
  handler: async (call, input) => ({ runs: await removeFromWorkflow(call, input) }),
})

export const getSubscriberWorkflowRuns = defineTool({
  name: 'get_subscriber_workflow_runs',
  title: "List a subscriber's workflow runs",
  description:
    'Returns the workflow runs of one subscriber, newest first, with the status, the current step and the next step of each. Continue with `nextCursor`.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({
    ...subscriberChoice,
    workflowId: Type.Optional(workflowId),
    status: Type.Optional(oneOf(RUN_STATUSES)),
    limit: limitOf(20),
    cursor,
  }),
  output: pageOf('runs', Run),
  handler: listRuns,
})

export const fastForwardWorkflowSubscriber = defineTool({
  name: 'fast_forward_workflow_subscriber',
  title: 'Fast-forward a subscriber',
  description:
    'Ends the WAIT or WAIT_UNTIL step in which a run is waiting, and returns once the run has moved on. A wait for an event is left by its timeout port. Send `expectedStepId`, so that a repeated call cannot end the following wait. Returns the run, the step it left and the step it is in now.',
  group: 'workflows',
  effect: 'write',
  permission: 'workflows',
  input: closed({
    workflowId,
    ...subscriberChoice,
    runId: Type.Optional(
      Type.String({
        description: 'The id of the run (`run_…`). Required if several runs of the subscriber are waiting.',
      }),
    ),
    expectedStepId: Type.Optional(
      Type.String({ description: 'The id of the step in which the run must be waiting.' }),
    ),
  }),
  output: closed({ run: Run, fromStep: StepReference, toStep: nullable(StepReference) }),
  handler: requestFastForward,
  settle: (call, _input, data) => settleFastForward(call, data),
})

export const getWorkflowRun = defineTool({
  name: 'get_workflow_run',
  title: 'Get a workflow run',
  description:
    'Returns one workflow run with its complete timeline (each step, its result and its time), its emails, its decisions not to act, its conversions, and what it is waiting for and until when.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({ runId: Type.String({ description: 'The id of the run (`run_…`).' }) }),
  output: RunStory,
  handler: (call, { runId }) => readStory(call, runId),
})

export const retryWorkflowRun = defineTool({
  name: 'retry_workflow_run',
  title: 'Retry a workflow run',
  description:
    'Retries a FAILED run of an ACTIVE workflow: the failed step is executed again, and no earlier step is repeated. Correct the cause first; `get_workflow_run` shows it. Returns the run.',
  group: 'workflows',
  effect: 'write',
  permission: 'workflows',
  input: closed({ runId: Type.String({ description: 'The id of the run (`run_…`).' }) }),
  output: closed({ run: Run }),
  handler: async (call, { runId }) => ({ run: await retryRun(call, runId) }),
})
