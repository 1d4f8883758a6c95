import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { sql } from 'kysely'
import { pino } from 'pino'

import { ensureCertificate } from '../../scripts/services/certificate.ts'
import { type ApiClient, createApiClient } from '../../smtp/api-client.ts'
import { createInbound, type InboundOptions } from '../../smtp/inbound.ts'
import type { Door } from '../../smtp/server.ts'
import { createSubmission, type SubmissionOptions } from '../../smtp/submission.ts'
import { row, rows } from '../../src/database.ts'
import { type Lanes, startLanes } from '../../src/delivery/lanes.ts'
import { decodeId } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'
import { startApi, type TestApi, type TestOrganization } from './api.ts'
import { eventually } from './eventually.ts'
import { listenOnLoopback } from './listen.ts'
import { QUICK } from './mailroom.ts'
import { scratchDirectory } from './services.ts'
import { type Sink, startSmtpSink } from './smtp-sink.ts'
import { Talk } from './smtp-talk.ts'

/** An email that a relay accepted. */
export type SentEmail = {
  /** Uuid. */
  id: string
  recipient: string
  returnPath: string
  raw: string
}

type DoorOptions = Partial<InboundOptions> & { apiUrl?: string }

/** An SMTP listener (submission or inbound) and its certificate. */
export type InboundDoor = {
  port: number
  cert: string
  certFile: string
  keyFile: string
  close(): Promise<void>
}

/** The API, delivery to a relay that keeps everything, and the inbound listener. */
export type PostOffice = {
  api: TestApi
  sink: Sink
  door: InboundDoor
  openDoor(options?: DoorOptions): Promise<InboundDoor>
  /** Sends one email and waits until it is recorded as sent. */
  send(organization: TestOrganization, to?: string): Promise<SentEmail>
  /**
   * Sends a message to the inbound listener. Returns the reply to the end of the data, or the first refusal before it.
   */
  report(
    raw: string,
    to: string,
    options?: { from?: string; door?: InboundDoor; origin?: string },
  ): Promise<string>
  /** Sends a message of the corpus as a report about this email. */
  bring(name: string, email: SentEmail, options?: { to?: string; from?: string }): Promise<string>
  email(id: string): Promise<{ status: string; category: string | null; response: string | null }>
  close(): Promise<void>
}

const FOLDER = join(import.meta.dirname, '..', 'bounces')
let people = 0

export async function openPostOffice(env: Record<string, string> = {}): Promise<PostOffice> {
  const sink = await startSmtpSink()
  const api = await startApi({
    RELAY_URL: sink.url,
    LANE_RATE_TRANSACTIONAL: '0',
    LOG_LEVEL: 'error',
    ...env,
  })
  const lanes: Lanes = await startLanes(api.services, { workerName: 'test', lane: QUICK, reviveMs: 50 })
  const door = await openDoor()

  async function openDoor({ apiUrl = api.url, ...options }: DoorOptions = {}): Promise<InboundDoor> {
    return await openInbound(api.services, apiUrl, options)
  }

  async function email(id: string) {
    const found = await row<{ status: string; category: string | null; response: string | null }>(
      api.services.orm.em.fork(),
      sql`select status, bounce_category as category, response from message where id = ${id}`,
    )
    if (!found) throw new Error(`there is no email ${id}`)
    return found
  }

  const report: PostOffice['report'] = async (raw, to, options = {}) => {
    const { from = '', door: through = door, origin } = options
    const talk = await Talk.open(through.port, origin)
    try {
      const said = ['EHLO mx.reader.example', `MAIL FROM:<${from}>`, `RCPT TO:<${to}>`, 'DATA']
      for (const line of said) {
        const reply = await talk.say(line)
        if (!/^[23]/.test(reply)) return reply
      }
      talk.write(`${raw.replaceAll(/\r?\n\./g, '\r\n..')}\r\n.\r\n`)
      return await talk.reply()
    } finally {
      talk.close()
    }
  }

  return {
    api,
    sink,
    door,
    openDoor,
    report,
    email,
    async send(organization, to = `reader${(people += 1)}@reader.example`) {
      const sent = await api.request('POST', '/api/v1/emails', {
        token: organization.token,
        body: { to, subject: 'Hello', content: 'Hi, [read](https://shop.example/a).' },
      })
      if (sent.status !== 200) throw new Error(JSON.stringify(sent.body))
      const id = decodeId('eml', sent.body.id)
      await eventually('the email to be sent', async () => (await email(id)).status === 'SENT')
      const entry = sink.accepted().find(({ messageId }) => messageId.includes(sent.body.id))
      return { id, recipient: to, returnPath: entry?.from ?? '', raw: entry?.raw.toString('latin1') ?? '' }
    },
    async bring(name, { returnPath }, { to = returnPath, from } = {}) {
      const raw = readReportFile(name).replaceAll('{{RETURN_PATH}}', returnPath)
      return await report(raw, to, from === undefined ? {} : { from })
    },
    async close() {
      await door.close()
      await lanes.stop()
      await api.close()
      await sink.close()
    },
  }
}

