import { sql } from 'kysely'

import { type EntityManager, rows } from '../../database.ts'

/** A send whose workflow has not worked on it for a while; ids are uuids. */
export type StrandedSend = { organizationId: string; id: string; number: number }

/**
 * Finds sends of all organizations that were due or last worked on more than `lateSeconds` ago, and failed sends whose
 * recipients were not all skipped yet. Leaves out sends whose workflow has a pending outbox entry.
 */
export async function findStrandedSends(
  em: EntityManager,
  lateSeconds: number,
  limit: number,
): Promise<StrandedSend[]> {
  return await rows<StrandedSend>(
    em,
    sql`with behind as (
        select c.organization_id, c.id, c.schedule_version as number, coalesce(send.seen_at, c.send_at) as seen_at
        from campaign c left join campaign_send send on send.organization_id = c.organization_id
          and send.campaign_id = c.id and send.number = c.schedule_version
        where c.status in ('SCHEDULED', 'SENDING')
        union all
        select c.organization_id, c.id, send.number, send.seen_at
        from campaign_send send join campaign c on c.organization_id = send.organization_id
          and c.id = send.campaign_id and c.schedule_version = send.number
        where send.finished_at is not null and send.enqueued + send.skipped < send.total and c.status = 'FAILED')
      select organization_id as "organizationId", id, number from behind
      where seen_at < now() - make_interval(secs => ${lateSeconds}::float8)
        and not exists (select from outbox o
          where o.workflow_id = 'campaign/' || type_id('cmp', behind.id) || '/' || behind.number)
      order by seen_at limit ${limit}`,
  )
}
