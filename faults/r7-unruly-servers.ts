import { sql } from 'kysely'

import { row } from '../src/database.ts'
import type { SinkReply } from '../test/helpers/smtp-sink.ts'
import { openCampaign } from './campaign.ts'
import { atMost, defineExperiment, is } from './experiment.ts'
import { compare } from './oracle.ts'

const NOT_NOW = [
  { code: 421, text: '4.3.2 too many connections' },
  { code: 450, text: '4.2.1 mailbox busy' },
  { code: 451, text: '4.7.1 greylisted' },
  { code: 452, text: '4.2.2 mailbox full for now' },
]
const NOBODY = { code: 550, text: '5.1.1 nobody of that name' }

/** Servers defer, refuse or stop responding, at the recipient or at the final dot. The sender must tell these apart. */
export const unrulyServers = defineExperiment({
  id: 'R7',
  title: 'the sink puts off 30 %, knows 2 % not at all, and falls silent on 1 %',
  sizes: {
    small: {
      recipients: 400,
      deferred: 0.3,
      unknown: 0.02,
      silent: 0.01,
      dropsAfterMs: 1_500,
      leaseMs: 6_000,
      connections: 16,
    },
    // `dropsAfterMs` is longer than the sender's own timeouts.
    full: {
      recipients: 10_000,
      deferred: 0.3,
      unknown: 0.02,
      silent: 0.01,
      dropsAfterMs: 900_000,
      leaseMs: 60_000,
      connections: 96,
    },
  },
  async run(lab, { recipients, deferred, unknown, silent, dropsAfterMs, leaseMs, connections }) {
    const addresses = Array.from({ length: recipients }, (_, index) => `reader-${index + 1}@reader.example`)
    const strangers = new Set(addresses.filter(() => lab.random() < unknown))
    const given = { deferred: 0, unknown: 0, silentAtRecipient: 0 }
    /** Recipients whose server stopped responding after it had the email. */
    const unheard: string[] = []
    /** The reply to the final dot of an email in progress, by recipient. */
    const atDot = new Map<string, SinkReply>()

    /** Returns the fault of this attempt, or null. Chance comes first, so that unknown recipients are deferred too. */
    function fault(recipient: string): SinkReply | null {
      const chance = lab.random()
      if (chance < deferred) {
        given.deferred += 1
        return NOT_NOW[Math.floor(lab.random() * NOT_NOW.length)] ?? 'accept'
      }
      if (chance < deferred + silent) return 'hang'
      if (!strangers.has(recipient)) return null
      given.unknown += 1
      return NOBODY
    }

    const campaign = await openCampaign(lab, {
      recipients,
      behaviour: {
        onRecipient: (recipient) => {
          const reply = fault(recipient)
          // A server that stops responding at the dot has the email; servers never get one for an unknown recipient.
          const mayComeToDot = reply !== 'hang' || !strangers.has(recipient)
          if (!reply || (mayComeToDot && lab.random() < 0.5)) {
            atDot.set(recipient, reply ?? 'accept')
            return 'accept'
          }
          if (reply === 'hang') given.silentAtRecipient += 1
          return reply
        },
        onMessage: ({ recipient }) => {
          const reply = atDot.get(recipient) ?? 'accept'
          if (reply !== 'hang') return reply
          unheard.push(recipient)
          return { afterMs: dropsAfterMs, reply: 'drop' }
        },
      },
    })
    await campaign.startHere(connections, { leaseMs, marginMs: leaseMs / 6 })
    await campaign.schedule()
    const over = await campaign.over(3_600_000)
    // Ends the connections of senders that still wait for an answer.
    await campaign.sink.close()
    const { figures, repeats, uncounted, claims } = await compare(campaign, strangers)
    const { id } = campaign.organization
    const stored = await row<Record<'bounced' | 'people' | 'suppressed' | 'blocked', number>>(
      campaign.api.services.orm.em.fork(),
      sql`select (select count(*)::int from message where organization_id = ${id} and status = 'BOUNCED'
          and bounce_category = 'NO_SUCH_USER') as bounced,
        (select count(*)::int from subscriber where organization_id = ${id} and status = 'BOUNCED'
          and bounce_category = 'NO_SUCH_USER') as people,
        (select count(*)::int from suppression where organization_id = ${id}
          and reason = 'HARD_BOUNCE') as suppressed,
        (select count(*)::int from suppression where organization_id = ${id}) as blocked`,
    )
    return {
      injected: {
        'put off (421, 450, 451, 452)': given.deferred,
        '550 5.1.1': given.unknown,
        'silent at the recipient': given.silentAtRecipient,
        'silent at the final dot': unheard.length,
      },
      seen: { ...figures, bounced: stored?.bounced ?? -1, suppressed: stored?.blocked ?? -1 },
      claims: [
        is('the campaign is SENT', over.status, 'SENT'),
        is('recipients without an outcome when it was SENT', over.open, 0),
        ...claims,
        is('everybody unknown is asked for once', given.unknown, strangers.size),
        is('everybody unknown has bounced', stored?.bounced ?? -1, strangers.size),
        is('everybody unknown is BOUNCED', stored?.people ?? -1, strangers.size),
        is('everybody unknown is suppressed', stored?.suppressed ?? -1, strangers.size),
        is('nobody else is suppressed', stored?.blocked ?? -1, strangers.size),
        atMost('repeated, for the silences at the final dot', repeats.length, unheard.length),
        is('repeated and not counted as possibly so', uncounted, 0),
      ],
    }
  },
})
