import { sql } from 'kysely'

import type { Actor, Call } from '../../catalogue/tool.ts'
import { type EntityManager, execute, prepared, row, rows } from '../../database.ts'
import { writeAwaited } from '../campaigns/batches.ts'
import { type NewEvent, recordEvents } from '../events.ts'
import { type EmailOrigin, emailFacts } from './facts.ts'

/** The actor of events for opens and clicks. */
export const READER: Actor = { kind: 'public', id: 'reader', name: 'Reader' }

/** The first visit of a human: an open of an email, or a click on one of its links. */
type FirstVisit = EmailOrigin & {
  subscriberId: string
  position: number | null
  url: string | null
}
type Settled = { taken: number } & { [Column in keyof FirstVisit]: FirstVisit[Column] | null }

const settle = prepared(
  'settle_visits',
  `select taken, message_id as "messageId", subscriber_id as "subscriberId", campaign_id as "campaignId",
    automation_id as "automationId", run_id as "runId", step_id as "stepId", position, url
    from settle_visits($1, $2)`,
)

/**
 * Settles up to `most` due visits of an organization, oldest first, in the caller's transaction. Each visit is
 * classified as human or machine and counted; the first visits of humans are recorded as events. Returns how many were
 * settled.
 */
export async function settleVisits(call: Call, most: number): Promise<number> {
  const found = await rows<Settled>(call.em, settle(call.organization.id, most))
  await recordEvents(call, found.filter(isFirst).map(eventOf))
  return found[0]?.taken ?? 0
}

/** Returns the uuid of the visit that `settleVisits` would settle first; null when none is due. */
export async function findDueVisit({ em, organization }: Call): Promise<string | null> {
  const found = await row<{ id: string }>(
    em,
    sql`select id from due_visit where organization_id = ${organization.id} order by id limit 1`,
  )
  return found?.id ?? null
}

/** Sets a visit apart that cannot be settled, so that it is not tried again. */
export async function setVisitApart({ em, organization }: Call, id: string): Promise<void> {
  await execute(
    em,
    sql`update pending_visit set apart = true where organization_id = ${organization.id} and id = ${id}`,
  )
}

/** Counts an unsubscribe for an email, at most once, and for its campaign. */
export async function countUnsubscribe({ em, organization }: Call, messageId: string): Promise<void> {
  await writeAwaited(em, [{ organizationId: organization.id, messageId }])
  await execute(
    em,
    sql`with counted as (
        insert into engagement (organization_id, message_id, kind, campaign_id, people, machines)
        select organization_id, id, 'UNSUBSCRIBE', campaign_id, 1, 0 from message
        where organization_id = ${organization.id} and id = ${messageId} and class <> 'TEST'
        on conflict (organization_id, message_id, kind, position) do nothing
        returning organization_id, campaign_id)
      insert into campaign_engagement (organization_id, campaign_id, kind, people, machines, emails_by_people,
        emails_by_machines)
      select organization_id, campaign_id, 'UNSUBSCRIBE', 1, 0, 1, 0 from counted where campaign_id is not null
      on conflict (organization_id, campaign_id, kind, position) do update
        set people = campaign_engagement.people + 1, emails_by_people = campaign_engagement.emails_by_people + 1`,
  )
}

/** Returns the organizations (uuids) with visits to settle. */
export async function organizationsWithVisits(em: EntityManager): Promise<string[]> {
  const found = await rows<{ id: string }>(
    em,
    sql`with recursive having_visits (id) as (
        (select organization_id from pending_visit where not apart order by organization_id limit 1)
        union all
        select (select organization_id from pending_visit where organization_id > having_visits.id and not apart
          order by organization_id limit 1)
        from having_visits where having_visits.id is not null
      )
      select id from having_visits where id is not null`,
  )
  return found.map(({ id }) => id)
}

/** Counts visits that wait to be settled, for the metrics. */
export async function countPendingVisits(em: EntityManager): Promise<number> {
  const found = await row<{ count: number }>(
    em,
    sql`select count(*)::int as count from pending_visit where not apart`,
  )
  return found?.count ?? 0
}

function isFirst(settled: Settled): settled is Settled & FirstVisit {
  return settled.messageId !== null
}

function eventOf(first: FirstVisit): NewEvent {
  const { subscriberId, position, url } = first
  return {
    subscriberId,
    type: position === null ? 'EMAIL_OPENED' : 'EMAIL_CLICKED',
    data: {
      ...emailFacts(first),
      ...(position !== null && { position, url }),
    },
  }
}
