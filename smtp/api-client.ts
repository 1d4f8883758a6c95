import { Agent, request as requestHttp, type IncomingMessage } from 'node:http'
import { Agent as TlsAgent, request as requestHttps } from 'node:https'
import { urlToHttpOptions } from 'node:url'

import type { InboundReport } from '../schema/report.ts'
import type { Submission } from './message.ts'
import { REPLIES, Refusal } from './refusal.ts'

/** The calls of the SMTP servers to the API. They throw `Refusal` with the SMTP reply that the API chose. */
export type ApiClient = {
  /** Throws `Refusal` when the token is not valid or may not send email. */
  checkToken(token: string): Promise<void>
  /** Submits an email and returns its id; by then the email is stored. */
  submit(token: string, idempotencyKey: string, email: Submission): Promise<string>
  /** Submits a report about an email; once this resolves, the report is stored. */
  report(report: InboundReport): Promise<void>
  isReachable(): Promise<boolean>
  close(): void
}

type Answer = { status: number; reply: string | undefined; body: unknown }

const CONNECTIONS = 64
const TIMEOUT_MS = 30_000
const LONGEST_ANSWER = 1_000_000

/**
 * Creates a client that keeps its connections open. `internalSecret` makes the API accept a text part and name the SMTP
 * reply of a refusal; `host` is the host name under which the API is known.
 */
export function createApiClient(options: { url: string; host: string; internalSecret: string }): ApiClient {
  const { protocol, hostname, port } = urlToHttpOptions(new URL(options.url))
  const isTls = protocol === 'https:'
  const agent = new (isTls ? TlsAgent : Agent)({ keepAlive: true, maxSockets: CONNECTIONS })
  const request = isTls ? requestHttps : requestHttp

  async function once(
    method: string,
    path: string,
    headers: Record<string, string>,
    body = '',
  ): Promise<Answer> {
    return await new Promise((resolve, reject) => {
      const outgoing = request(
        {
          hostname,
          port,
          method,
          path,
          agent,
          timeout: TIMEOUT_MS,
          headers: {
            host: options.host,
            'postloom-internal': options.internalSecret,
            ...headers,
            ...(body && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
          },
        },
        (incoming) => readAnswer(incoming, resolve, reject),
      )
      outgoing.on('timeout', () => outgoing.destroy(new Error('the API did not answer in time')))
      outgoing.on('error', reject)
      outgoing.end(body)
    })
  }

  /**
   * Sends a request, and sends it again when the connection broke. That is safe, because emails have an idempotency key
   * and reports a fingerprint.
   */
  async function ask(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: string,
  ): Promise<Answer> {
    try {
      return await once(method, path, headers, body).catch(() => once(method, path, headers, body))
    } catch {
      throw new Refusal(REPLIES.API_AWAY, 'The service cannot be reached; try again in a moment')
    }
  }

  return {
    async checkToken(token) {
      const answer = await ask('GET', '/api/v2/tokens/current', { authorization: `Bearer ${token}` })
      if (answer.status !== 200) throw refusalOf(answer)
      const { permissions } = Object(answer.body)
      if (Array.isArray(permissions) && permissions.includes('emails')) return
      throw new Refusal(REPLIES.BAD_TOKEN, 'This token lacks the permission "emails"; use one that has it')
    },
    async submit(token, idempotencyKey, email) {
      const answer = await ask(
        'POST',
        '/api/v1/emails',
        { authorization: `Bearer ${token}`, 'idempotency-key': idempotencyKey },
        JSON.stringify(email),
      )
      if (answer.status !== 200) throw refusalOf(answer)
      return String(Object(answer.body).id)
    },
    async report(report) {
      const answer = await ask('POST', '/internal/reports', {}, JSON.stringify(report))
      if (answer.status !== 200) throw refusalOf(answer)
    },
    async isReachable() {
      return await once('GET', '/healthz', {}).then(
        ({ status }) => status === 200,
        () => false,
      )
    },
    close: () => agent.destroy(),
  }
}

/** Reads an answer by events: an async iterator took a third of the time of a request. */
function readAnswer(
  incoming: IncomingMessage,
  resolve: (answer: Answer) => void,
  reject: (error: unknown) => void,
): void {
  let text = ''
  incoming.setEncoding('utf8')
  incoming.on('data', (part: string) => {
    text += part
    if (text.length > LONGEST_ANSWER) incoming.destroy(new Error('the API answered too much'))
  })
  incoming.on('error', reject)
  incoming.on('end', () => {
    const reply = incoming.headers['smtp-reply']
    const isJson = incoming.headers['content-type']?.includes('json') === true
    try {
      resolve({
        status: incoming.statusCode ?? 0,
        reply: typeof reply === 'string' ? reply : undefined,
        body: isJson ? JSON.parse(text) : text,
      })
    } catch (error) {
      reject(error)
    }
  })
}

/**
 * Returns the refusal that the API chose. An answer without that reply means that something stands between us and the
 * API.
 */
function refusalOf({ reply, body }: Answer): Refusal {
  const [, code, enhanced, failure] = /^(\d{3}) (\d\.\d+\.\d+) ([A-Z_]+)$/.exec(reply ?? '') ?? []
  if (code === undefined || enhanced === undefined) {
    return new Refusal(REPLIES.API_AWAY, 'The service answered something unexpected; try again in a moment')
  }
  return new Refusal(
    [Number(code), enhanced],
    String(Object(body).message ?? Object(body).error ?? 'refused'),
    failure,
  )
}
