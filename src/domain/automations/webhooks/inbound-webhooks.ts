import { createHmac, timingSafeEqual } from 'node:crypto'

import { sql } from 'kysely'

import type { Definition } from '../../../../schema/automation.ts'
import type { InboundWebhook } from '../../../../schema/workflow.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, execute, rows } from '../../../database.ts'
import { encodeId, newId } from '../../../ids.ts'
import { type Message, SECRET_PREFIX, sign } from '../../webhooks/signature.ts'

/** How many seconds a message's timestamp may differ from our clock. Standard Webhooks recommends some minutes. */
export const TOLERANCE_SECONDS = 300

/** A Standard Webhooks message with its signatures, the value of its `webhook-signature` header. */
export type Signed = Message & { signatures: string }

/**
 * Creates and deletes webhook addresses so that each INBOUND_WEBHOOK trigger has one, and returns them. A trigger that
 * stays keeps its slug and secret; the secret is only returned for new ones. The address of a removed trigger never
 * comes back. The caller holds the automation's lock.
 */
export async function syncWebhooks(
  call: Call,
  automationId: string,
  { steps }: Definition,
): Promise<InboundWebhook[]> {
  const { em, organization, services } = call
  const stepIds = steps.flatMap((step) =>
    step.type === 'TRIGGER' && step.config.type === 'INBOUND_WEBHOOK' ? [step.id] : [],
  )
  await execute(
    em,
    sql`delete from automation_webhook where organization_id = ${organization.id}
      and automation_id = ${automationId} and step_id <> all(${array(stepIds, 'text')})`,
  )
  if (stepIds.length === 0) return []
  const made = await rows<{ id: string }>(
    em,
    sql`insert into automation_webhook (id, organization_id, automation_id, step_id)
      select id, ${organization.id}, ${automationId}, step_id
      from unnest(${array(stepIds.map(newId), 'uuid')}, ${array(stepIds, 'text')}) as given (id, step_id)
      on conflict (organization_id, automation_id, step_id) do nothing returning id`,
  )
  const isNew = new Set(made.map(({ id }) => id))
  const all = await rows<{ id: string; stepId: string }>(
    em,
    sql`select id, step_id as "stepId" from automation_webhook
      where organization_id = ${organization.id} and automation_id = ${automationId} order by id`,
  )
  return all.map(({ id, stepId }) => {
    const slug = encodeId('whk', id)
    const secret = isNew.has(id) ? secretOf(services.config.secret, slug).toString('base64') : null
    return {
      stepId,
      slug,
      url: `${services.config.baseUrl}/api/v1/integrations/webhook/${slug}`,
      secret: secret === null ? null : SECRET_PREFIX + secret,
    }
  })
}

/** Returns whether one of the signatures is valid for the message and the slug's secret (Standard Webhooks, "v1"). */
export function isSigned(serviceSecret: string, slug: string, message: Signed): boolean {
  const expected = sign(secretOf(serviceSecret, slug), message)
  return message.signatures.split(' ').some((signature) => {
    const [version, text = ''] = signature.split(',')
    const given = Buffer.from(text, 'base64')
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected)
  })
}

function secretOf(serviceSecret: string, slug: string): Buffer {
  return createHmac('sha256', serviceSecret).update(`inbound-webhook/${slug}`).digest()
}
