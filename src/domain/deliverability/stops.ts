import { domainToUnicode } from 'node:url'

import { type RawBuilder, sql } from 'kysely'

import { type SendingStop, STOP_REASONS, type Stream } from '../../../schema/deliverability.ts'
import { audit } from '../../catalogue/audit.ts'
import type { Call } from '../../catalogue/tool.ts'
import { array, execute, row, rows } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { presentStop, type StopRow } from './stop-words.ts'
import { type Figures, JUDGED_DAYS, levelOf } from './thresholds.ts'

type Judged = Figures & { domainId: string; domain: string; stream: Stream; days: number }

/** The columns of `StopRow`. */
const STOP_COLUMNS = sql`stop.stream, stop.reason, stop.days, stop.emails, stop.counted, stop.stopped_at as "stoppedAt"`

/** Stops streams that crossed a limit since they were last resumed; runs in the transaction that counted. */
export async function judgeDomains(call: Call, domainIds: readonly string[]): Promise<void> {
  const { em, organization } = call
  const ids = array([...new Set(domainIds)].toSorted(), 'uuid')
  // The lock orders this and resumeSending: either sees the other's result.
  await execute(
    em,
    sql`select from domain where organization_id = ${organization.id} and id = any(${ids}) order by id
      for no key update`,
  )
  const judged = await rows<Judged>(
    em,
    sql`select d.id as "domainId", d.domain, total.stream, judged.days, ${SUMS}
      from domain d cross join unnest(${array(JUDGED_DAYS, 'int')}) as judged (days)
      join domain_total total on total.organization_id = d.organization_id and total.domain_id = d.id
        and total.at > now() - make_interval(days => judged.days) and total.at >= coalesce(d.resumed_at, '-infinity')
      where d.organization_id = ${organization.id} and d.id = any(${ids}) and not exists (select from sending_stop stop
        where stop.organization_id = d.organization_id and stop.domain_id = d.id and stop.stream = total.stream)
      group by 1, 2, 3, 4 order by 1, 3, 4`,
  )
  for (const figures of judged) await stopIfCrossed(call, figures)
}

/** Sums over rows of `domain_total total`, in the form of `Figures`. */
export const SUMS: RawBuilder<unknown> = sql`sum(total.emails)::int as emails, sum(total.bounced)::int as bounced,
  sum(total.failed)::int as failed, sum(total.complained)::int as complained, sum(total.tracked)::int as tracked,
  sum(total.opened)::int as opened`

async function stopIfCrossed(call: Call, judged: Judged): Promise<void> {
  const { domainId, domain, stream, days, emails } = judged
  const reason = STOP_REASONS.find((each) => levelOf(judged, each) === 'STOP')
  if (reason === undefined) return
  const counted = reason === 'BOUNCES' ? judged.bounced : judged.complained
  const names = array([...new Set([domain, domainToUnicode(domain).toLowerCase()])], 'text')
  const stopped = await execute(
    call.em,
    sql`insert into sending_stop (organization_id, domain_id, stream, names, reason, days, emails, counted)
      values (${call.organization.id}, ${domainId}, ${stream}, ${names}, ${reason}, ${days}, ${emails}, ${counted})
      on conflict (organization_id, domain_id, stream) do nothing`,
  )
  if (stopped === 0) return
  const id = encodeId('dom', domainId)
  const facts = { stream, reason, days, emails, counted }
  await audit(call, 'sending.stopped', id, facts)
  call.services.log.warn({ domain: id, ...facts }, 'sending from a domain stopped by itself')
}

/** Returns the stop that holds marketing email from this address, or null. */
export async function findStop(
  { em, organization }: Pick<Call, 'em' | 'organization'>,
  fromEmail: string,
): Promise<SendingStop | null> {
  const found = await row<StopRow & { domain: string }>(
    em,
    sql`select d.domain, ${STOP_COLUMNS} from sending_stop stop
      join domain d on d.organization_id = stop.organization_id and d.id = stop.domain_id
      where stop.organization_id = ${organization.id} and stop.stream = 'MARKETING'
        and stop.domain_id = stopped_by(stop.organization_id, true, ${fromEmail})`,
  )
  return found && presentStop(found.domain, found)
}
