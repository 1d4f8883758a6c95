import { sql } from 'kysely'

import { array, execute, row } from '../../../database.ts'
import { compileWhere } from '../../audience/match.ts'
import type { Turn } from '../steps/step.ts'
import { isSinceEntry } from './since-entry.ts'

type Asking = Pick<Turn, 'call' | 'run' | 'version'>

/** Lets the events of a run's exit rules find it, from its first turn to its end; see endEventWaits. */
export async function watchExitRules({ call, run, version }: Asking): Promise<void> {
  const rules = version.definition.settings.exitRules ?? []
  if (rules.length === 0) return
  const conditions = rules.map(({ where = [] }) => ({ where, scope: 'RUN' }))
  await execute(
    call.em,
    sql`insert into run_wait (organization_id, subscriber_id, event_type, run_id, rule_id, visit, conditions)
      select ${call.organization.id}, ${run.subscriberId}, event_type, ${run.id}, rule_id, 0, conditions
      from unnest(${array(
        rules.map(({ on }) => on),
        'text',
      )}, ${array(
        rules.map(({ id }) => id),
        'text',
      )}, ${array(conditions, 'jsonb')}) as rule (event_type, rule_id, conditions)
      on conflict (organization_id, subscriber_id, event_type, run_id, rule_id) do nothing`,
  )
}

/** The exit rule whose event has come since the run was entered, or null. */
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
