import { createHmac } from 'node:crypto'

/**
 * Signatures of the Standard Webhooks specification: over id, time and body, with a secret shared with the receiver.
 */

/** The prefix of a secret; the key follows in base64. */
export const SECRET_PREFIX = 'whsec_'

/** The signed parts of a request; `timestamp` is in seconds since 1970. */
export type Message = { id: string; timestamp: string; body: string }

/**
 * Returns the secret for WEBHOOK steps of an organization. It is derived from the service's own secret, so nothing has
 * to be stored.
 */
export function webhookSecret(secret: string, organizationId: string): string {
  return SECRET_PREFIX + createHmac('sha256', secret).update(`webhook/${organizationId}`).digest('base64')
}

/** Returns the "v1" signature of a message. */
export function sign(key: Buffer, { id, timestamp, body }: Message): Buffer {
  return createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest()
}

/**
 * Returns the signature headers of a request, with a signature for each secret. `id` is the same for every attempt;
 * `seconds` is the time of the attempt.
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
