import { sql } from 'kysely'

import { type EntityManager, rows } from '../../database.ts'

/** A send that nobody has worked on for a while; ids are uuids. */
export type StrandedSend = { organizationId: string; id: string; number: number }

/** Sends of all organizations that are due or begun and `lateSeconds` behind, unless Temporal is still to be told. */
export async function findStrandedSends(
  em: EntityManager,
  lateSeconds: number,
  limit: number,
): Promise<StrandedSend[]> {
  return await rows<StrandedSend>(
    em,
    sql`select c.organization_id as "organizationId", c.id, c.schedule_version as number
      from campaign c left join campaign_send send on send.organization_id = c.organization_id
        and send.campaign_id = c.id and send.number = c.schedule_version
      where c.status in ('SCHEDULED', 'SENDING')
        and coalesce(send.seen_at, c.send_at) < now() - make_interval(secs => ${lateSeconds}::float8)
        and not exists (select from outbox o
          where o.workflow_id = 'campaign/' || type_id('cmp', c.id) || '/' || c.schedule_version)
      order by c.send_at limit ${limit}`,
  )
}
