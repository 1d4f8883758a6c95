import { createHmac } from 'node:crypto'

/** Webhooks are signed as Standard Webhooks says: the id, the time and the body, with a secret that the receiver has. */

const PREFIX = 'whsec_'

/** The secret of an organization, made from the service's own: there is nothing to keep and nothing to lose. */
export function webhookSecret(secret: string, organizationId: string): string {
  return PREFIX + createHmac('sha256', secret).update(`webhook/${organizationId}`).digest('base64')
}

/** The headers that let a receiver know the sender; `id` is the same for every attempt, `seconds` is the attempt's time. */
export function signatureHeaders(
  secret: string,
  { id, seconds, body }: { id: string; seconds: number; body: string },
): Record<string, string> {
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': `v1,${signature}` }
}
