import { crossOrganization, unitOfWork } from '../catalogue/unit-of-work.ts'
import { readToken } from '../delivery/tracking-token.ts'
import { findNamedReader } from '../domain/subscriber-records.ts'
import { unsubscribeSubscriber } from '../domain/subscribers.ts'
import { countUnsubscribe } from '../domain/visits.ts'
import { encodeId } from '../ids.ts'
import type { Services } from '../services.ts'

/** The data that the page of an unsubscribe link shows. */
export type Leaver = { organization: string; email: string; isGone: boolean }

/** Returns the subscriber of an unsubscribe link, or null when the link is not valid. Changes nothing. */
export async function findLeaver(services: Services, token: string): Promise<Leaver | null> {
  const read = readToken(services.config.secret, 'unsubscribe', token)
  if (!read) return null
  const { organizationId, subscriberId } = read
  const reader = await findNamedReader(crossOrganization(services), organizationId, subscriberId)
  if (!reader) return null
  const { organization, email, status } = reader
  return { organization, email, isGone: status === 'UNSUBSCRIBED' }
}

/** Unsubscribes the subscriber of the link; repeating it changes nothing more. Null in the same cases as findLeaver. */
export async function leave(services: Services, token: string): Promise<Leaver | null> {
  const read = readToken(services.config.secret, 'unsubscribe', token)
  const leaver = await findLeaver(services, token)
  if (!read || !leaver) return null
  const { organizationId, subscriberId, messageId } = read
  const actor = { kind: 'public', id: encodeId('sub', subscriberId), name: 'Unsubscribe link' } as const
  await unitOfWork(services, { organizationId, actor }, async (call) => {
    const source = `email ${encodeId('eml', messageId)}`
    if (await unsubscribeSubscriber(call, subscriberId, { source })) await countUnsubscribe(call, messageId)
  })
  return { ...leaver, isGone: true }
}
