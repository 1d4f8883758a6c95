import { spawn } from 'node:child_process'
import { createServer, request, type Server } from 'node:http'
import { join } from 'node:path'

import { listenOnLoopback } from './listen.ts'

/** The scenarios that apply to any server. The others need specific tools, prompts and resources. */
const SCENARIOS = [
  'server-initialize',
  'ping',
  'tools-list',
  'prompts-list',
  'resources-list',
  'dns-rebinding-protection',
]

/** Runs the MCP conformance suite against a server. Returns the output of each failed scenario. */
export async function conformanceFaults(url: string, path: string, token: string): Promise<string[]> {
  const proxy = await startProxy(url, token)
  const faults: string[] = []
  try {
    for (const scenario of SCENARIOS) {
      const { code, output } = await runScenario(`${proxy.url}${path}`, scenario)
      if (code !== 0) faults.push(output)
    }
  } finally {
    proxy.server.close()
  }
  return faults
}

/** Starts a proxy that adds the token, because the suite cannot send one. */
async function startProxy(target: string, token: string): Promise<{ server: Server; url: string }> {
  const { hostname, port } = new URL(target)
  const server = createServer((incoming, outgoing) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` }
    const passed = request(
      { hostname, port, path: incoming.url, method: incoming.method, headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(outgoing)
      },
    )
    passed.on('error', () => outgoing.destroy())
    incoming.pipe(passed)
  })
  return { server, url: `http://127.0.0.1:${await listenOnLoopback(server)}` }
}

async function runScenario(url: string, scenario: string): Promise<{ code: number | null; output: string }> {
  const suite = join(
    import.meta.dirname,
    '../../node_modules/@modelcontextprotocol/conformance/dist/index.js',
  )
  const child = spawn(process.execPath, [suite, 'server', '--url', url, '--scenario', scenario])
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve))
  return { code, output }
}
