import { connect, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'

/** A server to speak to, and who vouches for it. */
export type Speaker = { port: number; cert: string }

/** What a conversation of any words is made of at every listener; each adds its own addresses. */
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

/** A conversation by hand: what is written as it is, and whole replies. */
export class Talk {
  greeting = ''
  /** How many pieces have come, each a TLS record where there is TLS. */
  pieces = 0
  #socket: Socket | TLSSocket
  #text = ''
  #ended = false
  #wake: () => void = () => undefined

  private constructor(socket: Socket | TLSSocket) {
    this.#socket = socket
    this.#listen(socket)
  }

  /** `from` is the address of this machine that it comes from; `first` is said before the greeting. */
  static async open(port: number, from = '127.0.0.1', first = ''): Promise<Talk> {
    const talk = new Talk(connect({ port, host: '127.0.0.1', localAddress: from }))
    if (first !== '') talk.write(first)
    talk.greeting = await talk.reply()
    return talk
  }

  /** Up to the login: greeting, EHLO, STARTTLS, EHLO. */
  static async secured(door: Speaker): Promise<Talk> {
    const talk = await Talk.open(door.port)
    await talk.secure(door.cert)
    return talk
  }

  /** EHLO, STARTTLS, EHLO. */
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

  /** Says one line and answers the whole reply. */
  async say(line: string): Promise<string> {
    this.write(`${line}\r\n`)
    return await this.reply()
  }

  /** The next whole reply; empty once the server hung up. */
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

/** What AUTH PLAIN carries. */
export function plain(user: string, password: string): string {
  return Buffer.from(`\0${user}\0${password}`).toString('base64')
}
