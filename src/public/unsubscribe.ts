import { crossOrganization, unitOfWork } from '../catalogue/unit-of-work.ts'
import { readToken } from '../delivery/tracking-token.ts'
import { countUnsubscribe } from '../domain/emails/visits.ts'
import { findForgetter, findNamedReader } from '../domain/subscribers/records.ts'
import { unsubscribeSubscriber } from '../domain/subscribers/subscribers.ts'
import { encodeId } from '../ids.ts'
import type { Services } from '../services.ts'

/** The data that the page of an unsubscribe link shows. `email` is null after an erasure. */
export type LinkRecipient = { organization: string; email: string | null; isUnsubscribed: boolean }

/**
 * Returns the subscriber of an unsubscribe link, or null when the link is not valid. Who was erased is unsubscribed.
 * Changes nothing.
 */
export async function findRecipient(services: Services, token: string): Promise<LinkRecipient | null> {
  const read = readToken(services.config.secret, 'unsubscribe', token)
  if (!read) return null
  const { organizationId, subscriberId } = read
  const em = crossOrganization(services)
  const reader = await findNamedReader(em, organizationId, subscriberId)
  if (reader) {
    const { organization, email, status } = reader
    return { organization, email, isUnsubscribed: status === 'UNSUBSCRIBED' }
  }
  const organization = await findForgetter(em, organizationId, subscriberId)
  return organization === null ? null : { organization, email: null, isUnsubscribed: true }
}

/** Unsubscribes the subscriber of the link; repeating it changes nothing. Null in the same cases as findRecipient. */
export async function unsubscribe(services: Services, token: string): Promise<LinkRecipient | null> {
  const read = readToken(services.config.secret, 'unsubscribe', token)
  const recipient = await findRecipient(services, token)
  if (!read || !recipient) return null
  if (recipient.email === null) return recipient
  const { organizationId, subscriberId, messageId } = read
  const actor = { kind: 'public', id: encodeId('sub', subscriberId), name: 'Unsubscribe link' } as const
  await unitOfWork(services, { organizationId, actor }, async (call) => {
    const source = `email ${encodeId('eml', messageId)}`
    if (await unsubscribeSubscriber(call, subscriberId, { source })) await countUnsubscribe(call, messageId)
  })
  return { ...recipient, isUnsubscribed: true }
}
