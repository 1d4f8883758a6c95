import { sql } from 'kysely'

import { HARD_BOUNCES } from '../../../schema/values.ts'
import { audit } from '../../catalogue/audit.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { execute, row } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { recordEvents } from '../events.ts'
import { CONSENT } from './consent.ts'
import { findSubscriber, type SubscriberRow } from './records.ts'

/** What blocks a subscriber besides their status: the bounce category and the reasons of suppressions. */
type Blocks = { bounceCategory: string | null; suppressions: string[] }

/**
 * Subscribes a person again (contract, reactivate_subscriber) and removes the suppressions of their address. Hard
 * bounces need `force`; MANUAL suppressions stay. Returns the uuid.
 */
export async function reactivateSubscriber(
  call: Call,
  { subscriberId, force = false }: { subscriberId: string; force?: boolean | undefined },
): Promise<string> {
  const person = await findSubscriber(call, { subscriberId }, { lock: true })
  const blocks = await readBlocks(call, person)
  const status = CONSENT[person.status].REACTIVATE
  refuseReactivation(person, blocks, force)
  if (!status && blocks.suppressions.length === 0) return person.id
  await lift(call, person)
  const lifted = { lifted: blocks.suppressions, ...(force && { force }) }
  await audit(call, 'subscriber.reactivated', encodeId('sub', person.id), lifted)
  if (!status) {
    await forgetBlocks(call, person)
    return person.id
  }
  await execute(
    call.em,
    sql`update subscriber set status = ${status}, bounce_category = null
      where organization_id = ${call.organization.id} and id = ${person.id}`,
  )
  const data = { from: person.status, reactivated: true, ...lifted }
  await recordEvents(call, [{ subscriberId: person.id, type: 'SUBSCRIBED', data }])
  return person.id
}

function refuseReactivation(
  { status }: SubscriberRow,
  { bounceCategory, suppressions }: Blocks,
  force: boolean,
): void {
  if (status === 'BANNED' || suppressions.includes('MANUAL')) {
    refuse('was suppressed by hand; only the removal of that suppression lifts it.', status)
  }
  const isHard =
    suppressions.includes('HARD_BOUNCE') || HARD_BOUNCES.some((category) => category === bounceCategory)
  if (isHard && !force) {
    const why = bounceCategory ?? 'HARD_BOUNCE'
    refuse(`bounced hard (${why}): the mailbox does not exist. Send force: true if it does now.`, status)
  }
  if (CONSENT[status].REACTIVATE || status === 'SUBSCRIBED' || suppressions.length > 0) return
  refuse(
    `is ${status} and nothing blocks the address; only BOUNCED, COMPLAINED and UNSUBSCRIBED subscribers are reactivated.`,
    status,
  )
}

function refuse(message: string, status: string): never {
  throw new Failure('WRONG_STATE', `This subscriber ${message}`, { details: { status } })
}

async function readBlocks({ em, organization }: Call, { id, email }: SubscriberRow): Promise<Blocks> {
  const found = await row<Blocks>(
    em,
    sql`select bounce_category as "bounceCategory", array(select reason from suppression
        where organization_id = ${organization.id} and email_key = any(suppression_keys(${organization.id}, ${email}))
        order by reason) as suppressions
      from subscriber where organization_id = ${organization.id} and id = ${id}`,
  )
  if (!found) throw new Error('a locked subscriber is gone')
  return found
}

async function lift({ em, organization }: Call, { email }: SubscriberRow): Promise<void> {
  await execute(
    em,
    sql`delete from suppression where organization_id = ${organization.id}
      and email_key = any(suppression_keys(${organization.id}, ${email})) and reason <> 'MANUAL'`,
  )
}

/**
 * Forgets the bounce, as lifting its suppression does, and the time of the last confirmation email, because the
 * suppression may have held that email back.
 */
async function forgetBlocks({ em, organization }: Call, { id }: SubscriberRow): Promise<void> {
  await execute(
    em,
    sql`update subscriber set bounce_category = null, confirmation_requested_at = case
        when status <> 'PENDING_CONFIRMATION' then confirmation_requested_at end
      where organization_id = ${organization.id} and id = ${id}`,
  )
}
