import type { ChildProcess } from 'node:child_process'

import { sql } from 'kysely'

import { execute, row } from '../src/database.ts'
import type { LaneOptions } from '../src/delivery/lane.ts'
import { startLanes } from '../src/delivery/lanes.ts'
import { decodeId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from '../test/helpers/api.ts'
import { endProcess, startProcess } from '../test/helpers/child.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { QUICK } from '../test/helpers/mailroom.ts'
import { type Sink, type SinkBehaviour, startSmtpSink } from '../test/helpers/smtp-sink.ts'
import { startEngine } from '../worker/workers.ts'
import type { Lab } from './experiment.ts'

/** A campaign to many subscribers in an organization of its own, with a sink that receives its email. */
export type CampaignLab = {
  api: TestApi
  organization: TestOrganization
  sink: Sink
  campaignId: string
  schedule(): Promise<void>
  /** Returns the current status. `open` counts recipients without an outcome, in the same statement. */
  look(): Promise<{ status: string; open: number }>
  /** Waits until the campaign is SENT or FAILED and reports its progress. */
  over(withinMs: number): Promise<{ status: string; open: number }>
  /** Starts a worker with lanes as a separate process. The experiment kills it at the end if it still runs. */
  startWorker(connections: number): ChildProcess
  /** Starts engine and lanes in this process. */
  startHere(connections: number, options?: Partial<LaneOptions>): Promise<void>
}

/** Prepares a campaign to `recipients` subscribers: reader-1@reader.example and so on. */
export async function openCampaign(
  lab: Lab,
  { recipients, behaviour = {} }: { recipients: number; behaviour?: SinkBehaviour },
): Promise<CampaignLab> {
  const sink = await startSmtpSink(behaviour, { keepRaw: false, chunking: true })
  lab.defer(() => sink.close())
  const api = await startApi({
    // Allows as many connections as any experiment uses.
    RELAY_URL: `${sink.url}?connections=200`,
    TEMPORAL_TASK_QUEUE: `faults-${process.pid}-${sink.port}`,
  })
  lab.defer(() => api.close())
  const organization = await api.organization()
  await execute(
    api.services.orm.em.fork(),
    sql`insert into subscriber (id, organization_id, email, status)
      select new_id(), ${organization.id}, 'reader-' || n || '@reader.example', 'SUBSCRIBED'
      from generate_series(1, ${recipients}::int) n`,
  )
  await execute(api.services.orm.em.fork(), sql`analyze subscriber`)
  const campaignId = await createDraft(organization)

  async function look(): Promise<{ status: string; open: number }> {
    const found = await row<{ status: string; open: number }>(
      api.services.orm.em.fork(),
      sql`select c.status, ${recipients}::int - (select count(*)::int from message m
          where m.organization_id = c.organization_id and m.campaign_id = c.id
            and m.status not in ('QUEUED', 'SUBMITTING', 'DELAYED')) as open
        from campaign c where c.organization_id = ${organization.id} and c.id = ${decodeId('cmp', campaignId)}`,
    )
    if (!found) throw new Error('the campaign is gone')
    return found
  }

  return {
    api,
    organization,
    sink,
    campaignId,
    look,
    async schedule() {
      const answer = await organization.confirmed('schedule_campaign', { campaignId })
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
    },
    async over(withinMs) {
      let said = -1
      const ask = async () => {
        const now = await look()
        const part = Math.floor((10 * (recipients - now.open)) / recipients)
        if (part > said) lab.say(`${recipients - now.open} of ${recipients} have an outcome`)
        said = part
        return ['SENT', 'FAILED'].includes(now.status) && now
      }
      return await eventually('the campaign to be over', ask, { withinMs, everyMs: 100 })
    },
    startWorker(connections) {
      const env = { CONNECTIONS: String(connections) }
      const worker = startProcess(api.services, 'test/helpers/worker-process.ts', { env })
      lab.defer(() => endProcess(worker))
      return worker
    },
    async startHere(connections, options = {}) {
      const engine = await startEngine(api.services)
      lab.defer(() => engine.stop())
      const lane = { ...QUICK, ...options, connections }
      const lanes = await startLanes(api.services, { workerName: 'faults', lane, reviveMs: 50 })
      lab.defer(() => lanes.stop())
    },
  }
}

/** Creates a campaign that can be scheduled. */
export async function createDraft(organization: TestOrganization): Promise<string> {
  const { campaign } = await organization.data('create_campaign', {
    subject: 'News',
    contentType: 'MARKDOWN',
    content: 'Hi {{email}}, [read](https://shop.example/a) or [leave]({{unsubscribeUrl}}).',
  })
  return campaign.id
}

/**
 * Schedules a campaign for the near future and returns the due time in epoch milliseconds. If the time passes before
 * the request arrives, as on a busy machine, tries again with a later one.
 */
export async function scheduleSoon(
  organization: TestOrganization,
  campaignId: string,
  aheadMs: number,
  wishFor: (due: number) => { date: string; timezone?: string },
): Promise<number> {
  const due = Math.ceil((Date.now() + aheadMs) / 1_000) * 1_000
  const { status, body } = await organization.confirmed('schedule_campaign', { campaignId, ...wishFor(due) })
  if (status === 200) return due
  if (Date.now() > due) return await scheduleSoon(organization, campaignId, aheadMs * 2, wishFor)
  throw new Error(JSON.stringify(body))
}
