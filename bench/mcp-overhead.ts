import { Agent } from 'node:http'
import { parseArgs } from 'node:util'

import { keepBusy, type Load, post, type Target } from './shared/load.ts'
import { median, report } from './shared/report.ts'
import { startSystem } from './shared/system.ts'

/**
 * mcp-overhead: requests per second of a cheap read over MCP with a token, compared with the same tool over the Tools
 * API in the same process. The benchmark first proves that both return the same. The Tools API runs first and last,
 * with three runs of MCP between.
 */
parseArgs({ options: { json: { type: 'string' } } })
const CONNECTIONS = 16
const SECONDS = 4
const RUNS = 3
const INPUT = { email: 'ada@reader.example' }
/** The metadata about the sender that every message of revision 2026-07-28 has. */
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

const system = await startSystem({ worker: false })
try {
  const headers = { authorization: `Bearer ${system.token}`, 'content-type': 'application/json' }
  const tool = (name: string, input: object): Target => ({
    url: `${system.url}/api/v2/tools/${name}`,
    headers,
    body: () => JSON.stringify(input),
  })
  const overMcp: Target = {
    url: `${system.url}/api/mcp/sse`,
    headers: {
      ...headers,
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'get_subscriber',
    },
    body: () =>
      JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'get_subscriber', arguments: INPUT, _meta: META },
      }),
  }
  const overTools = tool('get_subscriber', INPUT)
  await ask(tool('add_subscriber', { ...INPUT, name: 'Ada', tags: ['bench'], fields: { plan: 'pro' } }))
  await prove(overTools, overMcp)
  for (const target of [overTools, overMcp]) await keepBusy(target, CONNECTIONS, 1)
  const beside = [await keepBusy(overTools, CONNECTIONS, SECONDS)]
  const ours: Load[] = []
  for (let run = 0; run < RUNS; run++) {
    ours.push(await keepBusy(overMcp, CONNECTIONS, SECONDS))
    beside.push(await keepBusy(overTools, CONNECTIONS, SECONDS))
  }
  const [mine, theirs] = [figures(ours), figures(beside)]
  report({
    benchmark: 'mcp-overhead',
    settings: { connections: CONNECTIONS, seconds: SECONDS, runs: RUNS, tool: 'get_subscriber' },
    figures: { MCP: { ...mine, 'API peak MB': system.memory('api').peak }, 'Tools API': theirs },
    ratio: mine['req/s'] / theirs['req/s'],
    must: '≥ 0.5×',
    aim: '≥ 0.8×',
  })
} finally {
  await system.stop()
}

async function ask(target: Target): Promise<string> {
  const agent = new Agent()
  try {
    return await post(target, agent)
  } finally {
    agent.destroy()
  }
}

async function prove(overTools: Target, overMcp: Target): Promise<void> {
  const { data } = JSON.parse(await ask(overTools))
  const { result } = JSON.parse(await ask(overMcp))
  if (JSON.stringify(data) !== JSON.stringify(result.structuredContent) || data.subscriber.name !== 'Ada') {
    throw new Error(`the Tools API gave ${JSON.stringify(data)}, MCP ${JSON.stringify(result)}`)
  }
}

function figures(runs: readonly Load[]) {
  const middle = (value: (run: Load) => number) => Math.round(median(runs.map(value)) * 100) / 100
  return {
    'req/s': Math.round(middle(({ perSecond }) => perSecond)),
    'p50 ms': middle(({ p50 }) => p50),
    'p99 ms': middle(({ p99 }) => p99),
  }
}
