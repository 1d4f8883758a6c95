import type { SubscriberStatus } from '../../schema/values.ts'

/** What a caller's request means for consent. A call makes one or more of them, see `wishesOf`. */
export type ConsentWish =
  | 'SUBSCRIBE'
  | 'ASK'
  | 'SKIP_CONFIRMATION'
  | 'CONFIRM'
  | 'RESUBSCRIBE'
  | 'REACTIVATE'
  | 'UNSUBSCRIBE'

/** A subscriber's status, or that there is no such subscriber yet. */
export type ConsentState = SubscriberStatus | 'NONE'

/**
 * Where each wish leads from each state (contract, "Subscriber" under "States and transitions"; decisions, section 7).
 * What is not in the table changes nothing: adding somebody again never overrides a bounce, a complaint or a ban, and
 * a confirmation that is awaited is only ended by the confirmation or by skipDoubleOptIn.
 */
export const CONSENT: Readonly<Record<ConsentState, Partial<Record<ConsentWish, SubscriberStatus>>>> = {
  NONE: { SUBSCRIBE: 'SUBSCRIBED', ASK: 'PENDING_CONFIRMATION' },
  TRANSACTIONAL: { SUBSCRIBE: 'SUBSCRIBED', ASK: 'PENDING_CONFIRMATION', UNSUBSCRIBE: 'UNSUBSCRIBED' },
  PENDING_CONFIRMATION: {
    SKIP_CONFIRMATION: 'SUBSCRIBED',
    CONFIRM: 'SUBSCRIBED',
    UNSUBSCRIBE: 'UNSUBSCRIBED',
  },
  SUBSCRIBED: { UNSUBSCRIBE: 'UNSUBSCRIBED' },
  UNSUBSCRIBED: { RESUBSCRIBE: 'SUBSCRIBED', REACTIVATE: 'SUBSCRIBED' },
  BOUNCED: { REACTIVATE: 'SUBSCRIBED', UNSUBSCRIBE: 'UNSUBSCRIBED' },
  COMPLAINED: { REACTIVATE: 'SUBSCRIBED', UNSUBSCRIBE: 'UNSUBSCRIBED' },
  BANNED: { UNSUBSCRIBE: 'UNSUBSCRIBED' },
}

/** The parameters that bear on consent. `adds` tells add_subscriber from update_subscriber. */
export type ConsentRequest = {
  adds: boolean
  resubscribe?: boolean | undefined
  skipDoubleOptIn?: boolean | undefined
  /** Whether the organization asks newcomers to confirm. */
  doubleOptIn: boolean
}

/** The status after a call. States answer to different wishes, so that the order of wishes does not matter. */
export function nextStatus(state: SubscriberStatus, request: ConsentRequest): SubscriberStatus {
  return follow(state, wishesOf(request)) ?? state
}

/** The status of somebody who is added for the first time. */
export function firstStatus(request: Omit<ConsentRequest, 'adds'>): SubscriberStatus {
  const status = follow('NONE', wishesOf({ ...request, adds: true }))
  if (!status) throw new Error('the consent table says nothing of a new subscriber')
  return status
}

function follow(state: ConsentState, wishes: readonly ConsentWish[]): SubscriberStatus | undefined {
  return wishes.map((wish) => CONSENT[state][wish]).find((status) => status !== undefined)
}

function wishesOf({ adds, resubscribe, skipDoubleOptIn, doubleOptIn }: ConsentRequest): ConsentWish[] {
  const wishes: ConsentWish[] = []
  if (adds) wishes.push(doubleOptIn && !skipDoubleOptIn ? 'ASK' : 'SUBSCRIBE')
  if (skipDoubleOptIn) wishes.push('SKIP_CONFIRMATION')
  if (resubscribe) wishes.push('RESUBSCRIBE')
  return wishes
}

/** What a list says of a person. */
export type ImportedConsent = {
  status: 'SUBSCRIBED' | 'UNSUBSCRIBED' | undefined
  resubscribe: boolean
  doubleOptIn: boolean
}

/** Only these follow the unsubscribing of a list; it never overrides a bounce, a complaint or a ban. */
const LEAVES_BY_LIST: ReadonlySet<ConsentState> = new Set([
  'NONE',
  'TRANSACTIONAL',
  'PENDING_CONFIRMATION',
  'SUBSCRIBED',
])

/**
 * Where a list leads from each state, or null where it leads nowhere. Lists send no confirmation mail: with double
 * opt-in on, only a row that says SUBSCRIBED brings somebody in, which is imported consent.
 */
export function importedStatus(
  state: ConsentState,
  { status, resubscribe, doubleOptIn }: ImportedConsent,
): SubscriberStatus | null {
  if (status === 'UNSUBSCRIBED') return LEAVES_BY_LIST.has(state) ? status : null
  const wishes: ConsentWish[] = []
  if (status === 'SUBSCRIBED' || !doubleOptIn) wishes.push('SUBSCRIBE')
  if (resubscribe) wishes.push('RESUBSCRIBE')
  return follow(state, wishes) ?? null
}
