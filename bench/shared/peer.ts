import { basename, join } from 'node:path'

import { type Child, startChild } from '../../scripts/services/child.ts'

const TRIES = 600
const PAUSE_MS = 50

/**
 * Runs a benchmark's own file with `--peer PORT` and waits until `isUp` confirms; by default, until it answers HTTP.
 */
export async function startPeer(
  file: string,
  port: number,
  environment: Record<string, string>,
  isUp: (port: number) => Promise<boolean> = answersHttp,
): Promise<Child> {
  const child = await startChild({
    command: process.execPath,
    arguments: [file, '--peer', String(port)],
    identity: basename(file),
    pidFile: join(process.env['TMPDIR'] ?? '/tmp', `postloom-peer-${port}.pid`),
    output: (line) => console.error(`peer: ${line}`),
    environment: { ...process.env, ...environment },
    directory: join(import.meta.dirname, '..', '..'),
  })
  for (let attempt = 0; attempt < TRIES; attempt++) {
    if (await isUp(port)) return child
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  await child.stop()
  throw new Error(`the peer did not come up within ${(TRIES * PAUSE_MS) / 1_000} s`)
}

async function answersHttp(port: number): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined)
  return answer !== undefined
}
