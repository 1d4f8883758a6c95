import type { DevFile } from '../services/state.ts'
import { DemoError } from './report.ts'

/** The answer to a gated call that has no confirmation code yet. */
export type Challenge = { confirmationCode: string; summary: { effects: string[]; warnings: string[] } }

/** A message in the mailbox. */
export type Mail = {
  ID: string
  MessageID: string
  Subject: string
  Created: string
  To: { Address: string }[]
}

/** The progress of an import. */
export type Import = {
  id: string
  status: string
  rows: number
  expectedRows: number
  imported: number
  updated: number
  failed: number
  error: string | null
  finishedAt: string | null
}

/** A client of the public HTTP API and of the mailbox. */
export type Client = {
  /** Calls a tool and returns `data` of its answer; throws on every answer but success. */
  call<Data>(tool: string, input?: object): Promise<Data>
  /** Makes the first call of a gated tool, which returns a confirmation code. */
  challenge(tool: string, input: object): Promise<Challenge>
  /** Uploads a CSV file to import; `query` applies to every row. */
  upload(file: Buffer, query: Record<string, string>): Promise<Import>
  readImport(id: string): Promise<Import>
  /** Returns messages created since `since` (ms), newest first: those to `recipient`, or all. */
  mails(since: number, recipient?: string): Promise<Mail[]>
  html(mail: Mail): Promise<string>
}

/** The service could not say in time whether the call took effect. It is safe to repeat the call. */
export class UnknownOutcome extends DemoError {}

const READER = {
  'user-agent':
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15',
  accept: 'text/html,application/xhtml+xml,image/*;q=0.9,*/*;q=0.8',
}
const TIMEOUT_MS = 15_000

/** Returns a client for the addresses and the token in `.postloom/dev.json`. */
export function createClient({ baseUrl, apiToken, mailbox }: DevFile): Client {
  const post = async (
    tool: string,
    input: object,
  ): Promise<{ status: number; body: Record<string, unknown> }> => {
    const response = await request(`${baseUrl}/api/v2/tools/${tool}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiToken}`, 'content-type': 'application/json' },
      body: JSON.stringify(input),
    })
    // The Tools API answers every request with a JSON object.
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const imports = async (path: string, options: RequestInit): Promise<Import> => {
    const headers = { authorization: `Bearer ${apiToken}`, 'content-type': 'text/csv' }
    const response = await request(`${baseUrl}/api/v2/imports${path}`, { ...options, headers })
    // The documented answers are an import or a refusal.
    const body = (await response.json()) as Import & { message?: string }
    if (response.ok) return body
    throw new DemoError(`The import answered ${response.status}: ${body.message ?? ''}`)
  }
  const read = async <Data>(path: string): Promise<Data> => {
    const response = await request(mailbox.url + path, {})
    if (!response.ok) throw new DemoError(`The mailbox answered ${path} with ${response.status}.`)
    // The caller names the documented shape of the mailbox's answer.
    return (await response.json()) as Data
  }
  return {
    async call<Data>(tool: string, input: object = {}) {
      const { status, body } = await post(tool, input)
      if (status === 503) throw new UnknownOutcome(`${tool} answered: ${String(body['error'])}`)
      if (status !== 200) throw new DemoError(`${tool} answered ${status}: ${String(body['error'])}`)
      // The caller names the shape given by the tool's output schema.
      return body['data'] as Data
    },
    async challenge(tool, input) {
      const { status, body } = await post(tool, input)
      if (status === 428) return body as unknown as Challenge // every 428 answer has this shape
      throw new DemoError(
        `${tool} was to ask for a confirmation and answered ${status}: ${String(body['error'])}`,
      )
    },
    upload(file, query) {
      const body = new Uint8Array(file)
      return imports(`?${new URLSearchParams(query).toString()}`, { method: 'POST', body })
    },
    readImport: (id) => imports(`/${id}`, {}),
    async mails(since, recipient) {
      const query = recipient === undefined ? '' : `to:"${recipient}"`
      const { messages } = await read<{ messages: Mail[] }>(
        `/api/v1/search?limit=1000&query=${encodeURIComponent(query)}`,
      )
      return messages.filter(({ Created }) => Date.parse(Created) >= since)
    },
    async html({ ID }) {
      return (await read<{ HTML: string }>(`/api/v1/message/${ID}`)).HTML
    },
  }
}

/**
 * Requests a URL with a browser's headers and does not follow redirects. `location` is the redirect target, or null.
 */
export async function visit(url: string): Promise<{ status: number; location: string | null }> {
  const response = await request(url, { headers: READER, redirect: 'manual' })
  await response.arrayBuffer()
  return { status: response.status, location: response.headers.get('location') }
}

async function request(url: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...options, signal: AbortSignal.timeout(TIMEOUT_MS) })
  } catch (error) {
    const why =
      error instanceof Error ? (error.cause instanceof Error ? error.cause.message : error.message) : ''
    throw new DemoError(`${new URL(url).origin} does not answer (${why}); is the service running?`)
  }
}
