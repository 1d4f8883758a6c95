import { sql } from 'kysely'

import { type Sender, SENDER_LIMITS } from '../../../schema/sender.ts'
import { databaseCode } from '../../catalogue/database-error.ts'
import { Failure, refuse } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { execute, rows } from '../../database.ts'
import { encodeId, newId } from '../../ids.ts'
import { isOwnLocalPart, readOwnEmail } from '../addresses.ts'
import { nameLine } from '../text.ts'
import { findDomain } from './domains.ts'

/** The input of create_email_sender; `domain` is a host name or an id. */
export type NewSender = { localPart: string; domain: string; name: string; replyTo?: string | undefined }

type SenderRow = Omit<Sender, 'replyTo'> & { replyTo: string | null }

const SENDER_LOCK = 7_305_102

/** Lists the senders of the organization, the default one first. */
export async function listSenders(call: Call): Promise<Sender[]> {
  return (await readSenders(call)).map(present)
}

/** Creates a sender on a domain of the organization; the first one becomes the default. */
export async function createSender(call: Call, input: NewSender): Promise<Sender> {
  const { em, organization } = call
  const name = nameLine(input.name, 'name', SENDER_LIMITS.name, 'the name that readers see')
  if (!isOwnLocalPart(input.localPart)) {
    refuse(
      'localPart',
      'cannot stand before "@"; send up to 64 letters, digits, dots, "-" or "_", such as "hello".',
    )
  }
  const replyTo = input.replyTo === undefined ? null : readOwnEmail(input.replyTo, 'replyTo')
  const domain = await findDomain(call, input.domain, 'for key share')
  const email = readOwnEmail(`${input.localPart}@${domain.domain}`, 'localPart')
  const id = newId()
  // The lock keeps two concurrent first senders from both becoming the default.
  await execute(em, sql`select pg_advisory_xact_lock(${SENDER_LOCK}, hashtext(${organization.id}))`)
  await execute(
    em,
    sql`insert into sender (id, organization_id, domain_id, name, email, reply_to, is_default)
      values (${id}, ${organization.id}, ${domain.id}, ${name}, ${email}, ${replyTo},
        not exists (select from sender where organization_id = ${organization.id} and is_default))`,
  ).catch((error: unknown) => {
    if (databaseCode(error) !== '23505') throw error
    throw new Failure('ALREADY_EXISTS', `The sender ${email} exists already; get_email_senders shows it.`)
  })
  const [sender] = await readSenders(call, id)
  if (!sender) throw new Error('a new sender cannot be read back')
  return present(sender)
}

async function readSenders({ em, organization }: Call, id?: string): Promise<SenderRow[]> {
  return await rows<SenderRow>(
    em,
    sql`select sender.id, sender.name, sender.email, sender.domain_id as "domainId", sender.reply_to as "replyTo",
        sender.is_default as "isDefault", domain.status = 'VERIFIED' as verified
      from sender join domain on domain.organization_id = sender.organization_id and domain.id = sender.domain_id
      where sender.organization_id = ${organization.id} ${id === undefined ? sql`` : sql`and sender.id = ${id}`}
      order by sender.is_default desc, sender.id`,
  )
}

function present({ replyTo, ...sender }: SenderRow): Sender {
  return {
    ...sender,
    id: encodeId('snd', sender.id),
    domainId: encodeId('dom', sender.domainId),
    ...(replyTo !== null && { replyTo }),
  }
}
