import { sql } from 'kysely'

import type { Call } from '../../../catalogue/tool.ts'
import { array, column, execute, row } from '../../../database.ts'
import { compileWhere } from '../../audience/match.ts'
import type { Version } from '../definition/versions.ts'
import type { Turn } from '../steps/step.ts'
import { isSinceEntry } from './since-entry.ts'

type Asking = Pick<Turn, 'call' | 'run' | 'version'>

/** A run that events should be able to find. Ids are UUIDs. */
export type Listener = { id: string; subscriberId: string; version: Version }

/** Writes a `run_wait` row per exit rule, by which `endEventWaits` finds these runs until they end. */
export async function watchExitRules(call: Call, runs: readonly Listener[]): Promise<void> {
  const rules = runs.flatMap(({ version: { definition }, ...run }) =>
    (definition.settings.exitRules ?? []).map((rule) => ({ run, rule })),
  )
  if (rules.length === 0) return
  await execute(
    call.em,
    sql`insert into run_wait (organization_id, subscriber_id, event_type, run_id, rule_id, visit, conditions)
      select ${call.organization.id}, subscriber_id, event_type, run_id, rule_id, 0, conditions
      from unnest(
        ${column(rules, ({ run }) => run.subscriberId, 'uuid')},
        ${column(rules, ({ rule }) => rule.on, 'text')},
        ${column(rules, ({ run }) => run.id, 'uuid')},
        ${column(rules, ({ rule }) => rule.id, 'text')},
        ${column(rules, ({ rule: { where = [] } }) => ({ where, scope: 'RUN' }), 'jsonb')}
      ) as rule (subscriber_id, event_type, run_id, rule_id, conditions)
      on conflict (organization_id, subscriber_id, event_type, run_id, rule_id) do nothing`,
  )
}

/** Returns the id of the exit rule that the first matching event since the entry has met, or null. */
export async function hitExitRule(asking: Asking): Promise<string | null> {
  const { call, version } = asking
  const rules = version.definition.settings.exitRules ?? []
  if (rules.length === 0) return null
  const { timezone } = call.organization
  const hits = rules.map(
    (rule) => sql`(event.type = ${rule.on} and ${compileWhere(sql`event.data`, rule.where ?? [], timezone)})`,
  )
  const names = rules.map((rule, index) => sql`when ${hits[index]} then ${rule.id}::text`)
  const found = await row<{ ruleId: string }>(
    call.em,
    sql`select case ${sql.join(names, sql` `)} end as "ruleId" from subscriber_event event
      where ${isSinceEntry(asking)} and event.type = any(${array([...new Set(rules.map(({ on }) => on))], 'text')})
        and (${sql.join(hits, sql` or `)})
      order by event.id limit 1`,
  )
  return found?.ruleId ?? null
}
