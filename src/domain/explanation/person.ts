import { sql } from 'kysely'

import type { Reason } from '../../../schema/explanation.ts'
import type { Subscriber } from '../../../schema/subscriber.ts'
import type { SubscriberStatus } from '../../../schema/values.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, row, rows } from '../../database.ts'
import { decodeId } from '../../ids.ts'
import { getSubscriber, type SubscriberChoice } from '../subscribers/records.ts'
import { timestamp, timestampOrNull } from '../text.ts'

/** The person that an explanation is about. */
export type Person = {
  /** The uuid of the subscriber. */
  id: string
  /** Their name in sentences. */
  who: string
  record: Subscriber
  lastOpenedAt: string | null
  lastClickedAt: string | null
  suppression: { reason: string; source: string; at: string } | null
  /** Whether their status allows each kind of email. */
  takes: { marketing: boolean; transactional: boolean }
}

type Facts = {
  lastOpenedAt: string | null
  lastClickedAt: string | null
  reason: string | null
  source: string
  at: string
  marketing: boolean
  transactional: boolean
}

/** Returns the person that a caller names. Throws `NOT_FOUND` when there is none. */
export async function findPerson(call: Call, choice: SubscriberChoice): Promise<Person> {
  const record = await getSubscriber(call, choice)
  const id = decodeId('sub', record.id)
  const facts = await row<Facts>(
    call.em,
    sql`select stat.last_opened_at as "lastOpenedAt", stat.last_clicked_at as "lastClickedAt", blocked.reason,
        blocked.source, blocked.created_at as at, consent_refusal(true, s.status, s.bounce_category) is null as marketing,
        consent_refusal(false, s.status, s.bounce_category) is null as transactional
      from (select ${call.organization.id}::uuid as organization_id, ${id}::uuid as id) asked
      join subscriber s on s.organization_id = asked.organization_id and s.id = asked.id
      left join subscriber_stat stat on stat.organization_id = asked.organization_id and stat.subscriber_id = asked.id
      left join lateral (select reason, source, created_at from suppression
        where organization_id = asked.organization_id
          and email_key = any(suppression_keys(asked.organization_id, ${record.email}))
        order by reason limit 1) blocked on true`,
  )
  return {
    id,
    who: record.name === null ? record.email : `${record.name} (${record.email})`,
    record,
    lastOpenedAt: timestampOrNull(facts?.lastOpenedAt ?? null),
    lastClickedAt: timestampOrNull(facts?.lastClickedAt ?? null),
    suppression: facts?.reason
      ? { reason: facts.reason, source: facts.source, at: timestamp(facts.at) }
      : null,
    takes: { marketing: facts?.marketing ?? false, transactional: facts?.transactional ?? false },
  }
}

/** Whether the person's status and suppressions allow an email now. */
export function canGet(
  { suppression, takes }: Person,
  { transactional }: { transactional: boolean },
): boolean {
  return suppression === null && (transactional ? takes.transactional : takes.marketing)
}

/** Explanations of the statuses other than SUBSCRIBED. */
export const STATUS_WORDS: Readonly<Record<Exclude<SubscriberStatus, 'SUBSCRIBED'>, string>> = {
  PENDING_CONFIRMATION: 'They have not confirmed their subscription yet.',
  UNSUBSCRIBED: 'They have unsubscribed.',
  BOUNCED: 'Their address bounced, so it gets nothing more.',
  BANNED: 'They are banned from getting email.',
  COMPLAINED: 'They reported an email as spam.',
  TRANSACTIONAL: 'They never subscribed: they only get transactional email.',
}

const BLOCKED: Readonly<Record<string, string>> = {
  HARD_BOUNCE: 'a mail server said that it does not exist',
  SOFT_BOUNCE: 'it bounced again and again',
  COMPLAINT: 'its owner reported an email as spam',
  MANUAL: 'somebody blocked it by hand',
  ERASED: 'its owner was erased',
}

/** Returns how the person's status and suppression affect these emails now; by default one marketing email. */
export function consentReasons(
  { record, suppression, takes }: Person,
  emails: readonly { transactional: boolean }[] = [{ transactional: false }],
): Reason[] {
  if (emails.length === 0) return []
  const { status } = record
  const refused = emails.filter(
    ({ transactional }) => !(transactional ? takes.transactional : takes.marketing),
  )
  const reasons: Reason[] = []
  if (status === 'SUBSCRIBED') {
    reasons.push({ at: null, outcome: 'FOR', code: 'SUBSCRIBED', message: 'They are subscribed.' })
  } else if (refused.length === emails.length) {
    reasons.push({ at: null, outcome: 'AGAINST', code: status, message: STATUS_WORDS[status] })
  } else if (refused.length > 0) {
    const message = `${STATUS_WORDS[status]} Transactional email goes to them all the same.`
    reasons.push({ at: null, outcome: 'NOTE', code: status, message })
  }
  if (suppression !== null) {
    const why = BLOCKED[suppression.reason] ?? suppression.reason
    const message = `Their address is on the suppression list, because ${why}; nothing is sent to it.`
    reasons.push({ at: suppression.at, outcome: 'AGAINST', code: 'SUPPRESSED', message })
  }
  return reasons
}

const CHANGES: Readonly<Record<string, string>> = {
  SUBSCRIBED: 'They subscribed.',
  UNSUBSCRIBED: 'They unsubscribed.',
  EMAIL_BOUNCED: 'An email to them bounced.',
  EMAIL_COMPLAINED: 'They reported an email as spam.',
}

/** Returns changes of consent since a moment, which explain why an audience of that time differs from now. */
export async function changesSince(call: Call, { id }: Person, since: string): Promise<Reason[]> {
  const found = await rows<{ type: string; at: string }>(
    call.em,
    sql`select type, created_at as at from subscriber_event where organization_id = ${call.organization.id}
      and subscriber_id = ${id} and type = any(${array(Object.keys(CHANGES), 'text')}) and created_at > ${since}
      order by id limit 20`,
  )
  return found.map(({ type, at }) => ({
    at: timestamp(at),
    outcome: 'NOTE',
    code: type,
    message: CHANGES[type] ?? type,
  }))
}
