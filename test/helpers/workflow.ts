import type { TestOrganization } from './api.ts'
import { eventually } from './eventually.ts'

/** A step as the tools accept it. */
type GivenStep = { id: string; type?: string; config?: object; onError?: string }

/** Optional members of a published workflow. Without edges, its steps are in sequence. */
export type WorkflowOptions = {
  name?: string
  settings?: object
  edges?: readonly object[]
  successGoals?: readonly object[]
}

/** Publishes a workflow through the tools, as a user does. Returns its id. */
export async function publishWorkflow(
  organization: TestOrganization,
  steps: readonly GivenStep[],
  { name = 'Series', settings, edges = chained(steps), successGoals }: WorkflowOptions = {},
): Promise<string> {
  const { workflow } = await organization.data('create_workflow', { name })
  await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    steps,
    edges,
    ...(settings && { settings }),
    ...(successGoals && { successGoals }),
  })
  const answer = await organization.confirmed('publish_workflow', { workflowId: workflow.id })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return workflow.id
}

/** Fast-forwards a run as clients do: while the outcome is unknown, repeats the call with the same step. */
export async function fastForward(
  organization: TestOrganization,
  input: { expectedStepId: string } & Record<string, unknown>,
) {
  return await eventually('the run to move', () =>
    organization.data('fast_forward_workflow_subscriber', input),
  )
}

function chained(steps: readonly GivenStep[]): object[] {
  return steps.slice(1).map(({ id }, index) => ({ from: steps[index]?.id, to: id }))
}
