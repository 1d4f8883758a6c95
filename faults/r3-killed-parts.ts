import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { sql } from 'kysely'

import { ensureCertificate } from '../scripts/services/certificate.ts'
import { freePort } from '../scripts/services/ports.ts'
import { readConfig } from '../src/config.ts'
import { migrate, rows } from '../src/database.ts'
import { seedDevelopment } from '../src/development.ts'
import { createServices } from '../src/services.ts'
import { endProcess, startProcess } from '../test/helpers/child.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { scratchDirectory, startOwnPostgres } from '../test/helpers/services.ts'
import { startSmtpSink } from '../test/helpers/smtp-sink.ts'
import { plain, type Speaker, Talk } from '../test/helpers/smtp-talk.ts'
import { atOnce, defineExperiment, is, PATIENCE } from './experiment.ts'
import { crashPostgres } from './r3-killed-database.ts'

const PARTS = ['API', 'SMTP', 'worker', 'PostgreSQL'] as const
type Part = (typeof PARTS)[number]
/** One in this many messages is from a domain that does not belong to the organization. */
const FOREIGN = 8

/**
 * Kills each part between client and relay in turn, while clients repeat each message with its Message-ID until they
 * know its outcome. A 250 means that the email arrives, whatever is killed afterwards.
 */
