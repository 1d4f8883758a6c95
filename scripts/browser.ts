import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

import { isRecord } from '../schema/json.ts'

/** A headless Chromium. */
export type Browser = { newPage(): Promise<Page>; close(): Promise<void> }

/** A page of the browser. Sizes are in CSS pixels. */
export type Page = {
  /** Sets the size of the window. A window narrower than `PHONE_WIDTH` emulates a phone. */
  resize(width: number, height: number): Promise<void>
  setColors(colors: 'dark' | 'light'): Promise<void>
  /** Opens a URL and waits until the page is loaded. */
  open(url: string): Promise<void>
  /** Returns the value of a JavaScript expression in the page. */
  evaluate(expression: string): Promise<unknown>
  /** Returns the size of the content. A page wider than its window scrolls sideways. */
  size(): Promise<{ width: number; height: number }>
  /** Returns a PNG of the window, or of a part of the page scaled by `scale`. */
  picture(part?: { width: number; height: number; scale: number }): Promise<Buffer>
  close(): Promise<void>
}

type Answer = Record<string, unknown>
type Waiting = { resolve: (answer: Answer) => void; reject: (error: Error) => void }

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--remote-debugging-pipe']
const PHONE_WIDTH = 600

/** Starts Chromium (`CHROMIUM`, or `chromium` on the PATH) and talks to it through its file descriptors 3 and 4. */
export function openBrowser(program = process.env['CHROMIUM'] ?? 'chromium'): Browser {
  const profile = mkdtempSync(join(tmpdir(), 'postloom-chromium-'))
  const child = spawn(program, [...FLAGS, `--user-data-dir=${profile}`], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close')
  const talk = new Talk(child)
  return {
    newPage: () => newPage(talk),
    async close() {
      child.kill()
      await ended
      rmSync(profile, { recursive: true, force: true })
    },
  }
}

async function newPage(talk: Talk): Promise<Page> {
  const { targetId } = await talk.ask('Target.createTarget', { url: 'about:blank' })
  const { sessionId } = await talk.ask('Target.attachToTarget', { targetId, flatten: true })
  const ask = (method: string, params: object = {}) => talk.ask(method, params, String(sessionId))
  await ask('Page.enable')
  return {
    async resize(width, height) {
      const mobile = width < PHONE_WIDTH
      await ask('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile })
    },
    async setColors(colors) {
      const features = [{ name: 'prefers-color-scheme', value: colors }]
      await ask('Emulation.setEmulatedMedia', { features })
    },
    async open(url) {
      await Promise.all([talk.hear('Page.loadEventFired', String(sessionId)), ask('Page.navigate', { url })])
    },
    async evaluate(expression) {
      const params = { expression, returnByValue: true, awaitPromise: true }
      const { result } = await ask('Runtime.evaluate', params)
      return isRecord(result) ? result['value'] : undefined
    },
    async size() {
      const { cssContentSize } = await ask('Page.getLayoutMetrics')
      if (!isRecord(cssContentSize)) throw new Error('Chromium does not say how large the page is')
      return { width: Number(cssContentSize['width']), height: Number(cssContentSize['height']) }
    },
    async picture(part) {
      const clip = part && { x: 0, y: 0, ...part }
      const { data } = await ask('Page.captureScreenshot', { format: 'png', ...(clip && { clip }) })
      return Buffer.from(String(data), 'base64')
    },
    async close() {
      await talk.ask('Target.closeTarget', { targetId })
    },
  }
}

/**
 * A client of the DevTools protocol: JSON texts, each followed by a zero byte. Answers have the id of their request.
 */
class Talk {
  readonly #input: Writable
  readonly #asked = new Map<number, Waiting>()
  readonly #awaited = new Map<string, Waiting>()
  #ended: Error | undefined
  #last = 0
  #rest = ''

  constructor(child: ChildProcess) {
    const [, , , input, output] = child.stdio
    // `openBrowser` starts the child with pipes at these descriptors.
    this.#input = input as Writable
    const answers = output as Readable
    answers.setEncoding('utf8')
    answers.on('data', (chunk: string) => this.#read(chunk))
    child.once('error', (error) => this.#fail(error))
    child.once('exit', (code) => this.#fail(new Error(`the browser ended with ${code}`)))
    this.#input.on('error', (error) => this.#fail(error))
  }

  async ask(method: string, params: object, sessionId?: string): Promise<Answer> {
    if (this.#ended) throw this.#ended
    const id = ++this.#last
    return await new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject })
      this.#input.write(`${JSON.stringify({ id, method, params, sessionId })}\0`)
    })
  }

  async hear(event: string, sessionId: string): Promise<Answer> {
    if (this.#ended) throw this.#ended
    return await new Promise((resolve, reject) =>
      this.#awaited.set(`${sessionId} ${event}`, { resolve, reject }),
    )
  }

  #read(chunk: string): void {
    const texts = (this.#rest + chunk).split('\0')
    this.#rest = texts.pop() ?? ''
    for (const text of texts) this.#take(JSON.parse(text))
  }

  #take({ id, method, sessionId, result, error }: Answer): void {
    const event = `${String(sessionId)} ${String(method)}`
    const waiting = this.#asked.get(Number(id)) ?? this.#awaited.get(event)
    this.#asked.delete(Number(id))
    this.#awaited.delete(event)
    if (isRecord(error)) waiting?.reject(new Error(`Chromium: ${String(error['message'])}`))
    else waiting?.resolve(isRecord(result) ? result : {})
  }

  #fail(error: Error): void {
    this.#ended ??= error
    for (const { reject } of [...this.#asked.values(), ...this.#awaited.values()]) reject(error)
  }
}
