import { type Fields, readFields } from './fields.ts'
import { isVague, spokenStatus, writtenStatus } from './phrases.ts'

/** What a delivery status notification says of one recipient (RFC 3464, 2.3). */
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
/** What is said last of an email is worst: a list may have delivered it to some. */
const WORST_FIRST = ['failed', 'delayed', 'delivered'] as const

/**
 * Reads the fields of a notification; `words` is what it says to people, for servers whose codes say nothing. Null when
 * no recipient is told of.
 */
export function readDeliveryStatus(fields: string, words: string): DeliveryStatus | null {
  // The words are the same for all recipients, of whom there may be thousands.
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

/** The most that can be known: a code that says something, else one in the diagnostic, else what the words say. */
function exactStatus(given: string | null, diagnostic: string | null, inWords: string | null): string {
  if (given !== null && !isVague(given)) return given
  const said = diagnostic ?? ''
  return writtenStatus(said) ?? spokenStatus(said) ?? inWords ?? given ?? codeOf(said)
}

/** A reply without an enhanced code says for good or for now by its first digit (RFC 5321, 4.2.1). */
function codeOf(diagnostic: string): string {
  return /^\s*4\d\d\b/.test(diagnostic) ? '4.0.0' : '5.0.0'
}

function actionOf(status: string): DeliveryStatus['action'] {
  if (status.startsWith('2')) return 'delivered'
  return status.startsWith('4') ? 'delayed' : 'failed'
}
