import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'

import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { row, rows } from '../src/database.ts'
import { recordEvents } from '../src/domain/events.ts'
import { decodeId } from '../src/ids.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { publishWorkflow } from '../test/helpers/workflow.ts'
import { ACTOR } from './actor.ts'
import { type CampaignLab, openCampaign } from './campaign.ts'
import { atMost, type Claim, defineExperiment, is, type Lab } from './experiment.ts'
import { compare } from './oracle.ts'

const LONGEST_PAUSE_MS = 400
const hello = (id: string) => ({
  id,
  type: 'EMAIL',
  config: { subject: id, content: 'Hi', contentType: 'MARKDOWN' },
})
const STEPS = [
  { id: 'start', type: 'TRIGGER', config: { type: 'EVENT', eventType: 'GO' } },
  hello('one'),
  { id: 'rest', type: 'WAIT', config: { amount: 1, unit: 'SECONDS' } },
  { id: 'count', type: 'UPDATE_FIELD', config: { increment: { passes: 1 } } },
  hello('two'),
]

/** The object that is paused, how, and its expected number of emails. */
type Paused = {
  what: string
  pauses: number
  emails: number
  pause(): Promise<void>
  resume(): Promise<void>
  /** Returns a text that must not change while it is paused. */
  still(): Promise<string>
}

/** Pauses a workflow and a campaign at random moments for random times. */
export const pauses = defineExperiment({
  id: 'R9',
  title: 'pause and resume a workflow and a campaign at random moments',
  sizes: {
    small: { people: 40, recipients: 400, pauses: 6, connections: 4 },
    full: { people: 300, recipients: 10_000, pauses: 100, connections: 8 },
  },
  async run(lab, size) {
    const { people, recipients, connections } = size
    const behaviour = { onMessage: () => ({ afterMs: 10, reply: 'accept' as const }) }
    const campaign = await openCampaign(lab, { recipients, behaviour })
    await campaign.startHere(connections)
    const half = size.pauses / 2
    const after: number[] = []
    const moved = { workflow: 0, campaign: 0 }

    const sending = pausingCampaign(campaign, half, recipients)
    await campaign.schedule()
    moved.campaign = await pauseOften(lab, campaign, sending, after)
    const over = await campaign.over(600_000)
    const { figures, repeats, claims } = await compare(campaign)

    const crowd = await openCampaign(lab, { recipients: people, behaviour })
    await crowd.startHere(connections)
    const { workflowId, running } = await pausingWorkflow(crowd, half, people)
    moved.workflow = await pauseOften(lab, crowd, running, after)
    const own = await judgeWorkflow(crowd, workflowId, people)
    return {
      injected: { 'pauses of a campaign': half, 'pauses of a workflow': half },
      seen: { ...figures, 'most emails after an answer': Math.max(...after) },
      claims: [
        atMost(
          'emails after the answer to a pause, for its open connections',
          Math.max(...after),
          connections,
        ),
        is('campaign pauses during which anything went on', moved.campaign, 0),
        is('the campaign is SENT', over.status, 'SENT'),
        is('emails of the campaign that were repeated', repeats.length, 0),
        ...claims,
        is('workflow pauses during which a run moved', moved.workflow, 0),
        ...own,
      ],
    }
  },
})

/** Pauses and resumes as often as `paused.pauses` says. Returns how often something changed during a pause. */
async function pauseOften(
  lab: Lab,
  { sink, api, organization }: CampaignLab,
  paused: Paused,
  after: number[],
): Promise<number> {
  let moved = 0
  for (let turn = 0; turn < paused.pauses; turn++) {
    // Nothing can be paused before it has started.
    const enough = Math.max(1, Math.floor(((turn + lab.random()) * paused.emails) / (paused.pauses + 1)))
    const isReached = () => sink.journal.length >= enough
    await eventually(`${enough} emails`, isReached, { withinMs: 300_000, everyMs: 2 })
    await paused.pause()
    const before = sink.journal.length
    const still = await paused.still()
    const isQuiet = async () => {
      const open = await rows(
        api.services.orm.em.fork(),
        sql`select from delivery_queue where organization_id = ${organization.id} and submitting
          union all select from campaign_batch where organization_id = ${organization.id} limit 1`,
      )
      return open.length === 0
    }
    await eventually('nothing to be on its way', isQuiet, { withinMs: 60_000 })
    const quiet = sink.journal.length
    await sleep(lab.random() * LONGEST_PAUSE_MS)
    after.push(quiet - before)
    if (sink.journal.length !== quiet || (await paused.still()) !== still) moved += 1
    await paused.resume()
    if ((turn + 1) % 10 === 0) lab.say(`${turn + 1} of ${paused.pauses} pauses of the ${paused.what}`)
  }
  return moved
}

function pausingCampaign({ organization, campaignId }: CampaignLab, count: number, emails: number): Paused {
  return {
    what: 'campaign',
    pauses: count,
    emails,
    pause: () => organization.data('pause_campaign', { campaignId }),
    resume: async () => succeed(await organization.confirmed('resume_campaign', { campaignId })),
    still: () => Promise.resolve(''),
  }
}

async function pausingWorkflow(
  { api, organization }: CampaignLab,
  count: number,
  people: number,
): Promise<{ workflowId: string; running: Paused }> {
  const workflowId = await publishWorkflow(organization, STEPS)
  const em = api.services.orm.em.fork()
  const subscribers = await rows<{ id: string }>(
    em,
    sql`select id from subscriber where organization_id = ${organization.id}`,
  )
  await unitOfWork(api.services, { organizationId: organization.id, actor: ACTOR }, (call) =>
    recordEvents(
      call,
      subscribers.map(({ id }) => ({ subscriberId: id, type: 'GO' })),
    ),
  )
  const running = {
    what: 'workflow',
    pauses: count,
    emails: 2 * people,
    pause: () => organization.data('update_workflow_status', { workflowId, status: 'PAUSED' }),
    resume: async () =>
      succeed(await organization.confirmed('update_workflow_status', { workflowId, status: 'ACTIVE' })),
    async still() {
      const visits = await row(
        em,
        sql`select count(*)::int as begun, count(ended_at)::int as ended from run_step where organization_id = ${organization.id}`,
      )
      return JSON.stringify(visits)
    },
  }
  return { workflowId, running }
}

async function judgeWorkflow(
  { api, organization, sink }: CampaignLab,
  workflowId: string,
  people: number,
): Promise<Claim[]> {
  const look = async () =>
    await row<{ completed: number; visits: number; passes: number }>(
      api.services.orm.em.fork(),
      sql`select count(*) filter (where status = 'COMPLETED')::int as completed,
          (select count(*)::int from run_step where organization_id = ${organization.id}) as visits,
          (select count(*)::int from subscriber where organization_id = ${organization.id}
            and fields ->> 'passes' = '1') as passes
        from automation_run where organization_id = ${organization.id}
          and automation_id = ${decodeId('wf', workflowId)}`,
    )
  const seen = await eventually(
    'every run to complete',
    async () => {
      const now = await look()
      return now?.completed === people && now
    },
    { withinMs: 600_000, everyMs: 100 },
  )
  const readers = new Set(sink.journal.map(({ recipient }) => recipient))
  return [
    is('runs that completed', seen.completed, people),
    is('visits of their steps', seen.visits, people * STEPS.length),
    is('people whose step between the emails was done once', seen.passes, people),
    is('emails of the workflow', sink.journal.length, 2 * people),
    is('their readers', readers.size, people),
  ]
}

function succeed({ status, body }: { status: number; body: unknown }): void {
  if (status !== 200) throw new Error(JSON.stringify(body))
}
