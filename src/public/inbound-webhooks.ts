import { Failure, refuseFaults } from '../catalogue/failure.ts'
import { hostileFaults } from '../catalogue/input.ts'
import { REQUESTS_PER_MINUTE } from '../catalogue/rate-limit.ts'
import { crossOrganization, unitOfWork } from '../catalogue/unit-of-work.ts'
import { isSigned, type Signed, TOLERANCE_SECONDS } from '../domain/automations/webhooks/inbound-webhooks.ts'
import { findWebhook, type Received, receiveWebhook } from '../domain/automations/webhooks/webhook-entry.ts'
import { readId } from '../ids.ts'
import type { Services } from '../services.ts'

/** The largest body of a message in bytes; the body is stored with the run that it starts. */
export const WEBHOOK_BYTES = 100_000

/**
 * Takes a message for the INBOUND_WEBHOOK trigger of this slug. Throws `NOT_FOUND` for an unknown slug,
 * `UNAUTHENTICATED` unless the message is signed with the webhook's secret, `RATE_LIMITED`, or `MALFORMED_BODY`.
 */
export async function takeWebhook(services: Services, slug: string, message: Signed): Promise<Received> {
  const webhookId = readId('whk', slug)
  const em = crossOrganization(services)
  const webhook = webhookId === null ? null : await findWebhook(em, webhookId)
  if (webhookId === null || !webhook) throw new Failure('NOT_FOUND', 'There is no webhook at this address.')
  refuseUnsigned(services, slug, message, webhook.now)
  const { organizationId, automationId, stepId, plan, customLimits } = webhook
  const limit = customLimits?.requestsPerMinute ?? REQUESTS_PER_MINUTE[plan]
  await services.rateLimiter.take(em, organizationId, 'rest', limit)
  const body = readBody(message.body)
  const actor = { kind: 'public', id: slug, name: 'Inbound webhook' } as const
  return await unitOfWork(services, { organizationId, actor }, (call) =>
    receiveWebhook(call, { webhookId, automationId, stepId, messageId: message.id, body }),
  )
}

function refuseUnsigned({ config }: Services, slug: string, message: Signed, now: number): void {
  const fault = signatureFault(config.secret, slug, message, now)
  if (fault === null) return
  throw new Failure('UNAUTHENTICATED', `The message is not signed as Standard Webhooks asks: ${fault}.`)
}

function signatureFault(secret: string, slug: string, message: Signed, now: number): string | null {
  const { id, timestamp } = message
  if (!/^[\x21-\x7e]{1,256}$/.test(id) || !/^\d{1,12}$/.test(timestamp)) {
    return 'the headers webhook-id, webhook-timestamp and webhook-signature are not all there'
  }
  if (Math.abs(Number(timestamp) - now) > TOLERANCE_SECONDS) {
    return `the timestamp is more than ${TOLERANCE_SECONDS} seconds off`
  }
  if (isSigned(secret, slug, message)) return null
  return 'the signature is not that of this body under the secret of this address'
}

function readBody(text: string): Record<string, unknown> {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw new Failure('MALFORMED_BODY', 'The body is not valid JSON; check quotes, commas and brackets.')
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new Failure('MALFORMED_BODY', 'The body must be a JSON object with email or subscriberId.')
  }
  const hostile = hostileFaults(body)
  if (hostile.length > 0) refuseFaults(hostile, 'The body')
  return { ...body }
}