/** Starts an inbound listener in front of the API at this address. */
export async function openInbound(
  services: Services,
  apiUrl: string,
  options: Partial<InboundOptions> = {},
): Promise<InboundDoor> {
  const { secret } = services.config
  return await listen(services, apiUrl, (parts) =>
    createInbound({ ...parts, name: 'mx.test', secret, ...options }),
  )
}

/** Starts SMTP submission in front of the API at this address. */
export async function openSubmission(
  services: Services,
  apiUrl: string,
  options: Partial<SubmissionOptions> = {},
): Promise<InboundDoor> {
  return await listen(services, apiUrl, (parts) =>
    createSubmission({ ...parts, name: 'smtp.test', ...options }),
  )
}

/** The stored data of a submitted email. */
export type Submitted = {
  recipient: string
  fromName: string | null
  fromEmail: string
  replyTo: string | null
  tracking: boolean
  source: { subject: string; content: string; contentType: string; text?: string }
}

/** Returns the emails of an organization in order. */
export async function submittedBy({ orm }: Services, organizationId: string): Promise<Submitted[]> {
  return await rows<Submitted>(
    orm.em.fork(),
    sql`select m.recipient, m.from_name as "fromName", m.from_email as "fromEmail", m.reply_to as "replyTo",
        m.tracking, content.source
      from message m join message_content content on content.organization_id = m.organization_id and content.message_id = m.id
      where m.organization_id = ${organizationId} order by m.id`,
  )
}

async function listen(
  { config }: Services,
  apiUrl: string,
  make: (parts: Pick<InboundOptions, 'certificate' | 'log'> & { api: ApiClient }) => Door,
): Promise<InboundDoor> {
  const directory = scratchDirectory('smtp')
  const certificate = { certFile: join(directory, 'smtp.crt'), keyFile: join(directory, 'smtp.key') }
  ensureCertificate(['localhost', '127.0.0.1'], certificate)
  const { internalSecret } = config
  const api = createApiClient({ url: apiUrl, host: new URL(config.baseUrl).host, internalSecret })
  const server = make({ certificate, api, log: pino({ level: 'silent' }) })
  const port = await listenOnLoopback(server.server)
  return {
    port,
    ...certificate,
    cert: readFileSync(certificate.certFile, 'utf8'),
    async close() {
      for (const conversation of server.connections) conversation.close()
      await new Promise<void>((resolve) => server.close(resolve))
      api.close()
    },
  }
}

/** Reads a message of the corpus. It has `{{RETURN_PATH}}` in place of the return path of the email it is about. */
export function readReportFile(name: string): string {
  return readFileSync(join(FOLDER, `${name}.eml`), 'utf8').replaceAll('\n', '\r\n')
}
