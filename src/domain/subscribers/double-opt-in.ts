import { createHash } from 'node:crypto'

import { sql } from 'kysely'

import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { CONFIRM_VARIABLE } from '../../content/variables.ts'
import { execute, row } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { enqueueMessages, type MessageSource } from '../emails/messages.ts'
import { countEmail } from '../emails/quota.ts'
import { recordEvents } from '../events.ts'
import { CONSENT } from './consent.ts'

/** How many days the link in a confirmation email is valid. */
const CONFIRMATION_DAYS = 7

/**
 * The confirmation email of organizations without their own. It leaves out the name, which comes from a public form:
 * otherwise anybody could send their own words to strangers.
 */
export const STANDARD_CONFIRMATION = {
  subject: 'Please confirm your subscription',
  markdown: `Hello,

Somebody, hopefully you, asked {{org-name}} to send its news to {{email}}. Please confirm that this is what you want:

**[Confirm my subscription]({{${CONFIRM_VARIABLE}}})**

The link works for ${CONFIRMATION_DAYS} days. If it was not you, do nothing: you will not hear from us again.`,
} as const

type ConfirmationText = { subject: string; markdown: string }

type Sending = {
  email: string
  text: ConfirmationText | null
  sender: { name: string; email: string; stoodInFor: string | null; replyTo: string | null } | null
}

/**
 * Sends the confirmation email to a PENDING_CONFIRMATION subscriber, at most once an hour. `anew` ignores earlier
 * emails, which went to another address. Throws `WRONG_STATE` when no sender can send it.
 */
export async function askToConfirm(
  call: Call,
  subscriberId: string,
  { anew = false }: { anew?: boolean } = {},
): Promise<void> {
  const isDue = await execute(
    call.em,
    sql`update subscriber set confirmation_requested_at = now()
      where organization_id = ${call.organization.id} and id = ${subscriberId} and status = 'PENDING_CONFIRMATION'
        and (${anew} or confirmation_requested_at is null or confirmation_requested_at <= now() - interval '1 hour')`,
  )
  if (isDue === 0) return
  const { email, text, sender } = await readSending(call, subscriberId)
  if (!sender) {
    throw new Failure(
      'WRONG_STATE',
      'Double opt-in is on, and its confirmation email cannot be sent because no sender is on a verified domain; verify a domain and make a sender with create_email_sender, or send skipDoubleOptIn: true for people whose consent you have.',
    )
  }
  const { name: fromName, email: fromEmail, stoodInFor, replyTo } = sender
  await countEmail(call)
  await enqueueMessages(call, [
    {
      class: 'TRANSACTIONAL',
      marketing: false,
      tracking: false,
      subscriberId,
      recipient: email,
      fromName,
      fromEmail,
      stoodInFor,
      replyTo,
      source: sourceOf(text ?? STANDARD_CONFIRMATION),
    },
  ])
}

/** The confirmation behind a link as its page shows it; `source` is the confirmation email, hashed as evidence. */
export type PendingConfirmation = {
  organization: string
  email: string
  state: 'ask' | 'done' | 'late'
  source: MessageSource | null
}

/**
 * Returns the confirmation that an email asked for. Null when the subscriber is gone, has another address now, or is
 * neither PENDING_CONFIRMATION nor SUBSCRIBED. `lock` locks the subscriber's row.
 */
export async function findPending(
  { em, organization }: { em: Call['em']; organization: { id: string } },
  { messageId, subscriberId }: { messageId: string; subscriberId: string },
  options: { lock?: boolean } = {},
): Promise<PendingConfirmation | null> {
  return await row<PendingConfirmation>(
    em,
    sql`select organization.name as organization, subscriber.email, content.source,
        case when subscriber.status = 'SUBSCRIBED' then 'done'
          when message.created_at < now() - make_interval(days => ${CONFIRMATION_DAYS}::int) then 'late'
          else 'ask' end as state
      from message
      join subscriber on subscriber.organization_id = message.organization_id and subscriber.id = ${subscriberId}
        and subscriber.email_key = lower(message.recipient)
      join organization on organization.id = message.organization_id
      left join message_content content
        on content.organization_id = message.organization_id and content.message_id = message.id
      where message.organization_id = ${organization.id} and message.id = ${messageId}
        and subscriber.status in ('PENDING_CONFIRMATION', 'SUBSCRIBED')
      ${options.lock ? sql`for update of subscriber` : sql``}`,
  )
}

/** Facts about a confirmation that its event stores as evidence. */
export type Evidence = { ipAddress: string; userAgent: string }

/**
 * Subscribes the person who was asked, and stores the evidence in the event: the time, IP address, user agent, and a
 * hash of the text they agreed to. Repeated calls change nothing. Returns the same as `findPending`.
 */
export async function confirm(
  call: Call,
  link: { messageId: string; subscriberId: string },
  evidence: Evidence,
): Promise<PendingConfirmation | null> {
  const pending = await findPending(call, link, { lock: true })
  if (pending?.state !== 'ask') return pending
  const status = CONSENT.PENDING_CONFIRMATION.CONFIRM
  await execute(
    call.em,
    sql`update subscriber set status = ${status}, confirmed_at = now()
      where organization_id = ${call.organization.id} and id = ${link.subscriberId}`,
  )
  const confirmation = {
    ...evidence,
    emailId: encodeId('eml', link.messageId),
    textHash: pending.source && hashText(pending.source),
  }
  const data = { from: 'PENDING_CONFIRMATION', confirmation }
  await recordEvents(call, [{ subscriberId: link.subscriberId, type: 'SUBSCRIBED', data }])
  return { ...pending, state: 'done' }
}

/** Returns the email to send, with a confirmation link added when the text has none. */
function sourceOf({ subject, markdown }: ConfirmationText): MessageSource {
  const hasLink = new RegExp(`\\{\\{\\s*${CONFIRM_VARIABLE}\\s*[|}]`).test(markdown)
  const link = `\n\n**[Confirm my subscription]({{${CONFIRM_VARIABLE}}})**`
  return {
    subject,
    content: hasLink ? markdown : markdown + link,
    contentType: 'MARKDOWN',
    preview: null,
    confirms: true,
  }
}

function hashText({ subject, content }: MessageSource): string {
  return `sha256:${createHash('sha256')
    .update(`${subject}\n${String(content)}`)
    .digest('hex')}`
}

async function readSending({ em, organization }: Call, subscriberId: string): Promise<Sending> {
  const found = await row<Sending>(
    em,
    sql`select subscriber.email, organization.confirmation_email as text,
        (select jsonb_build_object('name', sender.name, 'email', leaving.email, 'stoodInFor', leaving.stood_in_for,
            'replyTo', coalesce(sender.reply_to, leaving.stood_in_for))
          from sender join domain on domain.organization_id = sender.organization_id and domain.id = sender.domain_id
          cross join lateral leave_from(sender.organization_id, sender.email, domain.status) leaving
          where sender.organization_id = organization.id
          order by leaving.stood_in_for is null desc, sender.is_default desc, sender.id limit 1) as sender
      from organization join subscriber on subscriber.organization_id = organization.id
      where organization.id = ${organization.id} and subscriber.id = ${subscriberId}`,
  )
  if (!found) throw new Error('a subscriber that was just written is gone')
  return found
}
