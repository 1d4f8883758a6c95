import type { SubscriberStatus } from '../../../schema/values.ts'

/** A step of consent that a request asks for. One request can ask for several, see `wishesOf`. */
export type ConsentWish =
  | 'SUBSCRIBE'
  | 'ASK'
  | 'SKIP_CONFIRMATION'
  | 'CONFIRM'
  | 'RESUBSCRIBE'
  | 'REACTIVATE'
  | 'UNSUBSCRIBE'

/** The status of a subscriber, or NONE for a person who is no subscriber yet. */
export type ConsentState = SubscriberStatus | 'NONE'

/**
 * The status each wish leads to (contract, "Subscriber" under "States and transitions"; decisions, section 7). Other
 * wishes change nothing: adding a person again never overrides a bounce, a complaint or a ban, and only the
 * confirmation or skipDoubleOptIn subscribes a person who is PENDING_CONFIRMATION.
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

/** The parameters that affect consent. `adds` is true for add_subscriber and false for update_subscriber. */
export type ConsentRequest = {
  adds: boolean
  resubscribe?: boolean | undefined
  skipDoubleOptIn?: boolean | undefined
  /** Whether the organization requires new subscribers to confirm. */
  doubleOptIn: boolean
}

/** Returns the status after a call. At most one wish applies in each state, so their order does not matter. */
export function nextStatus(state: SubscriberStatus, request: ConsentRequest): SubscriberStatus {
  return follow(state, wishesOf(request)) ?? state
}

/** Returns the status of a new subscriber. */
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

/** Consent as an imported row states it. */
export type ImportedConsent = {
  status: 'SUBSCRIBED' | 'UNSUBSCRIBED' | undefined
  resubscribe: boolean
  doubleOptIn: boolean
}

/** An UNSUBSCRIBED row applies only in these states; it never overrides a bounce, a complaint or a ban. */
const LEAVES_BY_LIST: ReadonlySet<ConsentState> = new Set([
  'NONE',
  'TRANSACTIONAL',
  'PENDING_CONFIRMATION',
  'SUBSCRIBED',
])

/**
 * Returns the status that an imported row leads to, or null when it changes nothing. Imports send no confirmation
 * email: with double opt-in, only a row that says SUBSCRIBED adds a subscriber, because it states an earlier consent.
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
