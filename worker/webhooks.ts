import { crossOrganization, unitOfWork } from '../src/catalogue/unit-of-work.ts'
import {
  claimWebhooks,
  type ClaimedWebhook,
  reportWebhook,
  type WebhookRequest,
  type WebhookResult,
} from '../src/domain/automations/webhooks/webhooks.ts'
import { signatureHeaders, webhookSecret } from '../src/domain/webhooks/signature.ts'
import { encodeId } from '../src/ids.ts'
import { describeFault } from '../src/log.ts'
import type { WebAnswer } from '../src/ports/web.ts'
import { WebFault } from '../src/ports/web-fault.ts'
import type { Services } from '../src/services.ts'
import { askedSeconds } from './retry-after.ts'
import { startServing } from './rounds.ts'

const POLL_MS = 500
/** Requests under way at any moment in this process. */
const MOST = 16
/** How much of an answer is read, and how much of it a run keeps. */
const READ_BYTES = 262_144
const KEPT_BYTES = 16_384
const FIRST_RETRY_MS = 1_000
const LONGEST_RETRY_MS = 3_600_000
/** Answers that may be different next time. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 425, 429])

/**
 * Sends what WEBHOOK steps wrote down: claimed with a lease, sent with no transaction open, reported in one. A worker
 * that dies in between leaves the request to another, with the same id, by which the receiver knows a repetition.
 */
export function startWebhooks(services: Services): { stop(): Promise<void> } {
  return startServing(services, {
    pollMs: POLL_MS,
    most: MOST,
    complaint: 'WEBHOOK steps cannot be sent',
    claim: (free) => claimWebhooks(crossOrganization(services), free),
    serve: (webhook) => send(services, webhook),
  })
}

async function send(services: Services, webhook: ClaimedWebhook): Promise<void> {
  const { organizationId, runId } = webhook
  try {
    const result = await attempt(services, webhook)
    const actor = { kind: 'run' as const, id: encodeId('run', runId), name: 'workflow run' }
    await unitOfWork(services, { organizationId, actor }, (call) => reportWebhook(call, webhook, result))
  } catch (error) {
    // The lease brings it back.
    services.log.warn({ fault: describeFault(error), runId }, 'a webhook could not be reported')
  }
}

async function attempt(services: Services, webhook: ClaimedWebhook): Promise<WebhookResult> {
  const { request, organizationId } = webhook
  const body = request.body ?? ''
  const secret = webhookSecret(services.config.secret, organizationId)
  const id = `${encodeId('run', webhook.runId)}_${request.firstVisit}`
  const signature = signatureHeaders([secret], { id, seconds: Math.floor(Date.now() / 1_000), body })
  try {
    const answer = await services.web.request({
      url: request.url,
      method: request.method,
      headers: { ...request.headers, ...signature },
      ...(request.body !== null && { body }),
      limits: { bytes: READ_BYTES, milliseconds: request.timeoutSeconds * 1_000 },
    })
    return judge(webhook, answer)
  } catch (error) {
    if (!(error instanceof WebFault)) throw error
    const mayChange = error.reason !== 'INVALID_URL' && error.reason !== 'TOO_LARGE'
    return failed(webhook, { fault: error.reason }, error.message, mayChange ? 0 : null)
  }
}

function judge(webhook: ClaimedWebhook, { status, headers, body }: WebAnswer): WebhookResult {
  if (status >= 200 && status < 300) {
    return { status, fault: null, reason: null, retryMs: null, response: readResponse(body) }
  }
  const mayChange = status >= 500 || TRANSIENT.has(status)
  const asked = askedSeconds(headers) * 1_000
  return failed(webhook, { status }, `answered ${status}`, mayChange ? asked : null)
}

/** `leastMs` null: another attempt would come to the same. */
function failed(
  { request, attempt }: ClaimedWebhook,
  answered: { status: number } | { fault: string },
  what: string,
  leastMs: number | null,
): WebhookResult {
  const isLast = leastMs === null || attempt > request.retries
  const delay = Math.max(FIRST_RETRY_MS * 4 ** (attempt - 1), leastMs ?? 0)
  const times = attempt === 1 ? '' : ` after ${attempt} attempts`
  return {
    status: null,
    fault: null,
    ...answered,
    reason: `${request.method} ${placeOf(request)} ${what}${times}; put the receiver right and retry the run (retry_workflow_run), or connect the port failed.`,
    retryMs: isLast ? null : Math.min(LONGEST_RETRY_MS, delay),
    response: null,
  }
}

/** The address without what may be somebody's data or a secret. */
function placeOf({ url }: WebhookRequest): string {
  const read = URL.parse(url)
  return read ? read.origin + read.pathname : 'the address'
}

/** JSON as it is, anything else as text; what is too much for a run to carry is cut off. */
function readResponse(body: Buffer): unknown {
  const text = body.toString('utf8').replaceAll('\u0000', '')
  if (body.length > KEPT_BYTES) return text.slice(0, KEPT_BYTES / 4)
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
