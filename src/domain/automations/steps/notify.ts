import { sql } from 'kysely'

import { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { compileContent } from '../../../content/compile.ts'
import { fillContent } from '../../../content/fill.ts'
import { row } from '../../../database.ts'
import { encodeId } from '../../../ids.ts'
import { enqueueMessages } from '../../emails/messages.ts'
import type { OverQuota } from '../../emails/quota.ts'
import { personVariables } from '../../library/variables.ts'
import { findSubscriber } from '../../subscribers/records.ts'
import { type Enter, left } from './step.ts'

type Sender = {
  name: string
  email: string
  status: string
  leaving: string | null
  stoodInFor: string | null
  overQuota: OverQuota | null
}

/**
 * Queues an email about the subscriber to another address. Its variables are filled here, because delivery would fill
 * them for the recipient, who need not be a subscriber. The run does not wait for the email.
 */
export const enterNotify: Enter<'NOTIFY'> = async ({ call, run }, { id, config }) => {
  const sender = await requireSender(call)
  if (sender.overQuota) {
    return {
      ...left('next', { result: 'SKIPPED', reason: 'QUOTA_EXCEEDED' }),
      decision: 'QUOTA_EXCEEDED',
    }
  }
  const person = await findSubscriber(call, { subscriberId: encodeId('sub', run.subscriberId) })
  const compiled = compileContent({
    contentType: 'MARKDOWN',
    source: config.markdown,
    subject: config.subject,
    kind: 'notice',
  })
  const filled = fillContent(compiled, {
    variables: personVariables(person, call.organization.name),
    urls: { unsubscribe: '', online: '' },
  })
  const [message] = await enqueueMessages(call, [
    {
      class: 'TEST',
      marketing: false,
      key: `run/${run.id}/${id}/${run.visit}`,
      subscriberId: null,
      recipient: config.to,
      fromName: sender.name,
      fromEmail: sender.leaving ?? sender.email,
      stoodInFor: sender.stoodInFor,
      replyTo: sender.stoodInFor,
      tracking: false,
      // Delivery renders this source again, so braces that come from a subscriber's fields must not become variables.
      source: {
        subject: filled.subject.replaceAll(/\{(?=\{)/g, '{ '),
        content: filled.html.replaceAll('{{', '{&#123;'),
        contentType: 'HTML',
        preview: null,
      },
    },
  ])
  if (!message) throw new Error('an email was asked for and none was accepted')
  return left('next', { result: 'DONE', messageId: message.id })
}

/** Returns the default sender, and takes one email from the monthly quota. Throws `WRONG_STATE` if it cannot send. */
async function requireSender({ em, organization }: Call): Promise<Sender> {
  const sender = await row<Sender>(
    em,
    sql`select sender.name, sender.email, domain.status, leaving.email as leaving,
        leaving.stood_in_for as "stoodInFor",
        case when leaving.email is not null then take_emails(sender.organization_id, 1) end as "overQuota" from sender
      join domain on domain.organization_id = sender.organization_id and domain.id = sender.domain_id
      left join lateral leave_from(sender.organization_id, sender.email, domain.status) leaving on true
      where sender.organization_id = ${organization.id} and sender.is_default`,
  )
  if (sender?.leaving) return sender
  throw new Failure(
    'WRONG_STATE',
    sender
      ? `NOTIFY sends from the default sender ${sender.email}, whose domain is ${sender.status}; verify it.`
      : 'NOTIFY sends from the default sender, and there is none; make one with create_email_sender.',
  )
}
