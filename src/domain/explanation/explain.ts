import type { Explanation } from '../../../schema/explanation.ts'
import { refuse } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { encodeId } from '../../ids.ts'
import { findCampaign } from '../campaigns/records.ts'
import type { SubscriberChoice } from '../subscribers/records.ts'
import { explainCampaign } from './campaign.ts'
import { findPerson } from './person.ts'
import { explainWorkflow } from './workflow.ts'

/** The input of explain_delivery: one person, and one campaign or workflow. */
export type Question = SubscriberChoice & { campaignId?: string | undefined; workflowId?: string | undefined }

/** Returns all reasons, in order, why a person got, did not get or would get an email (decisions, section 12). */
export async function explainDelivery(
  call: Call,
  { campaignId, workflowId, ...choice }: Question,
): Promise<Explanation> {
  if ((campaignId === undefined) === (workflowId === undefined)) {
    refuse('campaignId', 'or workflowId says what is asked about: send exactly one of them.')
  }
  const person = await findPerson(call, choice)
  if (workflowId !== undefined) return await explainWorkflow(call, person, workflowId)
  const campaign = await findCampaign(call, campaignId ?? '')
  const { automationId, stepId, subject } = campaign
  // The internal email of a step goes to everybody who reaches the step.
  if (automationId !== null && stepId !== null) {
    const email = { campaignId: campaign.id, stepId, name: subject }
    return await explainWorkflow(call, person, encodeId('wf', automationId), email)
  }
  return await explainCampaign(call, person, campaign)
}
