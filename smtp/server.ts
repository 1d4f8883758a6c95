import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

import type { Logger } from 'pino'
import { SMTPServer } from 'smtp-server'
import { SMTPConnection, type SMTPConnectionOptions } from 'smtp-server/lib/smtp-connection.js'

import { type CertificateFiles, readCertificate, watchCertificate } from './certificate.ts'
import { REPLIES } from './refusal.ts'

/** smtp-server asks for TLS by a reply of its own; RFC 3207 and the contract know 530. */
const WANTS_TLS = 538

/** A conversation whose refusals bring an enhanced status code of their own, where smtp-server has one for each number. */
class Conversation extends SMTPConnection {
  override send(code: number, text?: string | string[], context?: string | false): void {
    if (code === WANTS_TLS) {
      const [reply, enhanced] = REPLIES.AUTH_REQUIRED
      super.send(reply, `${enhanced} Begin with STARTTLS; a token is not taken over an open line`, false)
      return
    }
    // A client that sees AUTH may send its token over the open line before it hears our refusal.
    if (Array.isArray(text) && !this.secure) {
      return super.send(
        code,
        text.filter((line) => !line.startsWith('AUTH')),
        context,
      )
    }
    const hasOwnCode = typeof text === 'string' && /^[245]\.\d{1,3}\.\d{1,3} /.test(text)
    super.send(code, text, hasOwnCode ? false : context)
  }
}

/** The SMTP protocol as smtp-server speaks it, with our replies. */
export class Door extends SMTPServer {
  override connect(socket: Socket | TLSSocket, options?: SMTPConnectionOptions | null): void {
    const conversation = new Conversation(this, socket, options)
    this.connections.add(conversation)
    conversation.on('error', (error) => this.emit('error', error))
    conversation.on('connect', (data) => this.emit('connect', data))
    conversation.init()
  }
}

/** Lets a door show a renewed certificate as soon as its files have changed, until it is closed. */
export function renewCertificate(door: Door, files: CertificateFiles, log: Logger, lookMs?: number): void {
  const unwatch = watchCertificate(
    files,
    () => {
      try {
        door.updateSecureContext(readCertificate(files))
        log.info('the certificate was renewed')
      } catch (error) {
        log.error({ err: error }, 'the renewed certificate cannot be used; the earlier one stays')
      }
    },
    lookMs,
  )
  door.server.once('close', unwatch)
}
