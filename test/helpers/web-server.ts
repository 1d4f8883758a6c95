import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What a path of the test's web server answers. */
export type WebPage = {
  type?: string
  body: string | Buffer
  status?: number
  headers?: Record<string, string>
  /** What happens before it answers. */
  before?: () => Promise<void>
}

/** A web server on 127.0.0.1 for what tools fetch; `allow` is the setting that lets them. */
export type WebServer = {
  url: string
  allow: { WEB_ALLOW_PRIVATE: string }
  /** The paths that were asked for, in order. */
  requests: string[]
  close(): void
}

/** Serves `pages` by path, looked up at each request, so that a test may change them. */
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
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A listening TCP server has an address object.
  const { port } = server.address() as AddressInfo
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
