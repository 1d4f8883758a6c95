import type { TestOrganization } from '../test/helpers/api.ts'

/** Who lets crowds in. */
export const ACTOR = { kind: 'system' as const, id: 'faults', name: 'faults' }

/** Publishes steps one after the other, as a user would; answers the id of the workflow. */
export async function publishWorkflow(
  organization: TestOrganization,
  steps: readonly { id: string }[],
): Promise<string> {
  const { workflow } = await organization.data('create_workflow', { name: 'Series' })
  await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    expectedUpdatedAt: workflow.updatedAt,
    steps,
    edges: steps.slice(1).map(({ id }, index) => ({ from: steps[index]?.id, to: id })),
  })
  const answer = await organization.confirmed('publish_workflow', { workflowId: workflow.id })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return workflow.id
}
