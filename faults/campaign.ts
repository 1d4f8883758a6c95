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

/** A campaign to many people in an organization of its own, with a sink for its email. */
export type CampaignLab = {
  api: TestApi
  organization: TestOrganization
  sink: Sink
  campaignId: string
  schedule(): Promise<void>
  /** Its row as it is now; `open` counts recipients without an outcome, in the same statement. */
  look(): Promise<{ status: string; open: number }>
  /** Looks until it is SENT or FAILED; says how far it is. */
  over(withinMs: number): Promise<{ status: string; open: number }>
  /** A worker with lanes as a process of its own; what is still up is killed at the end. */
  startWorker(connections: number): ChildProcess
  /** Engine and lanes in this process. */
  startHere(connections: number, options?: Partial<LaneOptions>): Promise<void>
}

/** Prepares a campaign to `recipients` people, reader-1@reader.example and so on. */
export async function openCampaign(
  lab: Lab,
  { recipients, behaviour = {} }: { recipients: number; behaviour?: SinkBehaviour },
): Promise<CampaignLab> {
  const sink = await startSmtpSink(behaviour, { keepRaw: false, chunking: true })
  lab.defer(() => sink.close())
  const api = await startApi({
    // As many connections as an experiment asks for.
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

/** A campaign that can be scheduled. */
export async function createDraft(organization: TestOrganization): Promise<string> {
  const { campaign } = await organization.data('create_campaign', {
    subject: 'News',
    contentType: 'MARKDOWN',
    content: 'Hi {{email}}, [read](https://shop.example/a) or [leave]({{unsubscribeUrl}}).',
  })
  return campaign.id
}

/**
 * Schedules a campaign for a moment that is near; answers it in epoch milliseconds. Where a busy machine let it pass
 * before it was asked for, a later one is taken.
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
