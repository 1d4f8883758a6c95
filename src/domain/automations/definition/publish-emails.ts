import { sql } from 'kysely'

import type { Definition } from '../../../../schema/automation.ts'
import type { ContentType, DomainStatus } from '../../../../schema/values.ts'
import type { Fault } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { type CompiledEmail, compileContent } from '../../../content/compile.ts'
import { array, rows } from '../../../database.ts'
import { readId } from '../../../ids.ts'
import { senderOf } from '../../campaigns/sender.ts'
import { sizeFault } from '../../emails/size.ts'
import { isEmptyContent, withSnippets } from '../../library/carried-content.ts'
import type { FrozenEmail } from './versions.ts'

type EmailRow = {
  id: string
  subject: string
  preview: string | null
  content: unknown
  contentType: ContentType
  replyTo: string | null
  senderId: string | null
  senderName: string
  senderEmail: string
  senderReplyTo: string | null
  domain: string
  domainStatus: DomainStatus
  canLeave: boolean
}

/**
 * Returns the email of each EMAIL step as publishing freezes it, by step id, and a fault for each missing subject,
 * content or sender on a verified domain, and for each email that is too large. An email without a sender gets the
 * organization's default sender.
 */
export async function freezeEmails(
  call: Call,
  automationId: string,
  definition: Definition,
): Promise<{ emails: Record<string, FrozenEmail>; faults: Fault[] }> {
  const emails = new Map<string, FrozenEmail>()
  const faults: Fault[] = []
  const stored = await readEmails(call, automationId, definition)
  for (const [position, step] of definition.steps.entries()) {
    if (step.type !== 'EMAIL') continue
    const path = `steps[${position}].config`
    const email = stored.get(readId('cmp', step.config.campaignId ?? '') ?? '')
    if (!email) {
      const message = 'the step has no email any more; configure the draft again'
      faults.push({ stepId: step.id, path: `${path}.campaignId`, message })
      continue
    }
    faults.push(...emailFaults(email, step.id, path))
    const content = await withSnippets(call, email.contentType, email.content)
    const whole = frozen({ ...email, content }, step.config.transactional)
    const size = sizeFault(compileFrozen(whole))
    if (size !== null) faults.push({ stepId: step.id, path: `${path}.content`, message: size })
    emails.set(step.id, whole)
  }
  return { emails: Object.fromEntries(emails), faults }
}

/** Returns a fault for each NOTIFY step while the default sender, from which it sends, is missing or may not send. */
export async function noticeFaults(call: Call, { steps }: Definition): Promise<Fault[]> {
  if (!steps.some(({ type }) => type === 'NOTIFY')) return []
  const sender = await senderOf(call, { senderId: null })
  if (sender?.canLeave) return []
  const message = sender
    ? `it sends from the default sender ${sender.email} on ${sender.domain}, which is ${sender.domainStatus}; verify the domain`
    : 'it sends from the default sender, and the organization has none; make one with create_email_sender'
  return steps.flatMap(({ id, type }, position) =>
    type === 'NOTIFY' ? [{ stepId: id, path: `steps[${position}]`, message }] : [],
  )
}

async function readEmails(
  { em, organization }: Call,
  automationId: string,
  definition: Definition,
): Promise<Map<string, EmailRow>> {
  const ids = definition.steps.flatMap((step) =>
    step.type === 'EMAIL' ? (readId('cmp', step.config.campaignId ?? '') ?? []) : [],
  )
  if (ids.length === 0) return new Map()
  const found = await rows<EmailRow>(
    em,
    sql`select campaign.id, campaign.subject, campaign.preview, campaign.content, campaign.content_type as "contentType",
        campaign.reply_to as "replyTo", sender.id as "senderId", sender.name as "senderName",
        sender.email as "senderEmail", sender.reply_to as "senderReplyTo", domain.domain,
        domain.status as "domainStatus", exists (
          select from leave_from(campaign.organization_id, sender.email, domain.status)) as "canLeave"
      from campaign
      left join sender on sender.organization_id = campaign.organization_id
        and (sender.id = campaign.sender_id or (campaign.sender_id is null and sender.is_default))
      left join domain on domain.organization_id = sender.organization_id and domain.id = sender.domain_id
      where campaign.organization_id = ${organization.id} and campaign.automation_id = ${automationId}
        and campaign.id = any(${array(ids, 'uuid')})`,
  )
  return new Map(found.map((email) => [email.id, email]))
}

function emailFaults(email: EmailRow, stepId: string, path: string): Fault[] {
  const faults: Fault[] = []
  const fault = (member: string, message: string) =>
    faults.push({ stepId, path: `${path}.${member}`, message })
  if (email.subject.trim() === '') fault('subject', 'the email has no subject; write one to publish it')
  if (isEmptyContent(email.content)) fault('content', 'the email has no content; write some to publish it')
  if (email.senderId === null) {
    fault(
      'senderId',
      'the email has no sender and the organization has no default one; make one with create_email_sender',
    )
  } else if (!email.canLeave) {
    fault(
      'senderId',
      `the sender ${email.senderEmail} is on ${email.domain}, which is ${email.domainStatus}; verify the domain or choose a sender on a verified one`,
    )
  }
  return faults
}

/**
 * Compiles a frozen email for filling. With `knownVariables` (custom fields), warns of variables that are not among
 * them.
 */
export function compileFrozen(
  { contentType, content, subject, preview, transactional }: FrozenEmail,
  knownVariables?: Iterable<string>,
): CompiledEmail {
  return compileContent({
    contentType,
    source: content,
    subject,
    preview,
    kind: transactional ? 'transactional' : 'marketing',
    ...(knownVariables && { knownVariables }),
  })
}

function frozen(email: EmailRow, transactional: boolean): FrozenEmail {
  const { id, subject, preview, content, contentType, senderId, senderName, senderEmail } = email
  return {
    campaignId: id,
    subject,
    preview,
    content,
    contentType,
    sender: senderId === null ? null : { id: senderId, name: senderName, email: senderEmail },
    replyTo: email.replyTo ?? email.senderReplyTo,
    transactional,
  }
}
