import { type RawBuilder, sql } from 'kysely'

import { json } from '../../../database.ts'
import type { References } from '../../audience/references.ts'
import { NOBODY, type State } from './state.ts'

/**
 * The simulated person, as rows of the tables that filters read, and the things that the filters of the graph name. Ids
 * are UUIDs.
 */
export type Subject = {
  organizationId: string
  subscriberId: string
  automationId: string
  /** The rows of subscriber and subscriber_stat, as JSON. */
  person: Record<string, unknown>
  numbers: Record<string, unknown>
  references: References
}

/**
 * Returns the tables that filters read, by name, each as SQL that includes the changes of this way of the simulation.
 */
export function simulatedTables(
  subject: Subject,
  state: State,
): [name: string, table: () => RawBuilder<unknown>][] {
  const { organizationId, subscriberId, automationId, person, numbers } = subject
  const keys = { organization_id: organizationId, subscriber_id: subscriberId }
  const own = sql`organization_id = ${organizationId} and subscriber_id = ${subscriberId}`
  const { status, fields, profile, revenue } = state
  return [
    [
      'subscriber',
      () => sql`subscriber as (
        select * from jsonb_populate_record(null::subscriber, ${json({ ...person, ...profile, status, fields })}))`,
    ],
    [
      'subscriber_stat',
      () => {
        const emailCount = Number(numbers['email_count'] ?? 0) + state.emails.length
        const stat = { ...numbers, ...keys, revenue, email_count: emailCount }
        return sql`subscriber_stat as (select * from jsonb_populate_record(null::subscriber_stat, ${json(stat)}))`
      },
    ],
    [
      'subscriber_tag',
      () => {
        const tags = [...state.tags].map((id) => ({ ...keys, tag_id: id }))
        return sql`subscriber_tag as (select * from jsonb_populate_recordset(null::subscriber_tag, ${json(tags)}))`
      },
    ],
    [
      'message',
      () => {
        const emails = state.emails.map(({ stepId, campaignId, at }) => ({
          ...keys,
          id: NOBODY,
          class: 'AUTOMATION',
          status: 'SENT',
          automation_id: automationId,
          run_id: NOBODY,
          step_id: stepId,
          campaign_id: campaignId,
          sent_at: new Date(at).toISOString(),
        }))
        return sql`message as (select * from message where ${own}
          union all select * from jsonb_populate_recordset(null::message, ${json(emails)}))`
      },
    ],
    [
      'automation_run',
      () => {
        const run = { ...keys, id: NOBODY, automation_id: automationId, status: 'ACTIVE' }
        return sql`automation_run as (select * from automation_run where ${own}
          union all select * from jsonb_populate_record(null::automation_run, ${json(run)}))`
      },
    ],
    [
      'subscriber_event',
      () => {
        const events = [...state.begunBy, ...state.events].map(({ type, at, data }) => ({
          ...keys,
          type,
          data,
          created_at: new Date(at).toISOString(),
        }))
        return sql`subscriber_event as (select * from subscriber_event where ${own}
          union all select id_floor(created_at), organization_id, subscriber_id, type, data, '{}', created_at
          from jsonb_populate_recordset(null::subscriber_event, ${json(events)}))`
      },
    ],
  ]
}
