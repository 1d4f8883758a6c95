import { crossOrganization, unitOfWork } from '../catalogue/unit-of-work.ts'
import { readToken } from '../delivery/tracking-token.ts'
import { countUnsubscribe } from '../domain/emails/visits.ts'
import { findNamedReader } from '../domain/subscribers/records.ts'
import { unsubscribeSubscriber } from '../domain/subscribers/subscribers.ts'
import { encodeId } from '../ids.ts'
import type { Services } from '../services.ts'

/** The data that the page of an unsubscribe link shows. */
export type LinkRecipient = { organization: string; email: string; isUnsubscribed: boolean }

/** Returns the subscriber of an unsubscribe link, or null when the link is not valid. Changes nothing. */
export async function findRecipient(services: Services, token: string): Promise<LinkRecipient | null> {
  const read = readToken(services.config.secret, 'unsubscribe', token)
  if (!read) return null
  const { organizationId, subscriberId } = read
  const reader = await findNamedReader(crossOrganization(services), organizationId, subscriberId)
  if (!reader) return null
  const { organization, email, status } = reader
  return { organization, email, isUnsubscribed: status === 'UNSUBSCRIBED' }
}

/** Unsubscribes the subscriber of the link; repeating it changes nothing. Null in the same cases as findRecipient. */
export async function unsubscribe(services: Services, token: string): Promise<LinkRecipient | null> {
  const read = readToken(services.config.secret, 'unsubscribe', token)
  const recipient = await findRecipient(services, token)
  if (!read || !recipient) return null
  const { organizationId, subscriberId, messageId } = read
  const actor = { kind: 'public', id: encodeId('sub', subscriberId), name: 'Unsubscribe link' } as const
  await unitOfWork(services, { organizationId, actor }, async (call) => {
    const source = `email ${encodeId('eml', messageId)}`
    if (await unsubscribeSubscriber(call, subscriberId, { source })) await countUnsubscribe(call, messageId)
  })
  return { ...recipient, isUnsubscribed: true }
}
