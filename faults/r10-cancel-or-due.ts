import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'

import { row, rows } from '../src/database.ts'
import { decodeId } from '../src/ids.ts'
import { type CampaignSendResult, campaignWorkflowId } from '../temporal/contract.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { type CampaignLab, createDraft, openCampaign, scheduleSoon } from './campaign.ts'
import { atOnce, defineExperiment, is, PATIENCE } from './experiment.ts'

/** Time for two calls and the start of a workflow before the due time. */
const AHEAD_MS = 3_000

type Race = { canceled: boolean; refusal: string; stage: string; status: string; sent: number }

/**
 * Cancels campaigns at the moment when they become due. The moment of cancelling is adjusted until either side wins
 * half of the races, so that they collide as often as possible.
 */
export const cancelOrDue = defineExperiment({
  id: 'R10',
  title: 'cancel_campaign_schedule races the due time',
  sizes: {
    small: { races: 24, runners: 8, jitterMs: 1_000, stepMs: 200 },
    full: { races: 1_000, runners: 20, jitterMs: 200, stepMs: 20 },
  },
  async run(lab, { races, runners, jitterMs, stepMs }) {
    const campaign = await openCampaign(lab, { recipients: 1 })
    await campaign.startHere(4)
    const outcomes: Race[] = []
    let centre = 0
    let begun = 0
    async function runner(): Promise<void> {
      while (begun < races) {
        begun += 1
        const race = await raceOnce(campaign, () => centre + (lab.random() - 0.5) * jitterMs)
        centre += race.canceled ? stepMs : -stepMs
        outcomes.push(race)
        if (outcomes.length % 100 === 0) lab.say(`${outcomes.length} of ${races} races`)
      }
    }
    await atOnce(runners, runner)

    const canceled = outcomes.filter((race) => race.canceled)
    const sent = outcomes.filter((race) => !race.canceled)
    const clean = { canceled: canceled.filter(isCanceled).length, sent: sent.filter(isSent).length }
    const ids = new Set(campaign.sink.journal.map(({ messageId }) => messageId))
    const stored = await row<{ messages: number; waiting: number }>(
      campaign.api.services.orm.em.fork(),
      sql`select (select count(*)::int from message where organization_id = ${campaign.organization.id}) as messages,
        (select count(*)::int from delivery_queue where organization_id = ${campaign.organization.id}) as waiting`,
    )
    return {
      injected: { 'cancellations around the due time': races },
      seen: { 'won by the cancellation': canceled.length, 'won by the due time': sent.length },
      claims: [
        is('races', outcomes.length, races),
        is('canceled, a draft again, and nobody has it', clean.canceled, canceled.length),
        is('refused with WRONG_STATE, SENT, and its reader has it', clean.sent, sent.length),
        is('emails in the journal', campaign.sink.journal.length, sent.length),
        is('different emails in the journal', ids.size, sent.length),
        is('rows of emails', stored?.messages ?? -1, sent.length),
        is('nothing is left in the queue', stored?.waiting ?? -1, 0),
      ],
    }
  },
})

async function raceOnce({ api, organization }: CampaignLab, offset: () => number): Promise<Race> {
  const campaignId = await createDraft(organization)
  const wishFor = (at: number) => ({ date: new Date(at).toISOString() })
  const due = await scheduleSoon(organization, campaignId, AHEAD_MS, wishFor)
  await sleep(Math.max(0, due + offset() - Date.now()))
  const answer = await organization.call('cancel_campaign_schedule', { campaignId })
  const client = await api.services.temporal.client()
  const handle = client.workflow.getHandle(campaignWorkflowId(campaignId, 1))
  await eventually('the workflow to be there', () => handle.describe(), PATIENCE)
  // The result type of CampaignSend.
  const { stage } = (await handle.result()) as CampaignSendResult
  const [now] = await rows<{ status: string; sent: number }>(
    api.services.orm.em.fork(),
    sql`select c.status, (select count(*)::int from message m where m.organization_id = c.organization_id
        and m.campaign_id = c.id and m.status = 'SENT') as sent
      from campaign c where c.organization_id = ${organization.id} and c.id = ${decodeId('cmp', campaignId)}`,
  )
  return {
    canceled: answer.status === 200,
    refusal: String(answer.body.code),
    stage,
    status: now?.status ?? '',
    sent: now?.sent ?? -1,
  }
}

function isCanceled({ stage, status, sent }: Race): boolean {
  return stage === 'CANCELED' && status === 'DRAFT' && sent === 0
}

function isSent({ refusal, stage, status, sent }: Race): boolean {
  return refusal === 'WRONG_STATE' && stage === 'SENT' && status === 'SENT' && sent === 1
}
