import { Agent, request } from 'node:http'
import { performance } from 'node:perf_hooks'

import { percentile } from './report.ts'

/** A request that is sent repeatedly. */
export type Target = { url: string; headers: Record<string, string>; body: () => string }
/** The result of a load test; times in milliseconds. */
export type Load = { perSecond: number; p50: number; p99: number; answered: number }

/** Keeps all connections busy for `seconds`. */
export async function keepBusy(target: Target, connections: number, seconds: number): Promise<Load> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const times: number[] = []
  const started = performance.now()
  const end = started + seconds * 1_000
  async function client(): Promise<void> {
    while (performance.now() < end) {
      const sent = performance.now()
      await post(target, agent)
      times.push(performance.now() - sent)
    }
  }
  await Promise.all(Array.from({ length: connections }, client))
  const elapsed = (performance.now() - started) / 1_000
  agent.destroy()
  return {
    perSecond: times.length / elapsed,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    answered: times.length,
  }
}

/** Sends a POST and returns the body of the answer; rejects when the status is not 200. */
export function post({ url, headers, body }: Target, agent: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const content = body()
    const length = String(Buffer.byteLength(content))
    const sent = request(
      url,
      { method: 'POST', agent, headers: { ...headers, 'content-length': length } },
      (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (text += chunk))
        response.once('error', reject)
        response.once('end', () => {
          if (response.statusCode === 200) resolve(text)
          else reject(new Error(`${url} answered ${response.statusCode}: ${text}`))
        })
      },
    )
    sent.once('error', reject)
    sent.end(content)
  })
}
