import { createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as timeOut } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'

/**
 * A reply of the sink: acceptance, a refusal with code and text, no reply (`hang`), or a closed connection instead of a
 * reply (`drop`). `afterMs` and `after` delay a reply by a time or until a promise resolves.
 */
export type SinkReply =
  | 'accept'
  | 'hang'
  | 'drop'
  | { code: number; text: string }
  | { afterMs: number; reply: Exclude<SinkReply, { reply: unknown }> }
  | { after: Promise<void>; reply: Exclude<SinkReply, { reply: unknown }> }

/** One recipient of one message, recorded before the reply is sent. */
export type JournalEntry = {
  messageId: string
  from: string
  recipient: string
  /** `Date.now()` when the final dot arrived. */
  time: number
  raw: Buffer
  /** The number of the connection, from 1. */
  connection: number
  /** True when the reply is 250. */
  accepted: boolean
  /**
   * True when the sink has the message because it was not refused. After `drop` and `hang` the sender cannot know this.
   */
  taken: boolean
}

/** A message as the behaviour functions see it. */
export type SinkMail = Omit<JournalEntry, 'accepted' | 'taken'>

/** The behaviour of the sink; every reply defaults to `accept`. It may be changed while the sink runs. */
export type SinkBehaviour = {
  onConnect?: (connection: number) => SinkReply
  onSender?: (address: string) => SinkReply
  onRecipient?: (address: string) => SinkReply
  /** Called once per message, with its first recipient. */
  onMessage?: (mail: SinkMail) => SinkReply
}

/** What a sink requires before it accepts mail: STARTTLS with this certificate, then this login. */
export type SinkGuard = {
  key: string
  cert: string
  login: { user: string; password: string; method: 'PLAIN' | 'LOGIN' }
}

/** An SMTP relay that keeps all mail. */
export type Sink = {
  port: number
  url: string
  journal: JournalEntry[]
  behaviour: SinkBehaviour
  connections: { total: number; open: number; peak: number }
  /** Returns the entries that were answered with 250. */
  accepted(): JournalEntry[]
  clear(): void
  close(): Promise<void>
}

type SinkOptions = {
  port?: number
  /** False saves memory in long runs. */
  keepRaw?: boolean
  guard?: SinkGuard
  /** Whether it offers CHUNKING (RFC 3030), as large relays do. */
  chunking?: boolean
  /** Whether it offers SMTPUTF8 (RFC 6531), for addresses beyond ASCII. */
  utf8?: boolean
}

