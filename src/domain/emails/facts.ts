import { encodeId } from '../../ids.ts'

/** The records an email belongs to; ids are uuids, except the step's. */
export type EmailOrigin = {
  messageId: string
  campaignId: string | null
  automationId: string | null
  runId: string | null
  stepId: string | null
}

/** Returns the facts that every event of an email contains, as TypeIDs. */
export function emailFacts(email: EmailOrigin): Record<string, unknown> {
  const { messageId, campaignId, automationId, runId, stepId } = email
  return {
    emailId: encodeId('eml', messageId),
    ...(campaignId && { campaignId: encodeId('cmp', campaignId) }),
    ...(automationId && { workflowId: encodeId('wf', automationId) }),
    ...(runId && { runId: encodeId('run', runId) }),
    ...(stepId && { stepId }),
  }
}
