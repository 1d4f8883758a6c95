import { createServer, type Server } from 'node:http'

import { collectDefaultMetrics, Counter, Registry } from 'prom-client'

import type { ApiClient } from './api-client.ts'
import type { Replied } from './server.ts'

/**
 * Creates the server for `/healthz`, `/readyz` (whether the API answers) and `/metrics`; the caller makes it listen.
 */
export function startHealthServer(api: ApiClient): {
  server: Server
  countReply: (what: Replied, reply: number) => void
} {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const replies = new Counter({
    name: 'postloom_smtp_replies_total',
    help: 'Messages, logins, reports and refused recipients by the reply they got.',
    labelNames: ['what', 'reply'],
    registers: [registry],
  })

  async function answer(path: string): Promise<{ status: number; type: string; body: string }> {
    if (path === '/healthz') return json(200, { status: 'ok' })
    if (path === '/metrics')
      return { status: 200, type: registry.contentType, body: await registry.metrics() }
    if (path !== '/readyz') return json(404, { status: 'not found' })
    const isReady = await api.isReachable()
    return json(isReady ? 200 : 503, {
      status: isReady ? 'ready' : 'not ready',
      dependencies: { api: isReady ? 'ok' : 'unreachable; messages are answered with 451' },
    })
  }

  const server = createServer((request, response) => {
    answer(request.url ?? '/')
      .then(({ status, type, body }) => response.writeHead(status, { 'content-type': type }).end(body))
      .catch(() => response.destroy())
  })
  return { server, countReply: (what, reply) => replies.inc({ what, reply: String(reply) }) }
}

function json(status: number, body: unknown) {
  return { status, type: 'application/json', body: JSON.stringify(body) }
}
