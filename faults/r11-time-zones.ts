import { sql } from 'kysely'

import { percentile } from '../bench/shared/report.ts'
import { execute, rows } from '../src/database.ts'
import { formatMessageId } from '../src/delivery/identity.ts'
import { decodeId, encodeId } from '../src/ids.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { type CampaignLab, createDraft, openCampaign, scheduleSoon } from './campaign.ts'
import { atOnce, defineExperiment, is } from './experiment.ts'
import { judgeGolden } from './golden.ts'

/** Time for everything that precedes scheduling. */
const AHEAD_MS = 4_000
const SCHEDULERS = 8

/**
 * Compares the meaning of local times with an independent table. Then schedules campaigns at the local time of many
 * zones, whose email must not arrive early, and campaigns that no worker processed until they were late, or more than a
 * day late.
 */
export const timeZones = defineExperiment({
  id: 'R11',
  title: 'schedules in many time zones, through daylight saving, and late ones',
  sizes: { small: { zones: 12, late: 2 }, full: { zones: 200, late: 20 } },
  async run(lab, { zones, late }) {
    const golden = judgeGolden()
    lab.say('the golden schedules are judged')
    const campaign = await openCampaign(lab, { recipients: 1 })
    const lateOnes = await scheduleLate(campaign, late, '23 hours')
    const missed = await scheduleLate(campaign, late, '25 hours')
    await campaign.startHere(4)
    const due = await scheduleEverywhere(campaign, pick(lab.random, zones))
    const all = [...due.keys(), ...lateOnes, ...missed]
    await eventually('every campaign to be over', async () => (await openOf(campaign)) === 0, {
      withinMs: 600_000,
      everyMs: 200,
    })
    const states = await statesOf(campaign)
    const arrivals = await arrivalsOf(campaign)
    const delays = [...due].map(([id, at]) => (arrivals.get(id)?.[0] ?? Number.NaN) - at)
    const count = (ids: Iterable<string>, status: string) =>
      [...ids].filter((id) => states.get(id) === status).length
    return {
      injected: {
        'golden schedules': golden.count,
        'schedules in time zones': zones,
        'nobody at work for 23 hours': late,
        'nobody at work for 25 hours': late,
      },
      seen: {
        'p50 after its time ms': Math.round(percentile(delays, 0.5)),
        'p95 after its time ms': Math.round(percentile(delays, 0.95)),
        'latest ms': Math.max(...delays),
      },
      claims: [
        ...golden.claims,
        is('sent in its time zone', count(due.keys(), 'SENT'), zones),
        is('arrived before its time', delays.filter((delay) => delay < 0).length, 0),
        is('late by less than a day and sent', count(lateOnes, 'SENT'), late),
        is('late by more than a day and FAILED', count(missed, 'FAILED'), late),
        is('late by more than a day and sent', missed.filter((id) => arrivals.has(id)).length, 0),
        is('emails in the journal, one for each', campaign.sink.journal.length, zones + late),
        is(
          'campaigns with another end',
          all.filter((id) => !/^(SENT|FAILED)$/.test(states.get(id) ?? '')).length,
          0,
        ),
      ],
    }
  },
})

/** Schedules campaigns for now while no worker runs, and moves them into the past. */
async function scheduleLate(
  { api, organization }: CampaignLab,
  count: number,
  by: string,
): Promise<string[]> {
  const ids: string[] = []
  for (let index = 0; index < count; index++) {
    const campaignId = await createDraft(organization)
    await organization.confirmed('schedule_campaign', { campaignId })
    await execute(
      api.services.orm.em.fork(),
      sql`update campaign set send_at = now() - ${by}::interval
        where organization_id = ${organization.id} and id = ${decodeId('cmp', campaignId)}`,
    )
    ids.push(campaignId)
  }
  return ids
}

/** Schedules a campaign in each zone at its local time a few seconds ahead. Returns the due time of each. */
async function scheduleEverywhere(
  { organization }: CampaignLab,
  zones: readonly string[],
): Promise<Map<string, number>> {
  const due = new Map<string, number>()
  const waiting = [...zones]
  async function scheduler(): Promise<void> {
    for (let timezone = waiting.pop(); timezone; timezone = waiting.pop()) {
      const zone = timezone
      const campaignId = await createDraft(organization)
      const wishFor = (at: number) => ({ date: localTime(at, zone), timezone: zone })
      due.set(campaignId, await scheduleSoon(organization, campaignId, AHEAD_MS, wishFor))
    }
  }
  await atOnce(SCHEDULERS, scheduler)
  return due
}

/** Returns the local time of a zone according to the platform's own tables. */
function localTime(at: number, timeZone: string): string {
  // The Swedish date format is ISO 8601.
  const shown = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'medium' }).format(
    at,
  )
  return shown.replace(' ', 'T')
}

function pick(random: () => number, count: number): string[] {
  const zones = Intl.supportedValuesOf('timeZone')
  return Array.from({ length: count }, () => zones.splice(Math.floor(random() * zones.length), 1)[0] ?? 'UTC')
}

async function openOf(campaign: CampaignLab): Promise<number> {
  return [...(await statesOf(campaign)).values()].filter((status) => /^(SCHEDULED|SENDING)$/.test(status))
    .length
}

async function statesOf({ api, organization }: CampaignLab): Promise<Map<string, string>> {
  const found = await rows<{ id: string; status: string }>(
    api.services.orm.em.fork(),
    sql`select id, status from campaign where organization_id = ${organization.id}`,
  )
  return new Map(found.map(({ id, status }) => [encodeId('cmp', id), status]))
}

/** Returns when the emails of each campaign arrived. */
async function arrivalsOf({ api, organization, sink }: CampaignLab): Promise<Map<string, number[]>> {
  const stored = await rows<{ id: string; campaignId: string; fromEmail: string }>(
    api.services.orm.em.fork(),
    sql`select id, campaign_id as "campaignId", from_email as "fromEmail" from message
      where organization_id = ${organization.id}`,
  )
  const campaigns = new Map(
    stored.map((mail) => [`<${formatMessageId(mail)}>`, encodeId('cmp', mail.campaignId)]),
  )
  const arrivals = new Map<string, number[]>()
  for (const { messageId, time } of sink.journal) {
    const id = campaigns.get(messageId) ?? ''
    arrivals.set(id, [...(arrivals.get(id) ?? []), time])
  }
  return arrivals
}
