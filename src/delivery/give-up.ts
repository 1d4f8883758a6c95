import { sql } from 'kysely'

import { isOwnFault } from '../catalogue/database-error.ts'
import type { Actor, Call } from '../catalogue/tool.ts'
import { unitOfWork } from '../catalogue/unit-of-work.ts'
import { execute, rows } from '../database.ts'
import { nudgeRuns } from '../domain/automations/runs/nudge.ts'
import { describeFault } from '../log.ts'
import type { Services } from '../services.ts'
import { type ClaimedMail, writeOut } from './claims.ts'

/** A claimed email and the attempt that holds it. */
export type Held = Pick<ClaimedMail, 'id' | 'organizationId' | 'attempt' | 'batchId' | 'recipient'>

/** The actor of everything that delivery writes. */
export const DELIVERY: Actor = { kind: 'system', id: 'delivery', name: 'Delivery' }

/**
 * Ends an email for which the database accepts neither a mark nor an outcome: it becomes FAILED with `reason`. When
 * even that is rejected, its queue row gets the state `apart`, for an operator to look at. Retrying forever could send
 * it forever.
 */
export async function giveUp(services: Services, email: Held, reason: string): Promise<void> {
  const scope = { organizationId: email.organizationId, actor: DELIVERY }
  try {
    await unitOfWork(services, scope, (call) => fail(call, email, reason))
  } catch (error) {
    if (!isOwnFault(error)) throw error
    services.log.error({ fault: describeFault(error), email: email.id, reason }, 'an email was set apart')
    await unitOfWork(services, scope, (call) => setApart(call, email))
  }
}

async function fail({ em, organization }: Call, email: Held, reason: string): Promise<void> {
  const { id, attempt } = email
  await writeOut(em, [email], { areOut: false })
  const failed = await rows<{ runId: string | null }>(
    em,
    sql`with gone as (
        delete from delivery_queue where organization_id = ${organization.id} and id = ${id} and attempt = ${attempt}
        returning id
      ), failed as (
        update message m set status = 'FAILED', reason = ${reason}, failed_at = now() from gone
        where m.organization_id = ${organization.id} and m.id = gone.id and is_pending(m.status)
        returning m.id, m.subscriber_id, m.automation_id, m.campaign_id, m.run_id, m.step_id
      ), noted as (
        insert into decision (id, organization_id, subscriber_id, automation_id, campaign_id, run_id, step_id, message_id,
          action, reason)
        select new_id(), ${organization.id}, subscriber_id, automation_id, campaign_id, run_id, step_id, id, 'SEND_EMAIL',
          ${reason}
        from failed
      )
      select run_id as "runId" from failed`,
  )
  const runIds = failed.flatMap(({ runId }) => runId ?? [])
  await nudgeRuns(em, organization.id, runIds)
}

async function setApart({ em, organization }: Call, email: Held): Promise<void> {
  const { id, attempt } = email
  await writeOut(em, [email], { areOut: false })
  await execute(
    em,
    sql`update delivery_queue set state = 'apart', submitting = false, lease_until = null
      where organization_id = ${organization.id} and id = ${id} and attempt = ${attempt}`,
  )
}