/** Starts a sink on 127.0.0.1. */
export async function startSmtpSink(
  behaviour: SinkBehaviour = {},
  { port = 0, keepRaw = true, guard, chunking = false, utf8 = true }: SinkOptions = {},
): Promise<Sink> {
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    sink.connections.total += 1
    sink.connections.open += 1
    sink.connections.peak = Math.max(sink.connections.peak, sink.connections.open)
    socket.once('close', () => {
      sockets.delete(socket)
      sink.connections.open -= 1
    })
    new Session(socket, sink, { keepRaw, guard, chunking, utf8 }).greet()
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  // The `address()` of a listening TCP server is an object.
  const bound = (server.address() as AddressInfo).port
  const sink: Sink = {
    port: bound,
    url: `smtp://127.0.0.1:${bound}`,
    journal: [],
    behaviour,
    connections: { total: 0, open: 0, peak: 0 },
    accepted: () => sink.journal.filter((entry) => entry.accepted),
    clear: () => {
      sink.journal.length = 0
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return sink
}

/** Returns a generator of numbers from 0 to 1 that is the same for the same seed, for repeatable random behaviour. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const END_OF_DATA = Buffer.from('\r\n.\r\n')
const DOT = 0x2e
const EMPTY = Buffer.alloc(0)
const OK = '250 2.0.0 ok\r\n'

/** One connection: its unread bytes and the state of the dialogue. */
class Session {
  #socket: Socket
  readonly #sink: Sink
  readonly #keepRaw: boolean
  readonly #connection: number
  #buffer: Buffer = EMPTY
  #searchedTo = 0
  #inData = false
  /** The number of bytes to read for the current chunk (RFC 3030), or null. */
  #chunk: number | null = null
  /** True while a reply is delayed; no more input is read then. */
  #waiting = false
  #answers = ''
  #from = ''
  #hasSender = false
  #isUtf8 = false
  #recipients: string[] = []
  readonly #guard: SinkGuard | undefined
  readonly #extensions: readonly string[]
  /** The remaining answers of a login, in the order in which they are asked. */
  #expected: string[] = []
  #isLoggedIn = false

  constructor(
    socket: Socket,
    sink: Sink,
    {
      keepRaw,
      guard,
      chunking,
      utf8,
    }: { keepRaw: boolean; guard: SinkGuard | undefined; chunking: boolean; utf8: boolean },
  ) {
    this.#socket = socket
    this.#sink = sink
    this.#keepRaw = keepRaw
    this.#guard = guard
    this.#extensions = [
      'PIPELINING',
      '8BITMIME',
      ...(chunking ? ['CHUNKING'] : []),
      ...(utf8 ? ['SMTPUTF8'] : []),
    ]
    this.#connection = sink.connections.total
    this.#listen(socket)
  }

  #listen(socket: Socket): void {
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk) => {
      this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk])
      this.#work()
    })
  }

  greet(): void {
    this.#answer(this.#sink.behaviour.onConnect?.(this.#connection), '220 sink ESMTP\r\n')
    this.#flush()
  }

  #work(): void {
    while (!this.#waiting && this.#buffer.length > 0) {
      if (!this.#read()) break
    }
    this.#flush()
  }

  #read(): boolean {
    if (this.#inData) return this.#readData()
    return this.#chunk === null ? this.#readCommand() : this.#readChunk(this.#chunk)
  }

  #flush(): void {
    if (this.#answers && !this.#socket.destroyed) this.#socket.write(this.#answers)
    this.#answers = ''
  }

  #readCommand(): boolean {
    const end = this.#buffer.indexOf(10)
    if (end < 0) return false
    const line = this.#buffer.toString('utf8', 0, end).trimEnd()
    this.#buffer = this.#buffer.subarray(end + 1)
    this.#command(line)
    return true
  }

  #command(line: string): void {
    const verb = line.slice(0, 4).toUpperCase()
    if (this.#expected.length > 0) this.#checkLogin(line)
    else if (verb === 'EHLO') this.#hello()
    else if (verb === 'STAR' && this.#guard) this.#encrypt(this.#guard)
    else if (verb === 'AUTH' && this.#guard) this.#startLogin(this.#guard, line)
    else if (verb === 'MAIL' && this.#guard && !this.#isLoggedIn)
      this.#answers += '530 5.7.0 log in first\r\n'
    else if (verb === 'MAIL') this.#startMail(address(line), line.endsWith(' SMTPUTF8'))
    else if (verb === 'RCPT') this.#addRecipient(address(line))
    else if (verb === 'DATA') this.#startData()
    else if (verb === 'BDAT') this.#chunk = Number(line.split(' ')[1])
    else if (verb === 'RSET') this.#reset()
    else if (verb === 'HELO' || verb === 'NOOP') this.#answers += OK
    else if (verb === 'QUIT') this.#quit()
    else this.#answers += '500 5.5.1 unknown command\r\n'
  }

  #hello(): void {
    const isEncrypted = this.#socket instanceof TLSSocket
    const offers = this.#guard ? [isEncrypted ? `AUTH ${this.#guard.login.method}` : 'STARTTLS'] : []
    const lines = ['sink', ...this.#extensions, ...offers]
    this.#answers += `${lines.map((each) => `250-${each}\r\n`).join('')}250 HELP\r\n`
  }

  #encrypt({ key, cert }: SinkGuard): void {
    this.#answers += '220 2.0.0 go on\r\n'
    this.#flush()
    this.#socket.removeAllListeners('data')
    this.#socket = new TLSSocket(this.#socket, { isServer: true, key, cert })
    this.#listen(this.#socket)
  }

  #startLogin({ login }: SinkGuard, line: string): void {
    if (login.method === 'PLAIN') {
      this.#expected = [`\0${login.user}\0${login.password}`]
      this.#checkLogin(line.split(' ')[2] ?? '')
    } else {
      this.#expected = [login.user, login.password]
      this.#answers += '334 VXNlcm5hbWU6\r\n'
    }
  }

  #checkLogin(given: string): void {
    const expected = this.#expected.shift()
    if (Buffer.from(given, 'base64').toString() !== expected) {
      this.#expected = []
      this.#answers += '535 5.7.8 wrong name or password\r\n'
    } else if (this.#expected.length > 0) this.#answers += '334 UGFzc3dvcmQ6\r\n'
    else {
      this.#isLoggedIn = true
      this.#answers += '235 2.7.0 welcome\r\n'
    }
  }

  #startMail(from: string, isUtf8: boolean): void {
    const reply = this.#sink.behaviour.onSender?.(from)
    this.#from = from
    this.#hasSender = isAcceptance(reply)
    this.#isUtf8 = isUtf8
    this.#recipients = []
    this.#answer(reply, OK)
  }

  #reset(): void {
    this.#hasSender = false
    this.#recipients = []
    this.#answers += OK
  }

  #addRecipient(recipient: string): void {
    if (!this.#hasSender) {
      this.#answers += '503 5.5.1 no sender\r\n'
      return
    }
    const isForeign = /[^ -~]/.test(recipient) && !(this.#isUtf8 && this.#extensions.includes('SMTPUTF8'))
    const reply = isForeign
      ? { code: 553, text: '5.6.7 SMTPUTF8 is needed' }
      : this.#sink.behaviour.onRecipient?.(recipient)
    if (isAcceptance(reply)) this.#recipients.push(recipient)
    this.#answer(reply, OK)
  }

  #startData(): void {
    if (this.#recipients.length === 0) {
      this.#answers += '503 5.5.1 no recipient\r\n'
      return
    }
    this.#inData = true
    this.#searchedTo = 0
    this.#answers += '354 go on\r\n'
  }

  #quit(): void {
    this.#answers += '221 2.0.0 bye\r\n'
    this.#flush()
    this.#socket.end()
  }

  #readData(): boolean {
    const buffer = this.#buffer
    const isEmpty = buffer.length >= 3 && buffer.toString('latin1', 0, 3) === '.\r\n'
    const end = isEmpty ? -2 : buffer.indexOf(END_OF_DATA, this.#searchedTo)
    if (end === -1) {
      this.#searchedTo = Math.max(0, buffer.length - END_OF_DATA.length)
      return false
    }
    const raw = isEmpty ? EMPTY : withoutStuffing(buffer.subarray(0, end + 2))
    this.#buffer = buffer.subarray(end + END_OF_DATA.length)
    this.#inData = false
    this.#receive(raw)
    return true
  }

  /** Reads a chunk. Only a single, last chunk is supported. */
  #readChunk(length: number): boolean {
    if (this.#buffer.length < length) return false
    const raw = this.#buffer.subarray(0, length)
    this.#buffer = this.#buffer.subarray(length)
    this.#chunk = null
    if (this.#recipients.length > 0) this.#receive(raw)
    else this.#answers += '503 5.5.1 no recipient\r\n'
    return true
  }

  /** Records the message before replying, so that the journal is complete whatever happens to the reply. */
  #receive(raw: Buffer): void {
    const [first = '', ...others] = this.#recipients
    const mail: SinkMail = {
      messageId: messageId(raw),
      from: this.#from,
      recipient: first,
      time: Date.now(),
      raw: this.#keepRaw ? Buffer.from(raw) : EMPTY,
      connection: this.#connection,
    }
    const reply = this.#sink.behaviour.onMessage?.(mail)
    const fate = { accepted: isAcceptance(reply), taken: !isRefusal(reply) }
    this.#sink.journal.push({ ...mail, ...fate })
    for (const recipient of others) this.#sink.journal.push({ ...mail, recipient, ...fate })
    this.#recipients = []
    this.#answer(reply, OK)
  }

  #answer(reply: SinkReply | undefined, acceptance: string): void {
    if (reply === undefined || reply === 'accept') this.#answers += acceptance
    else if (reply === 'hang') this.#waiting = true
    else if (reply === 'drop') this.#drop()
    else if ('code' in reply) this.#answers += `${reply.code} ${reply.text}\r\n`
    else this.#answerLater('after' in reply ? reply.after : sleep(reply.afterMs), reply.reply, acceptance)
  }

  #drop(): void {
    this.#waiting = true
    this.#flush()
    this.#socket.destroy()
  }

  #answerLater(after: Promise<void>, reply: SinkReply, acceptance: string): void {
    this.#waiting = true
    void after.then(() => {
      this.#waiting = false
      this.#answer(reply, acceptance)
      this.#work()
    })
  }
}

function sleep(milliseconds: number): Promise<void> {
  return timeOut(milliseconds, undefined, { ref: false })
}

function isAcceptance(reply: SinkReply | undefined): boolean {
  if (reply === undefined || reply === 'accept') return true
  return typeof reply === 'object' && 'reply' in reply && reply.reply === 'accept'
}

function isRefusal(reply: SinkReply | undefined): boolean {
  if (typeof reply !== 'object') return false
  return 'code' in reply || isRefusal(reply.reply)
}

/** Removes dot-stuffing (RFC 5321 4.5.2). */
function withoutStuffing(content: Buffer): Buffer {
  if (content[0] !== DOT && content.indexOf('\r\n.') === -1) return content
  return Buffer.from(content.toString('latin1').replaceAll(/^\./gm, ''), 'latin1')
}

function address(line: string): string {
  return /<([^>]*)>/.exec(line)?.[1] ?? ''
}

function messageId(raw: Buffer): string {
  const end = raw.indexOf('\r\n\r\n')
  const head = raw.toString('latin1', 0, end < 0 ? raw.length : end)
  return /^message-id:\s*(<[^>]*>)/im.exec(head)?.[1] ?? ''
}
