import { sql } from 'kysely'

import { row, rows } from '../src/database.ts'
import { decodeId } from '../src/ids.ts'
import type { JournalEntry } from '../test/helpers/smtp-sink.ts'
import type { CampaignLab } from './campaign.ts'
import { type Claim, type Figures, is } from './experiment.ts'

/** The result of comparing the sink's journal with the database for one campaign. */
export type Comparison = {
  figures: Figures
  /** Entries that were followed by another one to the same recipient. */
  repeats: JournalEntry[]
  /** The number of recipients who got an email twice without being recorded as possibly resent. */
  uncounted: number
  claims: Claim[]
}

type Stored = { recipient: string; status: string; resent: boolean }

/**
 * Compares them. Everybody except `excused` must have got the email, have a row that says so, and always the same
 * Message-ID.
 */
export async function compare(
  { api, organization, campaignId, sink }: CampaignLab,
  excused: ReadonlySet<string> = new Set(),
): Promise<Comparison> {
  const em = api.services.orm.em.fork()
  const scope = sql`organization_id = ${organization.id} and campaign_id = ${decodeId('cmp', campaignId)}`
  const stored = await rows<Stored>(em, sql`select recipient, status, resent from message where ${scope}`)
  const counts = await row<{ meant: number; events: number; waiting: number }>(
    em,
    sql`select (select count(*)::int from campaign_recipient where ${scope}) as meant,
      (select count(*)::int from subscriber_event where organization_id = ${organization.id}
        and type = 'EMAIL_SENT') as events,
      (select count(*)::int from delivery_queue where organization_id = ${organization.id})
        + (select count(*)::int from campaign_batch where organization_id = ${organization.id}) as waiting`,
  )
  const { meant = 0, events = 0, waiting = 0 } = counts ?? {}
  const latest = new Map<string, JournalEntry>()
  const answered = new Set<string>()
  const repeats: JournalEntry[] = []
  let strangers = 0
  for (const entry of sink.journal) {
    if (!entry.taken) continue
    if (entry.accepted) answered.add(entry.recipient)
    const before = latest.get(entry.recipient)
    latest.set(entry.recipient, entry)
    if (!before) continue
    repeats.push(before)
    if (before.messageId !== entry.messageId) strangers += 1
  }
  const due = stored.filter(({ recipient }) => !excused.has(recipient))
  const sent = due.filter(({ status }) => status === 'SENT')
  const resent = new Set(stored.flatMap((message) => (message.resent ? [message.recipient] : [])))
  return {
    figures: {
      recipients: meant,
      'taken by the sink': latest.size,
      repeated: repeats.length,
      'counted as possibly repeated': resent.size,
    },
    repeats,
    uncounted: new Set(repeats.flatMap(({ recipient }) => (resent.has(recipient) ? [] : [recipient]))).size,
    claims: [
      is('one row a recipient', stored.length, meant),
      is('nobody is lost', due.filter(({ recipient }) => !answered.has(recipient)).length, 0),
      is('everybody else is SENT', sent.length, meant - excused.size),
      is(
        'nobody is SENT whom the sink did not answer',
        sent.filter(({ recipient }) => !answered.has(recipient)).length,
        0,
      ),
      is('nobody who should not has it', [...latest.keys()].filter((each) => excused.has(each)).length, 0),
      is('a repetition has the Message-ID of the first', strangers, 0),
      is('one EMAIL_SENT for each', events, meant - excused.size),
      is('nothing is left in the queue', waiting, 0),
    ],
  }
}
