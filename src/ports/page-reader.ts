import { Worker } from 'node:worker_threads'

/** A web page as it was received; `charset` is the one in its header. */
export type Page = { html: Uint8Array; url: string; charset: string | null }

/** The main content of a page as Markdown, and what the page says about itself. */
export type PageText = {
  title: string
  markdown: string
  description: string | null
  author: string | null
  site: string | null
  language: string | null
  published: string | null
  wordCount: number
}

/** A page that could not be read: `BUSY` is temporary, `TOO_COMPLEX` concerns the page itself. */
export class PageFault extends Error {
  readonly reason: 'BUSY' | 'TOO_COMPLEX'

  constructor(reason: PageFault['reason'], cause?: unknown) {
    super(reason === 'BUSY' ? 'too many pages are being read' : 'the page cannot be read', { cause })
    this.name = 'PageFault'
    this.reason = reason
  }
}

/** Reads untrusted pages. Throws PageFault. */
export type PageReader = { read(page: Page): Promise<PageText> }

const THREADS = 2
const WAITING = 16
const MEMORY = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 }

/**
 * Creates a reader that reads each page in its own thread. The thread is ended when the page takes longer than
 * `milliseconds` or too much memory: parsing a hostile page can take forever, and this process has others to answer.
 */
export function createPageReader({ milliseconds = 10_000 }: { milliseconds?: number } = {}): PageReader {
  let active = 0
  const waiting: (() => void)[] = []

  /**
   * Waits for a free place; a thread that ends passes its place to the longest waiter. Throws `BUSY` when too many
   * wait.
   */
  async function takePlace(): Promise<void> {
    if (active < THREADS) {
      active += 1
      return
    }
    if (waiting.length >= WAITING) throw new PageFault('BUSY')
    await new Promise<void>((resolve) => waiting.push(resolve))
  }

  function leavePlace(): void {
    const next = waiting.shift()
    if (next) next()
    else active -= 1
  }

  return {
    async read(page) {
      await takePlace()
      try {
        return await readInThread(page, milliseconds)
      } finally {
        leavePlace()
      }
    },
  }
}

async function readInThread(page: Page, milliseconds: number): Promise<PageText> {
  // The thread gets nothing of this process: no environment, no flags, no output.
  const thread = new Worker(new URL('./page-thread.ts', import.meta.url), {
    resourceLimits: MEMORY,
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
  })
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise<PageText>((resolve, reject) => {
      thread.on('message', (message: 'LOADED' | PageText) => {
        if (message !== 'LOADED') return resolve(message)
        timer = setTimeout(() => reject(new PageFault('TOO_COMPLEX')), milliseconds)
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
        thread.postMessage(page)
      })
      thread.once('error', (error) => reject(new PageFault('TOO_COMPLEX', error)))
      thread.once('exit', () => reject(new PageFault('TOO_COMPLEX')))
    })
  } finally {
    clearTimeout(timer)
    await thread.terminate()
  }
}
