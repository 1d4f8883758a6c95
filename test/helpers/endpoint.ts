import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'

import { Webhook, WebhookVerificationError } from 'standardwebhooks'

import { listenOnLoopback } from './listen.ts'

/** A request made by a webhook. */
export type Told = { path: string; headers: IncomingHttpHeaders; body: string }

/** Answers a request; `number` counts the requests of its path from 1. */
export type Answering = (response: ServerResponse, number: number) => void

/** Webhook endpoints on 127.0.0.1, one per path. `allow` is the setting that lets webhooks reach them. */
export type Endpoints = {
  url: string
  allow: { WEB_ALLOW_PRIVATE: string }
  told(path: string): Told[]
  /** Returns the event ids that a path received, including repetitions. */
  ids(path: string): string[]
  answer(path: string, answering: Answering): void
  /** Returns the highest number of concurrent requests of a path. */
  mostOpen(path: string): number
  close(): void
}

/** Starts a server that answers 200 on every path until `answer` sets something else. */
export async function startEndpoints(): Promise<Endpoints> {
  const all: Told[] = []
  const answers = new Map<string, Answering>()
  const open = new Map<string, number>()
  const most = new Map<string, number>()
  const told = (path: string) => all.filter((each) => each.path === path)
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    const now = (open.get(path) ?? 0) + 1
    open.set(path, now)
    most.set(path, Math.max(now, most.get(path) ?? 0))
    response.once('close', () => open.set(path, (open.get(path) ?? 0) - 1))
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      all.push({ path, headers: request.headers, body: Buffer.concat(parts).toString('utf8') })
      const answering = answers.get(path)
      if (answering) answering(response, told(path).length)
      else response.end()
    })
  })
  const port = await listenOnLoopback(server)
  return {
    url: `http://127.0.0.1:${port}`,
    allow: { WEB_ALLOW_PRIVATE: `127.0.0.1:${port}` },
    told,
    ids: (path) => told(path).map(({ headers }) => String(headers['webhook-id'])),
    answer: (path, answering) => answers.set(path, answering),
    mostOpen: (path) => most.get(path) ?? 0,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Returns a function that answers with this status, body and headers. */
export function status(code: number, body = '', headers: Record<string, string> = {}): Answering {
  return (response) => response.writeHead(code, headers).end(body)
}

/** Counts the signatures of a request that the Standard Webhooks library accepts with a secret. */
export function countRight(secret: string, { headers, body }: Told): number {
  const said = (name: string) => String(headers[name])
  return said('webhook-signature')
    .split(' ')
    .filter((signature) => {
      try {
        new Webhook(secret).verify(body, {
          'webhook-id': said('webhook-id'),
          'webhook-timestamp': said('webhook-timestamp'),
          'webhook-signature': signature,
        })
        return true
      } catch (error) {
        if (error instanceof WebhookVerificationError) return false
        throw error
      }
    }).length
}
