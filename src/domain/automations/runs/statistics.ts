import { sql } from 'kysely'

import type { ExitReason, RunStatus } from '../../../../schema/values.ts'
import type { WorkflowStatistics } from '../../../../schema/workflow-statistics.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { column, rows } from '../../../database.ts'
import { decodeId, encodeId } from '../../../ids.ts'
import { emailsInOrder, loadVersion, type Version } from '../definition/versions.ts'
import { IS_ACTIVE } from './active.ts'
import { liftOf, shareOf } from './lift.ts'

type RunGroup = { status: RunStatus; exitReason: ExitReason | null; stepId: string | null; count: number }

/** Reads the statistics of a workflow. The number of queries does not depend on the number of runs. */
export async function readStatistics(
  call: Call,
  workflow: { id: string; publishedVersion: { id: string } | null },
): Promise<WorkflowStatistics> {
  const automationId = decodeId('wf', workflow.id)
  const versionId = workflow.publishedVersion && decodeId('wfv', workflow.publishedVersion.id)
  const version = versionId === null ? null : await loadVersion(call.em, call.organization.id, versionId)
  const groups = await countRuns(call, automationId)
  const sum = (chosen: readonly RunGroup[]) => chosen.reduce((total, { count }) => total + count, 0)
  const active = groups.filter(({ status }) => ACTIVE.has(status))
  const entries = sum(groups.filter(({ status }) => status !== 'SKIPPED'))
  const byReason = Map.groupBy(
    groups.filter(({ exitReason }) => exitReason !== null),
    ({ exitReason }) => String(exitReason),
  )
  return {
    entries,
    active: sum(active),
    completions: sum(groups.filter(({ status }) => status === 'COMPLETED')),
    exits: Object.fromEntries([...byReason].map(([reason, chosen]) => [reason, sum(chosen)])),
    activeByStep: stepsOf(active, version),
    goals: await readGoals(call, automationId, version, entries),
    emails: await readEmails(call, automationId, version),
    holdouts: await readHoldouts(call, automationId, version),
  }
}

const ACTIVE: ReadonlySet<RunStatus> = new Set(['QUEUED', 'ACTIVE', 'WAITING'])

/** Counts runs by status, end and step. Each half of the union is an index-only scan of its own index. */
async function countRuns({ em, organization }: Call, automationId: string): Promise<RunGroup[]> {
  const own = sql`organization_id = ${organization.id} and automation_id = ${automationId}`
  return await rows<RunGroup>(
    em,
    sql`select status, null as "exitReason", current_step_id as "stepId", count(*)::int as count
      from automation_run where ${own} and ${IS_ACTIVE} group by status, current_step_id
      union all
      select status, exit_reason, null, count(*)::int
      from automation_run where ${own} and ended_at is not null group by status, exit_reason`,
  )
}

/**
 * Counts active runs by step, in the order of the graph. Steps that only earlier versions have come last, without type.
 */
function stepsOf(active: readonly RunGroup[], version: Version | null): WorkflowStatistics['activeByStep'] {
  const counts = new Map<string, number>()
  for (const { stepId, count } of active) counts.set(stepId ?? '', (counts.get(stepId ?? '') ?? 0) + count)
  const known = version?.definition.steps ?? []
  const order = [
    ...known.map(({ id }) => id),
    ...[...counts.keys()].filter((id) => !version?.graph.steps.has(id)),
  ]
  return order.flatMap((stepId) => {
    const runs = counts.get(stepId)
    const step = version?.graph.steps.get(stepId)
    return runs === undefined ? [] : [{ stepId, type: step?.type ?? null, name: step?.name ?? null, runs }]
  })
}

type GoalGroup = {
  goalId: string
  currency: string | null
  conversions: number
  people: number
  total: number | null
}

async function readGoals(
  { em, organization }: Call,
  automationId: string,
  version: Version | null,
  entries: number,
): Promise<WorkflowStatistics['goals']> {
  const goals = version?.definition.successGoals ?? []
  if (goals.length === 0) return []
  const found = await rows<GoalGroup & { isAll: boolean }>(
    em,
    sql`select goal_id as "goalId", currency, grouping(currency) = 1 as "isAll", count(*)::int as conversions,
        count(distinct subscriber_id)::int as people, sum(value)::float8 as total
      from goal_conversion where organization_id = ${organization.id} and automation_id = ${automationId}
      group by grouping sets ((goal_id), (goal_id, currency)) order by 1, 2`,
  )
  return goals.map(({ id, name }) => {
    const own = found.filter(({ goalId }) => goalId === id)
    const { conversions = 0, people = 0 } = own.find(({ isAll }) => isAll) ?? {}
    const values = own.flatMap(({ isAll, currency, total }) =>
      isAll || total === null ? [] : [{ currency, total }],
    )
    return { id, name, conversions, people, rate: shareOf(conversions, entries), values }
  })
}

type Counts = Omit<WorkflowStatistics['emails'][number], 'isCurrent' | 'opens' | 'clicks'> &
  Record<'uniqueOpens' | 'totalOpens' | 'uniqueClicks' | 'totalClicks', number>

/**
 * Reads the outcomes of each email from its stored totals. Opens and clicks are those of people, not machines. Emails
 * are in the order of the published version, then come those that only earlier versions sent, oldest first.
 */
