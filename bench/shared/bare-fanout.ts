// The bare pipeline that campaign-fanout compares with: pages by key, a template of prepared parts, pooled raw SMTP,
// and batched status updates. It has no queue and no leases, and nothing survives a crash. DATABASE_URL, RELAY_PORT and
// TEMPLATE are its inputs; with DKIM=true it signs each email.
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'

import pg from 'pg'

import { signMail } from '../../src/delivery/dkim.ts'

type Person = { id: string; email: string; name: string }

const CONNECTIONS = 16
const PAGE = 1_000
const BATCH = 500

// The file, which campaign-fanout.ts writes, alternates: parts[0], slots[0], parts[1], slots[1], …
const { parts, slots } = JSON.parse(readFileSync(process.env['TEMPLATE'] ?? '', 'utf8')) as {
  parts: string[]
  slots: ('NAME' | 'TOKEN' | 'EMAIL')[]
}
const key =
  process.env['DKIM'] === 'true'
    ? {
        domain: 'bare.example',
        selector: 'bare',
        privateKey: generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey,
      }
    : null
const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 4 })
const finished: string[] = []
const recording = new Set<Promise<unknown>>()

/** One connection, which sends one email after the other with pipelined commands. */
class Connection {
  readonly #socket: Socket
  #lines = 0
  #waiting: { lines: number; resolve: () => void } | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      for (const line of text.split('\r\n')) if (/^\d{3} /.test(line)) this.#lines += 1
      if (this.#waiting && this.#lines >= this.#waiting.lines) {
        this.#lines -= this.#waiting.lines
        const { resolve } = this.#waiting
        this.#waiting = undefined
        resolve()
      }
    })
  }

  async replies(lines: number): Promise<void> {
    await new Promise<void>((resolve) => {
      if (this.#lines >= lines) {
        this.#lines -= lines
        resolve()
      } else this.#waiting = { lines, resolve }
    })
  }

  async send(person: Person): Promise<void> {
    const mail = await compose(person)
    this.#socket.write(`MAIL FROM:<hello@bare.example>\r\nRCPT TO:<${person.email}>\r\nDATA\r\n`)
    await this.replies(3)
    this.#socket.write(`${mail}.\r\n`)
    await this.replies(1)
  }

  close(): void {
    this.#socket.end('QUIT\r\n')
  }
}

const people: Person[] = []
let isLast = false
let reading: Promise<void> | undefined
let after = '00000000-0000-0000-0000-000000000000'

async function read(): Promise<void> {
  const { rows } = await pool.query<Person>(
    'select id, email, name from bare_recipient where id > $1 order by id limit $2',
    [after, PAGE],
  )
  people.push(...rows)
  after = rows.at(-1)?.id ?? after
  isLast = rows.length < PAGE
}

async function next(): Promise<Person | undefined> {
  while (people.length === 0 && !isLast) {
    reading ??= read().finally(() => (reading = undefined))
    await reading
  }
  return people.pop()
}

function fill({ name, email, id }: Person): string {
  let text = parts[0] ?? ''
  for (let index = 0; index < slots.length; index++) {
    const slot = slots[index]
    text += slot === 'NAME' ? name : slot === 'EMAIL' ? email : id
    text += parts[index + 1] ?? ''
  }
  return text
}

async function compose(person: Person): Promise<string> {
  const mail = fill(person)
  if (!key) return mail
  const end = mail.indexOf('\r\n\r\n')
  return (await signMail(mail.slice(0, end + 2), mail.slice(end + 4), key)) + mail
}

function record(): void {
  const ids = finished.splice(0)
  if (ids.length === 0) return
  const update = pool.query(
    "update bare_recipient set status = 'SENT', sent_at = now() where id = any($1::uuid[])",
    [ids],
  )
  recording.add(update)
  void update.finally(() => recording.delete(update))
}

async function work(): Promise<void> {
  const connection = new Connection(connect(Number(process.env['RELAY_PORT']), '127.0.0.1'))
  await connection.replies(1)
  for (let person = await next(); person; person = await next()) {
    await connection.send(person)
    finished.push(person.id)
    if (finished.length >= BATCH) record()
  }
  connection.close()
}

const began = performance.now()
await Promise.all(Array.from({ length: CONNECTIONS }, work))
record()
await Promise.all(recording)
const seconds = (performance.now() - began) / 1_000
const { user, system } = process.cpuUsage()
console.log(JSON.stringify({ seconds, processorMs: (user + system) / 1_000 }))
await pool.end()
