import { crossOrganization, unitOfWork } from '../catalogue/unit-of-work.ts'
import { readToken } from '../delivery/tracking-token.ts'
import { confirm, findPending, type PendingConfirmation } from '../domain/subscribers/double-opt-in.ts'
import { encodeId } from '../ids.ts'
import type { Services } from '../services.ts'
import { keptAgent, type Visitor } from './visitors.ts'

/** The data that the page of a confirmation link shows: organization, address and state. */
export type Confirmation = Pick<PendingConfirmation, 'organization' | 'email' | 'state'>

/**
 * Returns the confirmation of a link, or null when the link is not valid or its subscriber does not exist. Changes
 * nothing.
 */
export async function findConfirmation(services: Services, token: string): Promise<Confirmation | null> {
  const read = readToken(services.config.secret, 'confirm', token)
  if (!read) return null
  const organization = { id: read.organizationId }
  return await findPending({ em: crossOrganization(services), organization }, read)
}

/**
 * Confirms a subscription by its link; repeating it changes nothing more. Null in the same cases as findConfirmation.
 */
export async function confirmSubscription(
  services: Services,
  token: string,
  visitor: Visitor,
): Promise<Confirmation | null> {
  const read = readToken(services.config.secret, 'confirm', token)
  if (!read) return null
  const { organizationId, subscriberId } = read
  const actor = { kind: 'public', id: encodeId('sub', subscriberId), name: 'Confirmation link' } as const
  const evidence = { ipAddress: visitor.ipAddress, userAgent: keptAgent(visitor) }
  return await unitOfWork(services, { organizationId, actor }, (call) => confirm(call, read, evidence))
}
