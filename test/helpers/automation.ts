import { sql } from 'kysely'

import { WEEKDAYS } from '../../schema/automation-parts.ts'
import type { TriggerConfig } from '../../schema/automation-triggers.ts'
import type { Edge, Settings, Step, StepOf } from '../../schema/automation.ts'
import type { WorkflowStatus } from '../../schema/values.ts'
import type { Call } from '../../src/catalogue/tool.ts'
import { unitOfWork } from '../../src/catalogue/unit-of-work.ts'
import { execute, json, rows } from '../../src/database.ts'
import { nudgeRuns } from '../../src/domain/automations/runs/nudge.ts'
import { keyOfField, readUpdatedField } from '../../src/domain/automations/triggers/updated-field.ts'
import { newId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'

/** A send window that does not open within the next day, in any time zone. */
export const CLOSED = {
  days: [WEEKDAYS[(new Date().getUTCDay() + 2) % 7] ?? 'MON'],
  start: '09:00',
  end: '10:00',
}

/** A window that stays open in UTC for the next hours. */
export const OPEN =
  new Date().getUTCHours() < 12 ? { start: '00:00', end: '18:00' } : { start: '06:00', end: '05:59' }

const ACTOR = { kind: 'system' as const, id: 'test', name: 'test' }

/** An organization with a sender. `within` runs a unit of work in it. */
export type Tenant = {
  id: string
  senderId: string
  domain: string
  within<Result>(work: (call: Call) => Promise<Result>): Promise<Result>
  subscribe(email?: string, fields?: Record<string, unknown>): Promise<string>
}

/** Creates a tenant in the database of these services. */
export async function makeTenant(services: Services): Promise<Tenant> {
  const [id, domainId, senderId] = [newId(), newId(), newId()]
  const em = services.orm.em.fork()
  const domain = `d${id.slice(-8)}.example`
  await execute(
    em,
    sql`insert into organization (id, name, slug, plan, timezone) values (${id}, 'Test', ${`org-${id}`}, 'ENTERPRISE', 'UTC')`,
  )
  await execute(
    em,
    sql`insert into domain (id, organization_id, domain, status) values (${domainId}, ${id}, ${domain}, 'VERIFIED')`,
  )
  await execute(
    em,
    sql`insert into sender (id, organization_id, domain_id, name, email, is_default)
      values (${senderId}, ${id}, ${domainId}, 'Sender', ${`hello@${domain}`}, true)`,
  )
  return {
    id,
    senderId,
    domain,
    within: (work) => unitOfWork(services, { organizationId: id, actor: ACTOR }, work),
    async subscribe(email = `${newId()}@reader.example`, fields = {}) {
      const subscriberId = newId()
      await execute(
        services.orm.em.fork(),
        sql`insert into subscriber (id, organization_id, email, name, status, fields)
          values (${subscriberId}, ${id}, ${email}, 'Reader', 'SUBSCRIBED', ${json(fields)})`,
      )
      return subscriberId
    },
  }
}

/** Returns a step with its defaults. */
export function step<Type extends Step['type']>(
  id: string,
  type: Type,
  config: Extract<Step, { type: Type }>['config'],
  members: Partial<Pick<Step, 'conditions' | 'onError'>> = {},
): Step {
  // The signature guarantees that `type` and `config` match.
  return { id, type, config, onError: 'FAIL', ...members } as Step
}

/** Returns an EMAIL step with a short message of marketing; `config` replaces members of it. */
export function emailStep(id: string, config: Partial<StepOf<'EMAIL'>['config']> = {}): Step {
  const message = { subject: 'Hello', content: 'Hi', contentType: 'MARKDOWN', transactional: false } as const
  return step(id, 'EMAIL', { ...message, ...config })
}

/** Returns edges along a chain of ids, and single ones given as [from, port, to]. */
export function edges(chain: readonly string[], ...others: [string, string, string][]): Edge[] {
  const along = chain.slice(1).map((to, index) => ({ from: chain[index] ?? '', to, port: 'next' }))
  return [...along, ...others.map(([from, port, to]) => ({ from, to, port }))]
}

type Published = { id: string; versionId: string }
type Graph = { steps: Step[]; edges: Edge[]; settings?: Partial<Settings>; successGoals?: unknown[] }

/** Publishes a graph directly in the database: a version, its triggers and the automation's status. */
export async function publish(
  services: Services,
  tenant: Tenant,
  graph: Graph,
  options: { name?: string; status?: WorkflowStatus; automationId?: string; number?: number } = {},
): Promise<Published> {
  const em = services.orm.em.fork()
  const [id, versionId] = [options.automationId ?? newId(), newId()]
  const emails: Record<string, unknown> = {}
  for (const { id: stepId, type, config } of graph.steps) {
    if (type !== 'EMAIL') continue
    const campaignId = newId()
    emails[stepId] = {
      campaignId,
      subject: config.subject ?? 'Hello',
      preview: null,
      content: config.content ?? 'Hello',
      contentType: 'MARKDOWN',
      sender: { id: tenant.senderId, name: 'Sender', email: `hello@${tenant.domain}` },
      replyTo: null,
      transactional: config.transactional,
    }
  }
  const settings = { exitOnUnsubscribe: true, priority: 50, ...graph.settings }
  const { steps, edges: links, successGoals = [] } = graph
  const definition = { steps, edges: links, settings, successGoals, emails }
  await execute(
    em,
    sql`insert into automation (id, organization_id, name, status) values (${id}, ${tenant.id}, ${options.name ?? 'Welcome series'}, 'PAUSED')
      on conflict do nothing`,
  )
  for (const [stepId, email] of Object.entries(emails)) {
    await execute(
      em,
      sql`insert into campaign (id, organization_id, kind, automation_id, step_id, subject, content, content_type, sender_id)
        select (email ->> 'campaignId')::uuid, ${tenant.id}, 'WORKFLOW', ${id}, ${stepId}, email ->> 'subject',
          email -> 'content', 'MARKDOWN', ${tenant.senderId} from (select ${json(email)} as email) as given`,
    )
  }
  await execute(
    em,
    sql`insert into automation_version (id, organization_id, automation_id, number, definition)
      values (${versionId}, ${tenant.id}, ${id}, ${options.number ?? 1}, ${json(definition)})`,
  )
  await execute(
    em,
    sql`delete from automation_trigger where organization_id = ${tenant.id} and automation_id = ${id}`,
  )
  for (const each of graph.steps) {
    if (each.type !== 'TRIGGER') continue
    for (const key of matchKeys(each.config)) {
      await execute(
        em,
        sql`insert into automation_trigger (organization_id, automation_id, step_id, type, match_key)
          values (${tenant.id}, ${id}, ${each.id}, ${each.config.type}, ${key})`,
      )
    }
  }
  await execute(
    em,
    sql`update automation set status = ${options.status ?? 'ACTIVE'}, published_version_id = ${versionId}
      where organization_id = ${tenant.id} and id = ${id}`,
  )
  return { id, versionId }
}

function matchKeys(config: TriggerConfig): string[] {
  if (config.type === 'TAG_ADDED' || config.type === 'TAG_REMOVED')
    return config.tagNames.map((name) => name.toLowerCase())
  if ('segmentId' in config) return [config.segmentId]
  if (config.type === 'EVENT') return [config.eventType]
  if (config.type === 'FIELD_UPDATED') return [keyOfField(readUpdatedField(config.field))]
  if (config.type === 'WORKFLOW_EVENT') return [`${config.workflowId}/${config.event}`]
  return config.type === 'MANUAL' ? [] : ['']
}

/** A run as stored in the database. */
export type RunRow = {
  id: string
  number: number
  status: string
  exitReason: string | null
  error: string | null
  stepId: string
  visit: number
  held: boolean
  waitKind: string | null
}

/** Returns the runs of an automation in the order of entry. */
export async function runsOf(
  services: Services,
  tenant: Pick<Tenant, 'id'>,
  automationId: string,
): Promise<RunRow[]> {
  return await rows<RunRow>(
    services.orm.em.fork(),
    sql`select id, number, status, exit_reason as "exitReason", error, current_step_id as "stepId", visit, held,
        wait_kind as "waitKind"
      from automation_run where organization_id = ${tenant.id} and automation_id = ${automationId} order by id`,
  )
}

/** Moves the end of a run's wait so many hours into the past and makes the run look at it. */
export async function passWait(
  services: Services,
  { id: organizationId }: Pick<Tenant, 'id'>,
  runId: string,
  hours = 0,
): Promise<void> {
  await services.orm.em.fork().transactional(async (em) => {
    await execute(
      em,
      sql`update automation_run set wake_at = now() - make_interval(hours => ${hours}::int) where id = ${runId}`,
    )
    await nudgeRuns(em, organizationId, [runId])
  })
}

/** Returns the visits of a run, each as "step RESULT→port". */
export async function trailOf(services: Services, runId: string): Promise<string[]> {
  const visits = await rows<{ stepId: string; result: string; port: string | null }>(
    services.orm.em.fork(),
    sql`select step_id as "stepId", outcome ->> 'result' as result, port from run_step where run_id = ${runId} order by visit`,
  )
  return visits.map(({ stepId, result, port }) => `${stepId} ${result}${port === null ? '' : `→${port}`}`)
}

/** Returns the recorded decisions of an automation, each as "ACTION REASON". */
export async function decisionsOf(services: Services, automationId: string): Promise<string[]> {
  const found = await rows<{ text: string }>(
    services.orm.em.fork(),
    sql`select action || ' ' || reason as text from decision where automation_id = ${automationId} order by id`,
  )
  return found.map(({ text }) => text)
}
