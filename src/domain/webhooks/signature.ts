import { createHmac } from 'node:crypto'

/** Webhooks are signed as Standard Webhooks says: the id, the time and the body, with a secret that the receiver has. */

/** What a secret begins with; the key follows in base64. */
export const SECRET_PREFIX = 'whsec_'

/** What a signature is made of; `timestamp` is in seconds since 1970. */
export type Message = { id: string; timestamp: string; body: string }

/** The secret of the WEBHOOK steps of an organization, made from the service's own: there is nothing to keep and nothing to lose. */
export function webhookSecret(secret: string, organizationId: string): string {
  return SECRET_PREFIX + createHmac('sha256', secret).update(`webhook/${organizationId}`).digest('base64')
}

/** The signature of a message, of version "v1". */
export function sign(key: Buffer, { id, timestamp, body }: Message): Buffer {
  return createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest()
}

/**
 * The headers that let a receiver know the sender, by any of these secrets; `id` is the same for every attempt,
 * `seconds` is the attempt's time.
 */
export function signatureHeaders(
  secrets: readonly string[],
  { id, seconds, body }: { id: string; seconds: number; body: string },
): Record<string, string> {
  const timestamp = String(seconds)
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
    return `v1,${sign(key, { id, timestamp, body }).toString('base64')}`
  })
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}
