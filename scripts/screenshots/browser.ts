import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

import { isRecord } from '../../src/domain/audience/values.ts'

/** What one picture is of: a page as wide as this, in light or in dark colours, in all its height. */
export type Shot = { url: string; width: number; isDark: boolean; file: string }

/** A headless Chromium that takes pictures. */
export type Browser = {
  /** Writes a PNG and answers how wide the page came to be: wider than was asked is a page that scrolls sideways. */
  take(shot: Shot): Promise<number>
  close(): Promise<void>
}

type Answer = Record<string, unknown>
type Waiting = { resolve: (answer: Answer) => void; reject: (error: Error) => void }

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--remote-debugging-pipe']
const PHONE_WIDTH = 600
/** Chromium paints no picture that is higher. */
const HIGHEST = 16_000

/** Starts a Chromium, which is spoken to by its descriptors 3 and 4. */
export function openBrowser(program: string): Browser {
  const profile = mkdtempSync(join(tmpdir(), 'postloom-chromium-'))
  const child = spawn(program, [...FLAGS, `--user-data-dir=${profile}`], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close')
  const talk = new Talk(child)
  return {
    take: (shot) => take(talk, shot),
    async close() {
      child.kill()
      await ended
      rmSync(profile, { recursive: true, force: true })
    },
  }
}

async function take(talk: Talk, { url, width, isDark, file }: Shot): Promise<number> {
  const { targetId } = await talk.ask('Target.createTarget', { url: 'about:blank' })
  const { sessionId } = await talk.ask('Target.attachToTarget', { targetId, flatten: true })
  const ask = (method: string, params: object) => talk.ask(method, params, String(sessionId))
  const resize = (height: number) =>
    ask('Emulation.setDeviceMetricsOverride', {
      width,
      height,
      deviceScaleFactor: 1,
      mobile: width < PHONE_WIDTH,
    })
  await ask('Page.enable', {})
  await resize(800)
  const features = [{ name: 'prefers-color-scheme', value: isDark ? 'dark' : 'light' }]
  await ask('Emulation.setEmulatedMedia', { features })
  const loaded = talk.hear('Page.loadEventFired', String(sessionId))
  await ask('Page.navigate', { url })
  await loaded
  const { cssContentSize } = await ask('Page.getLayoutMetrics', {})
  if (!isRecord(cssContentSize)) throw new Error('Chromium does not say how large the page is')
  await resize(Math.min(Math.ceil(Number(cssContentSize['height'])), HIGHEST))
  const { data } = await ask('Page.captureScreenshot', { format: 'png' })
  writeFileSync(file, Buffer.from(String(data), 'base64'))
  await talk.ask('Target.closeTarget', { targetId })
  return Number(cssContentSize['width'])
}

/** The DevTools protocol: JSON texts with a zero byte after each, answers by the number of their question. */
class Talk {
  readonly #input: Writable
  readonly #asked = new Map<number, Waiting>()
  readonly #awaited = new Map<string, Waiting>()
  #last = 0
  #rest = ''

  constructor(child: ChildProcess) {
    const [, , , input, output] = child.stdio
    // Both are pipes by the way the child is started.
    this.#input = input as Writable
    const answers = output as Readable
    answers.setEncoding('utf8')
    answers.on('data', (chunk: string) => this.#read(chunk))
    child.once('error', (error) => this.#fail(error))
    child.once('exit', (code) => this.#fail(new Error(`the browser ended with ${code}`)))
    this.#input.on('error', (error) => this.#fail(error))
  }

  async ask(method: string, params: object, sessionId?: string): Promise<Answer> {
    const id = ++this.#last
    return await new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject })
      this.#input.write(`${JSON.stringify({ id, method, params, sessionId })}\0`)
    })
  }

  async hear(event: string, sessionId: string): Promise<Answer> {
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
    const waiting = this.#asked.get(Number(id)) ?? this.#awaited.get(`${String(sessionId)} ${String(method)}`)
    this.#asked.delete(Number(id))
    if (isRecord(error)) waiting?.reject(new Error(`Chromium: ${String(error['message'])}`))
    else waiting?.resolve(isRecord(result) ? result : {})
  }

  #fail(error: Error): void {
    for (const { reject } of [...this.#asked.values(), ...this.#awaited.values()]) reject(error)
  }
}