async function readEmails(
  { em, organization }: Call,
  automationId: string,
  version: Version | null,
): Promise<WorkflowStatistics['emails']> {
  if (version === null) return []
  const published = emailsInOrder(version.definition)
  const found = await rows<Counts & { isCurrent: boolean }>(
    em,
    sql`with published as (
        select * from unnest(
          ${column(published, ([, { campaignId }]) => campaignId, 'uuid')},
          ${column(published, ([stepId]) => stepId, 'text')},
          ${column(published, ([, { subject }]) => subject, 'text')}
        ) with ordinality as email (id, step_id, subject, position)
      ), asked as (
        select * from published
        union all
        select id, step_id, subject, null from campaign
        where organization_id = ${organization.id} and automation_id = ${automationId} and id not in (select id from published)
          and exists (select from campaign_tally where organization_id = campaign.organization_id and campaign_id = campaign.id)
      )
      select asked.id as "campaignId", asked.step_id as "stepId", asked.subject, asked.position is not null as "isCurrent",
        coalesce(tally.sent, 0)::int as sent, coalesce(tally.delivered, 0)::int as delivered,
        coalesce(tally.bounced, 0)::int as bounced, coalesce(tally.complained, 0)::int as complained,
        coalesce(tally.failed, 0)::int as failed, coalesce(tally.skipped, 0)::int as skipped,
        coalesce(visit.unique_opens, 0)::int as "uniqueOpens", coalesce(visit.opens, 0)::int as "totalOpens",
        coalesce(visit.unique_clicks, 0)::int as "uniqueClicks", coalesce(visit.clicks, 0)::int as "totalClicks",
        coalesce(visit.unsubscribes, 0)::int as unsubscribes
      from asked
      left join lateral (select sum(emails) filter (where sent_hour > '-infinity') as sent, sum(delivered) as delivered,
          sum(emails) filter (where status = 'BOUNCED') as bounced, sum(emails) filter (where status = 'COMPLAINED') as complained,
          sum(emails) filter (where status = 'FAILED') as failed, sum(emails) filter (where status = 'SKIPPED') as skipped
        from campaign_tally where organization_id = ${organization.id} and campaign_id = asked.id) tally on true
      left join lateral (select sum(emails_by_people) filter (where kind = 'OPEN') as unique_opens,
          sum(people) filter (where kind = 'OPEN') as opens,
          sum(emails_by_people) filter (where kind = 'CLICK') as unique_clicks,
          sum(people) filter (where kind = 'CLICK') as clicks,
          sum(emails_by_people) filter (where kind = 'UNSUBSCRIBE') as unsubscribes
        from campaign_engagement where organization_id = ${organization.id} and campaign_id = asked.id) visit on true
      order by asked.position, asked.id`,
  )
  return found.map(({ uniqueOpens, totalOpens, uniqueClicks, totalClicks, campaignId, ...own }) => ({
    ...own,
    campaignId: encodeId('cmp', campaignId),
    opens: { unique: uniqueOpens, total: totalOpens },
    clicks: { unique: uniqueClicks, total: totalClicks },
  }))
}

type ArmRow = { stepId: string; variantId: string; goalId: string; people: number; converted: number }

/**
 * Compares the variants of each SPLIT with its holdout. People count for the first variant they were given, and convert
 * at most once, in any of their runs.
 */
async function readHoldouts(
  { em, organization }: Call,
  automationId: string,
  version: Version | null,
): Promise<WorkflowStatistics['holdouts']> {
  const splits = (version?.definition.steps ?? []).flatMap((step) =>
    step.type === 'SPLIT' && step.config.holdoutVariantId !== undefined ? [step] : [],
  )
  const goals = version?.definition.successGoals ?? []
  if (splits.length === 0 || goals.length === 0) return []
  const found = await rows<ArmRow>(
    em,
    sql`select given.step_id as "stepId", given.variant_id as "variantId", goal.id as "goalId",
        count(*)::int as people, count(made.subscriber_id)::int as converted
      from automation_variant given
      cross join unnest(${column(goals, ({ id }) => id, 'text')}) as goal (id)
      left join (select distinct goal_id, subscriber_id from goal_conversion
        where organization_id = ${organization.id} and automation_id = ${automationId}) made
        on made.goal_id = goal.id and made.subscriber_id = given.subscriber_id
      where given.organization_id = ${organization.id} and given.automation_id = ${automationId}
        and given.step_id = any(${column(splits, ({ id }) => id, 'text')})
      group by 1, 2, 3`,
  )
  return splits.flatMap(({ id: stepId, config }) =>
    goals.map(({ id: goalId }) => {
      const arm = (variantId: string | undefined) => {
        const own = found.find(
          (each) => each.stepId === stepId && each.goalId === goalId && each.variantId === variantId,
        )
        return { people: own?.people ?? 0, converted: own?.converted ?? 0 }
      }
      const { holdoutVariantId = '' } = config
      const variants = config.variants.map(({ id }) => {
        const { people, converted } = arm(id)
        const lift = id === holdoutVariantId ? null : liftOf({ people, converted }, arm(holdoutVariantId))
        return { id, people, converted, rate: shareOf(converted, people), lift }
      })
      return { stepId, goalId, holdoutVariantId, variants }
    }),
  )
}
