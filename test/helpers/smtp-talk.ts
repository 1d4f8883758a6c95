import { connect, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'

/** A server to talk to, and the certificate to trust. */
export type Speaker = { port: number; cert: string }

/** Words for random conversations with any listener; each test adds its own addresses. */
export const ANY_WORDS = [
  'EHLO x',
  'AUTH LOGIN',
  'DATA',
  '.',
  'RSET',
  'NOOP',
  'BDAT 5 LAST',
  'VRFY root',
  'XCLIENT ADDR=127.0.0.1',
  '\u0000\u0001',
  'x'.repeat(2_000),
] as const

/** An SMTP conversation by hand: sends bytes unchanged and reads complete replies. */
export class Talk {
  greeting = ''
  /** The number of chunks received; with TLS, each is one TLS record. */
  pieces = 0
  #socket: Socket | TLSSocket
  #text = ''
  #ended = false
  #wake: () => void = () => undefined

  private constructor(socket: Socket | TLSSocket) {
    this.#socket = socket
    this.#listen(socket)
  }

  /** Connects from the local address `from`. `first` is sent before the greeting arrives. */
  static async open(port: number, from = '127.0.0.1', first = ''): Promise<Talk> {
    const talk = new Talk(connect({ port, host: '127.0.0.1', localAddress: from }))
    if (first !== '') talk.write(first)
    talk.greeting = await talk.reply()
    return talk
  }

  /** Connects and does everything up to the login: greeting, EHLO, STARTTLS, EHLO. */
  static async secured(door: Speaker): Promise<Talk> {
    const talk = await Talk.open(door.port)
    await talk.secure(door.cert)
    return talk
  }

  /** Sends EHLO, STARTTLS and, after the handshake, EHLO again. */
  async secure(cert: string): Promise<void> {
    await this.say('EHLO client.test')
    await this.say('STARTTLS')
    await this.upgrade(cert)
    await this.say('EHLO client.test')
  }

  static async loggedIn(door: Speaker, token: string): Promise<Talk> {
    const talk = await Talk.secured(door)
    await talk.say(`AUTH PLAIN ${plain('someone', token)}`)
    return talk
  }

  async upgrade(ca: string): Promise<void> {
    if (this.#ended) throw new Error('the server hung up before the handshake')
    this.#socket.removeAllListeners('data')
    const secured = connectTls({ socket: this.#socket, ca, servername: 'localhost' })
    await new Promise<void>((resolve, reject) => {
      secured.once('secureConnect', resolve)
      secured.once('error', reject)
      secured.once('close', () => reject(new Error('the server hung up in the handshake')))
    })
    this.#socket = secured
    this.#listen(secured)
  }

  write(bytes: string | Buffer): void {
    this.#socket.write(bytes)
  }

  /** Sends one line and returns the whole reply. */
  async say(line: string): Promise<string> {
    this.write(`${line}\r\n`)
    return await this.reply()
  }

  /** Returns the next whole reply, or an empty text once the server has closed the connection. */
  async reply(): Promise<string> {
    for (;;) {
      const whole = /^(?:\d{3}-[^\n]*\n)*\d{3} [^\n]*\n/.exec(this.#text)?.[0]
      if (whole !== undefined) {
        this.#text = this.#text.slice(whole.length)
        return whole.trim()
      }
      if (this.#ended) return ''
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  close(): void {
    this.#socket.destroy()
  }

  #listen(socket: Socket | TLSSocket): void {
    socket.on('data', (chunk) => {
      this.#text += String(chunk)
      this.pieces += 1
      this.#wake()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      if (socket !== this.#socket) return
      this.#ended = true
      this.#wake()
    })
  }
}

/** Returns the argument of AUTH PLAIN. */
export function plain(user: string, password: string): string {
  return Buffer.from(`\0${user}\0${password}`).toString('base64')
}
