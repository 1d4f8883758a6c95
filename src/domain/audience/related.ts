import { type RawBuilder, sql } from 'kysely'

import type { FilterOperator, FilterValue, Where } from '../../../schema/audience.ts'
import { isRecord } from '../../../schema/json.ts'
import { array } from '../../database.ts'
import { decodeId } from '../../ids.ts'
import { IS_ACTIVE } from '../automations/runs/active.ts'
import { type Calendar, dateTest } from './dates.ts'
import { always, never, type Predicate, signed, type Test, total } from './predicate.ts'
import { jsonTest, numberHolds, numberTest } from './scalars.ts'

/** The context that tests on related tables need. */
export type Surroundings = Calendar & {
  organizationId: string
  /** The run whose step asks, for filters on the email of a step. */
  run?: { automationId: string; runId?: string | RawBuilder<string> }
  /** The query is for few subscribers: count their rows instead of grouping the rows of all subscribers. */
  single: boolean
}

/** `tags`: matches subscribers with at least one of these tags. */
export function hasAnyTag(around: Surroundings, tagIds: readonly string[]): Predicate {
  return sql<boolean>`exists (select 1 from subscriber_tag st where st.organization_id = ${around.organizationId}
    and st.subscriber_id = s.id and ${oneOf(sql`st.tag_id`, tagIds)})`
}

/** `tags is_set`: matches subscribers with any tag. */
export function isTagged(around: Surroundings): Predicate {
  return sql<boolean>`exists (select 1 from subscriber_tag st where st.organization_id = ${around.organizationId}
    and st.subscriber_id = s.id)`
}

/**
 * Compares a counter of subscriber_stat; a missing row counts as zero. Uses a semi-join when zero does not match and an
 * anti-join when it does, so that both can start from the smaller table.
 */
export function statNumberTest(
  around: Surroundings,
  column: string,
  operator: FilterOperator,
  value: FilterValue | undefined,
): Test {
  if (operator === 'is_set') return always
  const { holds } = numberTest(
    sql.raw(`st.${column}`),
    operator,
    value,
    isWhole(column, value) ? 'int' : 'numeric',
  )
  if (!numberHolds(0, operator, value)) return total(statExists(around, holds))
  return total(sql<boolean>`(not ${statExists(around, sql<boolean>`not (${holds})`)})`)
}

/** Whether the comparison can use integers, for which the planner has statistics. */
function isWhole(column: string, value: FilterValue | undefined): boolean {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  const most = 2 ** 31 - 1
  return (
    column !== 'revenue' && values.every((each) => Number.isInteger(each) && Math.abs(Number(each)) <= most)
  )
}

/** Compares a date of subscriber_stat. */
export function statDateTest(
  around: Surroundings,
  column: string,
  operator: FilterOperator,
  value: FilterValue | undefined,
): Test {
  const at = sql.raw(`st.${column}`)
  if (operator === 'is_set') return total(statExists(around, sql<boolean>`${at} is not null`))
  return total(statExists(around, dateTest({ at, isDay: null }, operator, value, around).holds))
}

/** Matches subscribers whose row `subscriber_stat st` meets a condition. */
export function statExists(around: Surroundings, condition: Predicate): Predicate {
  return sql<boolean>`exists (select 1 from subscriber_stat st where st.organization_id = ${around.organizationId}
    and st.subscriber_id = s.id and ${condition})`
}

const MESSAGE_OUTCOMES: Readonly<Record<string, Predicate>> = {
  received: sql<boolean>`m.sent_at is not null`,
  opened: sql<boolean>`m.opened_at is not null`,
  clicked: sql<boolean>`m.clicked_at is not null`,
  bounced: sql<boolean>`m.status = 'BOUNCED'`,
}

/** `campaign`: matches recipients by outcome, of the given campaigns, of a step's email, or of any campaign. */
export function campaignTest(around: Surroundings, operator: string, value: FilterValue | undefined): Test {
  const outcome = MESSAGE_OUTCOMES[operator]
  const which = messagesOf(around, value)
  if (!outcome || !which) return never
  return total(sql<boolean>`exists (select 1 from message m where m.organization_id = ${around.organizationId}
    and m.subscriber_id = s.id and ${which} and m.class <> 'TEST' and ${outcome})`)
}

