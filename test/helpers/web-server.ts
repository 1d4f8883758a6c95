import { createServer } from 'node:http'

import { listenOnLoopback } from './listen.ts'

/** The response of one path of the test's web server. */
export type WebPage = {
  type?: string
  body: string | Buffer
  status?: number
  headers?: Record<string, string>
  /** Runs before the response is sent. */
  before?: () => Promise<void>
}

/** A web server on 127.0.0.1 for pages that tools fetch. `allow` is the setting that lets them. */
export type WebServer = {
  url: string
  allow: { WEB_ALLOW_PRIVATE: string }
  /** The requested paths, in order. */
  requests: string[]
  close(): void
}

/** Serves `pages` by path. They are looked up at each request, so a test may change them. */
export async function startWebServer(pages: Record<string, WebPage>): Promise<WebServer> {
  const requests: string[] = []
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    requests.push(path)
    const page = pages[path]
    if (!page) return response.writeHead(404).end()
    const { type = 'application/octet-stream', body, status = 200, headers, before } = page
    const answer = () => response.writeHead(status, { 'content-type': type, ...headers }).end(body)
    if (!before) return answer()
    return before().then(answer, () => response.destroy())
  })
  const port = await listenOnLoopback(server)
  return {
    url: `http://127.0.0.1:${port}`,
    allow: { WEB_ALLOW_PRIVATE: `127.0.0.1:${port}` },
    requests,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
