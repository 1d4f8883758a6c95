import { databaseCode, isOwnFault } from '../src/catalogue/database-error.ts'
import { hostileFaults } from '../src/catalogue/input.ts'
import { crossOrganization, unitOfWork } from '../src/catalogue/unit-of-work.ts'
import {
  claimWebhooks,
  type ClaimedWebhook,
  type KeptResponse,
  reportWebhook,
  type WebhookRequest,
  type WebhookResult,
} from '../src/domain/automations/webhooks/webhooks.ts'
import { signatureHeaders, webhookSecret } from '../src/domain/webhooks/signature.ts'
import { encodeId } from '../src/ids.ts'
import { describeFault } from '../src/log.ts'
import { WebFault } from '../src/ports/web-fault.ts'
import type { WebAnswer } from '../src/ports/web.ts'
import type { Services } from '../src/services.ts'
import { askedSeconds } from './retry-after.ts'
import { startServing } from './rounds.ts'

const POLL_MS = 500
/** The most concurrent requests of this process. */
const MOST = 16
/** How many bytes of an answer are read, and how many of them a run keeps. */
const READ_BYTES = 262_144
const KEPT_BYTES = 16_384
const CUT_LENGTH = 4_096
/**
 * A request is sent at most so many times more than its retries allow when results are never saved, as when workers
 * crash with it.
 */
const MOST_LOST = 10
const FIRST_RETRY_MS = 1_000
const LONGEST_RETRY_MS = 3_600_000
/** Statuses that may be different next time. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 425, 429])

/**
 * Sends the requests of WEBHOOK steps: each is claimed with a lease, sent without an open transaction, and reported in
 * one. When a worker dies in between, another sends the request again with the same id, by which the receiver
 * recognizes a repetition.
 */
export function startWebhookSteps(services: Services, graceMs: number): { stop(): Promise<void> } {
  return startServing(services, {
    graceMs,
    pollMs: POLL_MS,
    most: MOST,
    complaint: 'WEBHOOK steps cannot be sent',
    claim: (free) => claimWebhooks(crossOrganization(services), free),
    serve: (webhook) => send(services, webhook),
  })
}

async function send(services: Services, webhook: ClaimedWebhook): Promise<void> {
  const { organizationId, runId, request } = webhook
  const actor = { kind: 'run' as const, id: encodeId('run', runId), name: 'workflow run' }
  const report = (result: WebhookResult) =>
    unitOfWork(services, { organizationId, actor }, (call) => reportWebhook(call, webhook, result))
  try {
    const isLost = webhook.attempt > request.retries + 1 + MOST_LOST
    const result = isLost ? unnoted(webhook) : await attempt(services, webhook)
    await report(result).catch(async (error: unknown) => {
      if (!isOwnFault(error)) throw error
      services.log.warn({ fault: describeFault(error), runId }, 'what came of a webhook cannot be kept')
      await report(unkept(webhook, result, databaseCode(error)))
    })
  } catch (error) {
    // The request is claimed again when its lease ends.
    services.log.warn({ fault: describeFault(error), runId }, 'a webhook could not be reported')
  }
}

/**
 * Returns the final result of a request whose result could never be saved, so that its receiver is not asked any more.
 */
function unnoted(webhook: ClaimedWebhook): WebhookResult {
  return failed(webhook, { fault: 'UNNOTED' }, 'was asked, but what came of it could not be noted', null)
}

/**
 * Returns the final result of a request whose result the database rejects: another attempt would be rejected as well.
 */
function unkept(webhook: ClaimedWebhook, { status }: WebhookResult, code: string | undefined): WebhookResult {
  const what = `was asked, but what came of it cannot be kept (${code})`
  return failed(webhook, { status, fault: 'UNKEPT' }, what, null)
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
    const response = webhook.request.saveResponseAs === null ? null : readResponse(body)
    return { status, fault: null, reason: null, retryMs: null, response }
  }
  const mayChange = status >= 500 || TRANSIENT.has(status)
  const asked = askedSeconds(headers) * 1_000
  const isRedirect = status >= 300 && status < 400
  const hint = isRedirect ? ': redirects are not followed, name the address they lead to' : ''
  return failed(webhook, { status }, `answered ${status}${hint}`, mayChange ? asked : null)
}

/**
 * Returns the result of a failed attempt. `leastMs` is the shortest time until a retry; null means that a retry would
 * fail in the same way.
 */
function failed(
  { request, attempt }: ClaimedWebhook,
  answered: Partial<Pick<WebhookResult, 'status' | 'fault'>>,
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

/** Returns the URL without its query, which may hold personal data or a secret. */
function placeOf({ url }: WebhookRequest): string {
  const read = URL.parse(url)
  return read ? read.origin + read.pathname : 'the address'
}

/**
 * Returns a response as JSON when it can be kept so, else as text; a response that is too long for a run is cut off.
 */
function readResponse(body: Buffer): KeptResponse {
  const text = body.toString('utf8').replaceAll('\u0000', '')
  if (body.length > KEPT_BYTES) {
    // Half of a character that was cut in two is removed too.
    const value = text.slice(0, CUT_LENGTH).replace(/[\uD800-\uDBFF]$/, '')
    return { value, note: `cut to ${CUT_LENGTH} characters of text: longer than ${KEPT_BYTES} bytes` }
  }
  const value = readJson(text)
  const [hostile] = hostileFaults(value)
  return hostile ? { value: text, note: `kept as text: ${hostile.message}` } : { value, note: null }
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
