import { connect } from 'node:net'
import { performance } from 'node:perf_hooks'

import type { Load } from './load.ts'
import { percentile } from './report.ts'

const HEAD_END = Buffer.from('\r\n\r\n')

/**
 * Keeps connections busy with GETs over raw sockets. These cost a tenth of an HTTP client's processor time, so that the
 * server is measured and not the client. `next` returns a path and the status that its answer must have.
 */
export async function keepBusyRaw(
  port: number,
  connections: number,
  seconds: number,
  next: () => { path: string; status: number },
): Promise<Load> {
  const times: number[] = []
  const started = performance.now()
  const end = started + seconds * 1_000
  await Promise.all(Array.from({ length: connections }, () => visitUntil(port, end, times, next)))
  const elapsed = (performance.now() - started) / 1_000
  return {
    perSecond: times.length / elapsed,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    answered: times.length,
  }
}

function visitUntil(
  port: number,
  end: number,
  times: number[],
  next: () => { path: string; status: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.setNoDelay(true)
    let [sent, expected, answer] = [0, '', Buffer.alloc(0)]
    function ask(): void {
      sent = performance.now()
      if (sent >= end) {
        socket.end()
        resolve()
        return
      }
      const { path, status } = next()
      expected = `HTTP/1.1 ${status} `
      answer = Buffer.alloc(0)
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\nAccept: */*\r\n\r\n`,
      )
    }
    socket.once('error', reject)
    socket.once('connect', ask)
    socket.on('data', (chunk) => {
      answer = answer.length === 0 ? chunk : Buffer.concat([answer, chunk])
      const head = answer.indexOf(HEAD_END)
      if (head < 0) return
      const text = answer.toString('latin1', 0, head)
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? Number.NaN)
      if (Number.isNaN(length) || !text.startsWith(expected)) {
        socket.destroy()
        reject(new Error(`expected ${expected}, got: ${text}`))
        return
      }
      if (answer.length < head + HEAD_END.length + length) return
      times.push(performance.now() - sent)
      ask()
    })
  })
}
