import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { eventually } from '../test/helpers/eventually.ts'

/** A page of a headless Chromium. */
export type Page = {
  /** Opens an address and waits until the condition, an expression of the page, holds. */
  open(url: string, condition: string): Promise<void>
  /** What an expression comes to in the page. */
  evaluate(expression: string): Promise<unknown>
  picture(height: number): Promise<Buffer>
}

export type Browser = { page: Page; close(): Promise<void> }

type Answer = { id?: number; result?: Record<string, unknown>; error?: { message: string } }

/** Wide enough for the columns of lists, and then smaller by a quarter, which a document can show. */
const WIDTH = 1_500
const HEIGHT = 1_000
const SCALE = 0.75
const PATIENCE = { withinMs: 90_000, everyMs: 250 }

/** Starts Chromium (CHROMIUM, or the one on the path) and talks to it by its DevTools protocol. */
export async function openBrowser(command = process.env['CHROMIUM'] ?? 'chromium'): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), 'postloom-chromium-'))
  const child = spawn(
    command,
    [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--hide-scrollbars',
      '--remote-debugging-port=0',
      `--user-data-dir=${profile}`,
      'about:blank',
    ],
    { stdio: 'ignore' },
  )
  const gone = new Promise((resolve) => child.once('exit', resolve))
  async function close(): Promise<void> {
    child.kill()
    await gone
    rmSync(profile, { recursive: true, force: true })
  }
  try {
    const target = await eventually(
      'Chromium',
      async () => {
        const [port] = readFileSync(join(profile, 'DevToolsActivePort'), 'utf8').split('\n')
        const answer = await fetch(`http://127.0.0.1:${port}/json/list`)
        // As the protocol describes it.
        const targets = (await answer.json()) as { type: string; webSocketDebuggerUrl: string }[]
        return targets.find(({ type }) => type === 'page')
      },
      PATIENCE,
    )
    return { page: await openPage(target.webSocketDebuggerUrl), close }
  } catch (error) {
    await close()
    throw error
  }
}

async function openPage(address: string): Promise<Page> {
  const socket = new WebSocket(address)
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', () => reject(new Error('Chromium does not answer')))
  })
  const waiting = new Map<number, (answer: Answer) => void>()
  socket.addEventListener('message', ({ data }) => {
    // The protocol sends JSON.
    const answer = JSON.parse(String(data)) as Answer
    if (answer.id !== undefined) waiting.get(answer.id)?.(answer)
  })
  let last = 0

  async function send(method: string, parameters: object = {}): Promise<Record<string, unknown>> {
    const id = (last += 1)
    const answered = new Promise<Answer>((resolve) => waiting.set(id, resolve))
    socket.send(JSON.stringify({ id, method, params: parameters }))
    const { result, error } = await answered
    waiting.delete(id)
    if (error) throw new Error(`${method}: ${error.message}`)
    return result ?? {}
  }

  const size = { width: WIDTH, height: HEIGHT, deviceScaleFactor: 1, mobile: false }
  await send('Emulation.setDeviceMetricsOverride', size)

  async function evaluate(expression: string): Promise<unknown> {
    const { result } = await send('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true })
    return Object(result).value
  }

  return {
    evaluate,
    async open(url, condition) {
      await send('Page.navigate', { url })
      await eventually(`${url} to show ${condition}`, () => evaluate(`Boolean(${condition})`), PATIENCE)
    },
    async picture(height) {
      const clip = { x: 0, y: 0, width: WIDTH, height, scale: SCALE }
      const { data } = await send('Page.captureScreenshot', { format: 'png', clip })
      return Buffer.from(String(data), 'base64')
    },
  }
}
