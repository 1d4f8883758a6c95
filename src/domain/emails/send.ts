import { sql } from 'kysely'

import { refuse } from '../../catalogue/failure.ts'
import type { Call, Impact } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import { decodeId, missing } from '../../ids.ts'
import { asciiDomain, readEmail } from '../addresses.ts'
import { readFromAddress, standInWarnings } from '../domains/stand-in.ts'
import { findSubscriber, type SubscriberChoice } from '../subscribers/records.ts'
import type { From, TransactionalEmail } from './acceptance.ts'
import { judgeTransactional, sendTransactional } from './transactional.ts'
import { readWritten, type WrittenType } from './written.ts'

/** The input of send_email: one email to one person. */
export type PersonalEmail = SubscriberChoice & {
  subject: string
  content: string
  contentType: WrittenType
  preview?: string | undefined
  senderId?: string | undefined
  replyTo?: string | undefined
}

type Sender = From & { replyTo: string | null }

/**
 * Sends a transactional email. An unknown address becomes a TRANSACTIONAL subscriber. Returns the uuid of the email.
 */
export async function sendEmail(call: Call, email: PersonalEmail): Promise<string> {
  return await sendTransactional(call, await readPersonal(call, email))
}

/** Summarizes the email and its sender. Throws when it cannot be sent. */
export async function summarizeEmail(call: Call, email: PersonalEmail): Promise<Impact> {
  const read = await readPersonal(call, email)
  await judgeTransactional(call, read)
  const sender = typeof read.from === 'object' ? read.from : await findFrom(call)
  const leaving = sender && (await readFromAddress(call, sender))
  const from = leaving?.email ?? sender?.email ?? 'the default sender'
  return {
    target: read.to,
    recipients: 1,
    effects: [`An email with the subject "${read.subject}" goes to ${read.to} from ${from} at once.`],
    warnings: leaving ? standInWarnings(leaving) : [],
  }
}

async function readPersonal(call: Call, email: PersonalEmail): Promise<TransactionalEmail> {
  const { subject, content, contentType, preview, senderId, replyTo } = email
  const to = await addressOf(call, email)
  const sender =
    senderId === undefined ? null : ((await findFrom(call, senderId)) ?? missing('snd', senderId))
  return {
    ...(await readWritten(call, { subject, content, contentType, preview })),
    to,
    from: sender ?? undefined,
    replyTo: replyTo ?? sender?.replyTo ?? undefined,
    tracking: true,
  }
}

async function addressOf(call: Call, { subscriberId, email }: SubscriberChoice): Promise<string> {
  if (email !== undefined && subscriberId === undefined) return readEmail(email, 'email')
  if (email !== undefined || subscriberId === undefined) {
    refuse('subscriberId', 'and email stand for the same person: send exactly one of them.')
  }
  return (await findSubscriber(call, { subscriberId })).email
}

/** Returns a sender, by default the default one; null when there is none. */
async function findFrom({ em, organization }: Call, senderId?: string): Promise<Sender | null> {
  const which = senderId === undefined ? sql`is_default` : sql`id = ${decodeId('snd', senderId)}`
  const found = await row<Omit<Sender, 'domain'>>(
    em,
    sql`select name, email, reply_to as "replyTo" from sender
      where organization_id = ${organization.id} and ${which}`,
  )
  return found && { ...found, domain: asciiDomain(found.email.slice(found.email.lastIndexOf('@') + 1)) ?? '' }
}
