import type { TestOrganization } from './api.ts'
import { eventually } from './eventually.ts'

/** A step as the tools take it. */
type GivenStep = { id: string; type?: string; config?: object; onError?: string }

/** What a published workflow may differ by; without edges its steps follow one another. */
export type WorkflowOptions = {
  name?: string
  settings?: object
  edges?: readonly object[]
  successGoals?: readonly object[]
}

/** Publishes a workflow as a user would; answers its id. */
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

/** Fast-forwards as a client does: what is not known yet is asked again, by the name of the same step. */
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