export const killedParts = defineExperiment({
  id: 'R3',
  title: 'kill -9 the API, the SMTP process, the worker and PostgreSQL in turn under SMTP submission',
  sizes: {
    small: { kills: 8, clients: 4, between: 40 },
    full: { kills: 40, clients: 12, between: 300 },
  },
  async run(lab, { kills, clients, between }) {
    const sink = await startSmtpSink(
      { onMessage: () => ({ afterMs: 10, reply: 'accept' }) },
      { keepRaw: false },
    )
    lab.defer(() => sink.close())
    const directory = scratchDirectory('postgres')
    let postgres = await startOwnPostgres({ directory, maxConnections: 200 })
    lab.defer(() => postgres.stop())
    const certificate = { certFile: join(directory, 'smtp.crt'), keyFile: join(directory, 'smtp.key') }
    ensureCertificate(['localhost', '127.0.0.1'], certificate)
    const ports = { api: await freePort(), smtp: await freePort() }
    const config = readConfig({
      ...process.env,
      DATABASE_URL: postgres.url,
      RELAY_URL: sink.url,
      TEMPORAL_TASK_QUEUE: `faults-r3-${process.pid}`,
      LANE_RATE_TRANSACTIONAL: '0',
      LOG_LEVEL: 'silent',
    })
    await migrate(config)
    const { apiToken: token } = await seedDevelopment(config)
    const services = await createServices(config, 'faults')
    lab.defer(() => services.close())

    const env = {
      API_PORT: String(ports.api),
      SMTP_PORT: String(ports.smtp),
      SMTP_INBOUND_PORT: '0',
      SMTP_HEALTH_PORT: '0',
      SMTP_TLS_CERT: certificate.certFile,
      SMTP_TLS_KEY: certificate.keyFile,
      LOG_LEVEL: 'silent',
    }
    const scripts = {
      API: 'api/main.ts',
      SMTP: 'smtp/main.ts',
      worker: 'test/helpers/worker-process.ts',
    }
    const start = (part: keyof typeof scripts): ChildProcess =>
      startProcess({ config, databaseUrl: config.databaseUrl }, scripts[part], { env })
    const children = { API: start('API'), SMTP: start('SMTP'), worker: start('worker') }
    lab.defer(() => Promise.all(Object.values(children).map((child) => endProcess(child))))

    const acknowledged = new Set<string>()
    const refused = new Set<string>()
    let brought = 0
    let repeated = 0
    const halt = new AbortController()

    async function client(): Promise<void> {
      const door = { port: ports.smtp, cert: readFileSync(certificate.certFile, 'utf8') }
      const { bring, close } = messenger(door, token)
      while (!halt.signal.aborted) {
        const at = (brought += 1)
        const to = `r${at}@reader.example`
        const from = at % FOREIGN === 0 ? 'hello@elsewhere.example' : 'hello@postloom.test'
        const raw = `From: ${from}\r\nSubject: Your code\r\nMessage-ID: <m${at}@client.test>\r\n\r\nIt is 1234`
        const once = async () => {
          const reply = await bring(from, to, raw)
          if (/^(?:250|5)/.test(reply)) return reply
          repeated += 1
          return null
        }
        const reply = await eventually('what becomes of a message', once, { withinMs: 300_000, everyMs: 50 })
        if (reply.startsWith('250')) acknowledged.add(to)
        else refused.add(to)
      }
      close()
    }

    async function kill(part: Part): Promise<void> {
      if (part !== 'PostgreSQL') {
        await endProcess(children[part])
        children[part] = start(part)
        return
      }
      await crashPostgres(services, postgres)
      postgres = await startOwnPostgres({ directory, port: postgres.port, maxConnections: 200 })
    }

    const killed = { API: 0, SMTP: 0, worker: 0, PostgreSQL: 0 }
    async function killAll(): Promise<void> {
      try {
        for (let turn = 0; turn < kills; turn++) {
          const part = PARTS[turn % PARTS.length] ?? 'API'
          const enough = acknowledged.size + 1 + Math.floor(lab.random() * between)
          await eventually('acknowledgements', () => acknowledged.size >= enough, { ...PATIENCE, everyMs: 1 })
          await kill(part)
          killed[part] += 1
          // One part at a time: the next one is killed when email passes through all parts again.
          const before = { taken: sink.journal.length, heard: acknowledged.size }
          const goesOn = () => sink.journal.length > before.taken && acknowledged.size > before.heard
          await eventually('email to go on', goesOn, PATIENCE)
          lab.say(`kill ${turn + 1} of ${kills}, of ${part}, after ${acknowledged.size} acknowledgements`)
        }
      } finally {
        halt.abort()
      }
    }
    await Promise.all([atOnce(clients, client), killAll()])

    const isQuiet = async () => (await look()).every(({ status }) => status === 'SENT')
    const look = async () =>
      await rows<{ recipient: string; status: string; resent: boolean }>(
        services.orm.em.fork(),
        sql`select recipient, status, resent from message`,
      )
    await eventually('every email to be sent', isQuiet, PATIENCE)
    const stored = await look()
    const taken = new Map<string, number>()
    for (const { recipient } of sink.journal) taken.set(recipient, (taken.get(recipient) ?? 0) + 1)
    const twice = [...taken].filter(([, times]) => times > 1).map(([recipient]) => recipient)
    const ambiguous = new Set(stored.flatMap(({ recipient, resent }) => (resent ? [recipient] : [])))
    return {
      injected: { ...killed, 'brought once more': repeated },
      seen: {
        acknowledged: acknowledged.size,
        refused: refused.size,
        'taken by the sink': taken.size,
        'taken more than once': twice.length,
        'counted as possibly so': ambiguous.size,
      },
      claims: [
        is(
          'kills',
          Object.values(killed).reduce((sum, each) => sum + each),
          kills,
        ),
        is('acknowledged and not in the sink', [...acknowledged].filter((to) => !taken.has(to)).length, 0),
        is('refused and in the sink', [...refused].filter((to) => taken.has(to)).length, 0),
        is(
          'in the sink and not acknowledged',
          [...taken.keys()].filter((to) => !acknowledged.has(to)).length,
          0,
        ),
        is('emails', stored.length, acknowledged.size),
        is('repeated and not counted as possibly so', twice.filter((to) => !ambiguous.has(to)).length, 0),
        is('refused, each from elsewhere', refused.size, Math.floor(brought / FOREIGN)),
      ],
    }
  },
})

/**
 * Submits messages over one connection, which is reopened after anything but 250. `bring` returns the decisive reply.
 */
function messenger(door: Speaker, token: string) {
  let open: Talk | null = null

  async function enter(): Promise<string> {
    open = await Talk.open(door.port)
    if (!open.greeting.startsWith('220')) return open.greeting
    await open.secure(door.cert)
    return await open.say(`AUTH PLAIN ${plain('any', token)}`)
  }

  async function converse(from: string, to: string, raw: string): Promise<string> {
    const welcome = open ? '235' : await enter()
    if (!open || !welcome.startsWith('235')) return welcome
    for (const line of [`MAIL FROM:<${from}>`, `RCPT TO:<${to}>`, 'DATA']) {
      const reply = await open.say(line)
      if (!/^[23]/.test(reply)) return reply
    }
    open.write(`${raw}\r\n.\r\n`)
    return await open.reply()
  }

  /** Returns the reply, or an empty text if the connection broke. */
  async function bring(from: string, to: string, raw: string): Promise<string> {
    const reply = await converse(from, to, raw).catch(() => '')
    if (!reply.startsWith('250')) close()
    return reply
  }

  function close(): void {
    open?.close()
    open = null
  }

  return { bring, close }
}
