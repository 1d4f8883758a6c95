import { Failure, refuse } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { encodeId } from '../../ids.ts'
import { readEmail } from '../addresses.ts'
import { enqueueMessages, type MessageSource } from '../emails/messages.ts'
import { sizeFault } from '../emails/size.ts'
import { refuseBacklog } from '../emails/transactional.ts'
import { withSnippets } from '../library/carried-content.ts'
import { type CampaignRow, findCampaign, titleOf } from './records.ts'
import { compileCampaign } from './render.ts'
import { senderFault, senderOf } from './sender.ts'

/** An accepted test email. */
export type SentTest = { id: string; email: string }

/**
 * Sends the current content of a campaign as a test to a few addresses, which need not be subscribers. Nothing is
 * tracked: variables show their fallbacks, conditional content shows, links are direct, and the unsubscribe link is a
 * sample.
 */
export async function sendTest(
  call: Call,
  campaignId: string,
  addresses: readonly string[],
): Promise<SentTest[]> {
  const campaign = await findCampaign(call, campaignId)
  const emails = addresses.map((address, index) => readEmail(address, `emails[${index}]`))
  refuseTwice(emails)
  const sender = await senderOf(call, campaign)
  const fault = senderFault(sender)
  if (fault !== null || sender === null) {
    throw new Failure(
      sender === null ? 'WRONG_STATE' : 'DOMAIN_NOT_VERIFIED',
      `The campaign ${titleOf(campaign)} cannot be sent as a test: ${fault}.`,
    )
  }
  const source = await sourceOf(call, campaign)
  const compiled = await compileCampaign(call, { ...campaign, content: source.content }, { isFrozen: true })
  const size = sizeFault(compiled)
  if (size !== null) {
    throw new Failure('WRONG_STATE', `The campaign ${titleOf(campaign)} cannot be sent as a test: ${size}.`)
  }
  await refuseBacklog(call)
  const accepted = await enqueueMessages(
    call,
    emails.map((recipient) => ({
      class: 'TEST',
      marketing: !campaign.transactional,
      subscriberId: null,
      recipient,
      fromName: sender.name,
      fromEmail: sender.email,
      stoodInFor: sender.stoodInFor,
      replyTo: campaign.replyTo ?? sender.replyTo,
      tracking: false,
      source,
    })),
  )
  return accepted.map(({ id }, index) => ({ id: encodeId('eml', id), email: emails[index] ?? '' }))
}

function refuseTwice(emails: readonly string[]): void {
  const keys = emails.map((email) => email.toLowerCase())
  const again = keys.findIndex((key, index) => keys.indexOf(key) < index)
  if (again !== -1) refuse(`emails[${again}]`, 'is in the list already; name each address once.')
}

/** Copies the content with its snippets, so that later edits do not change a queued test. */
async function sourceOf(call: Call, campaign: CampaignRow): Promise<MessageSource> {
  const { contentType, subject, preview } = campaign
  const content = await withSnippets(call, contentType, campaign.content)
  return { subject: `[Test] ${subject}`, content, contentType, preview }
}
