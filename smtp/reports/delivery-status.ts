import { type Fields, readFields } from './fields.ts'
import { isVague, spokenStatus, writtenStatus } from './phrases.ts'

/** What a delivery status notification reports of one recipient (RFC 3464 2.3). */
export type DeliveryStatus = {
  action: 'failed' | 'delayed' | 'delivered'
  status: string
  diagnostic: string | null
}

const ACTIONS = {
  failed: 'failed',
  delayed: 'delayed',
  delivered: 'delivered',
  relayed: 'delivered',
  expanded: 'delivered',
} as const
/** The worst action counts, because a list may have delivered the email to some recipients only. */
const WORST_FIRST = ['failed', 'delayed', 'delivered'] as const

/**
 * Reads the fields of a notification. `words` is its text for people, for servers whose codes say nothing. Returns null
 * when the fields report no recipient.
 */
export function readDeliveryStatus(fields: string, words: string): DeliveryStatus | null {
  // Computed once, because the words are the same for all recipients, of whom there may be thousands.
  const inWords = writtenStatus(words) ?? spokenStatus(words)
  const told = readFields(fields).flatMap((group) => readRecipient(group, inWords) ?? [])
  return WORST_FIRST.map((action) => told.find((each) => each.action === action)).find(Boolean) ?? null
}

function readRecipient(group: Fields, inWords: string | null): DeliveryStatus | null {
  const diagnostic = group.get('diagnostic-code')?.replace(/^[\w-]+\s*;\s*/, '') || null
  const given = /\b[245]\.\d{1,3}\.\d{1,3}\b/.exec(group.get('status') ?? '')?.[0] ?? null
  const asked = group
    .get('action')
    ?.toLowerCase()
    .split(/[\s(;]/)[0]
  const known = Object.entries(ACTIONS).find(([name]) => name === asked)?.[1]
  if (given === null && known === undefined) return null
  const status = exactStatus(given, diagnostic, inWords)
  return { action: known ?? actionOf(status), status, diagnostic }
}

/**
 * Returns the most precise status: a code that is not vague, else one in the diagnostic, else the meaning of the words.
 */
function exactStatus(given: string | null, diagnostic: string | null, inWords: string | null): string {
  if (given !== null && !isVague(given)) return given
  const said = diagnostic ?? ''
  return writtenStatus(said) ?? spokenStatus(said) ?? inWords ?? given ?? codeOf(said)
}

/**
 * Returns a status for a reply without an enhanced code, whose first digit says permanent or temporary (RFC 5321
 * 4.2.1).
 */
function codeOf(diagnostic: string): string {
  return /^\s*4\d\d\b/.test(diagnostic) ? '4.0.0' : '5.0.0'
}

function actionOf(status: string): DeliveryStatus['action'] {
  if (status.startsWith('2')) return 'delivered'
  return status.startsWith('4') ? 'delayed' : 'failed'
}
