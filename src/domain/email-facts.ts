import { encodeId } from '../ids.ts'

/** What an email belongs to, by uuid. */
export type EmailOrigin = {
  messageId: string
  campaignId: string | null
  automationId: string | null
  runId: string | null
  stepId: string | null
}

/** What every event of an email says of it, as TypeIDs. */
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