function messagesOf({ run }: Surroundings, value: FilterValue | undefined): Predicate | null {
  if (value === undefined) return sql<boolean>`m.campaign_id is not null`
  if (!isRecord(value)) {
    const ids = idsOf(value, 'cmp')
    return oneOf(sql`m.campaign_id`, ids)
  }
  if (!run || !('stepId' in value)) return null
  const step = sql<boolean>`m.automation_id = ${run.automationId} and m.step_id = ${value.stepId}`
  return run.runId === undefined ? step : sql<boolean>`m.run_id = ${run.runId} and ${step}`
}

const RUN_STATES: Readonly<Record<string, Predicate>> = {
  active_in: sql<boolean>`r.${IS_ACTIVE}`,
  completed: sql<boolean>`r.status = 'COMPLETED'`,
  entered: sql<boolean>`r.status <> 'SKIPPED'`,
}

/** `workflow`: matches subscribers who are in, completed or ever entered the given workflows, or any workflow. */
export function workflowTest(around: Surroundings, operator: string, value: FilterValue | undefined): Test {
  const state = RUN_STATES[operator]
  if (!state) return never
  const which = value === undefined ? always.holds : oneOf(sql`r.automation_id`, idsOf(value, 'wf'))
  return total(sql<boolean>`exists (select 1 from automation_run r where r.organization_id = ${around.organizationId}
    and r.subscriber_id = s.id and ${which} and ${state})`)
}

/** Compiles one condition on a value inside JSON; a missing value meets only negated conditions. */
export function whereTest(json: RawBuilder<unknown>, where: Where, calendar: Calendar): Predicate {
  const { operator, negated } = positive(where.operator)
  return signed(jsonTest(jsonAt(json, where.path), 'any', operator, where.value, calendar), negated)
}

/** Returns the value at a validated path inside JSON. */
export function jsonAt(json: RawBuilder<unknown>, path: string): RawBuilder<unknown> {
  // Quoted, because null would not be a name otherwise.
  const keys = path.split('.').map((key) => `"${key}"`)
  return sql`(${json} #> ${sql.lit(`{${keys.join(',')}}`)})`
}

/** Matches a stable share of the subscribers: a hash of seed and id gives each a place between 0 and 100. */
export function randomTest(percent: number, seed: string): Test {
  const draw = sql`('x' || substr(encode(sha256(convert_to(${seed}::text || ':' || s.id::text, 'UTF8')), 'hex'), 1, 8))`
  return total(sql<boolean>`((${draw})::bit(32)::bigint < ${Math.round((percent / 100) * 2 ** 32)}::bigint)`)
}

/** Uses equality for a single id, because `any` would lose the order of an index. */
function oneOf(column: RawBuilder<unknown>, ids: readonly string[]): Predicate {
  const [first] = ids
  return ids.length === 1
    ? sql<boolean>`${column} = ${first}`
    : sql<boolean>`${column} = any(${array(ids, 'uuid')})`
}

/** Returns the uuids of a value: one id or a list. */
export function idsOf(value: FilterValue, prefix: 'cmp' | 'wf' | 'seg' | 'sub'): string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  return list.map((id) => decodeId(prefix, String(id)))
}

/** Negative operators with their positive counterparts. Their negation includes missing values. */
const OPPOSITES: Readonly<Record<string, string>> = {
  not_equals: 'equals',
  not_contains: 'contains',
  not_in: 'in',
  is_not_set: 'is_set',
  has_none: 'has_any',
  not_received: 'received',
  not_opened: 'opened',
  not_clicked: 'clicked',
  not_performed: 'performed',
  never_entered: 'entered',
}

/** Returns the positive form of an operator, and whether it is negated. */
export function positive(operator: FilterOperator): { operator: FilterOperator; negated: boolean } {
  const opposite = OPPOSITES[operator]
  // Callers cannot write `entered`, but workflowTest supports it.
  return opposite === undefined
    ? { operator, negated: false }
    : { operator: opposite as FilterOperator, negated: true }
}
