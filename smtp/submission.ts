import { createHash, randomUUID } from 'node:crypto'

import type { Logger } from 'pino'
import type { SMTPServerAuthentication, SMTPServerSession } from 'smtp-server'

import type { ApiClient } from './api-client.ts'
import { type CertificateFiles, readCertificate } from './certificate.ts'
import { Crowd } from './crowd.ts'
import { readMessage } from './message.ts'
import { receiveMessage } from './receive.ts'
import { REPLIES, Refusal } from './refusal.ts'
import { Door, renewCertificate } from './server.ts'
import { Throttle } from './throttle.ts'

/** What the door is made of; times and bounds are those below unless a test shortens them. */
export type SubmissionOptions = {
  /** The name it greets with. */
  name: string
  certificate: CertificateFiles
  api: ApiClient
  log: Logger
  /** Hears the reply of every message and login, for the metrics. */
  onReply?: (what: 'message' | 'login', reply: number) => void
  idleMs?: number
  failedLogins?: number
  certificateLookMs?: number
}

/** The limit of one message in bytes (contract, "Limits": 1 MB). */
export const MESSAGE_BYTES = 1_000_000
const CONNECTIONS = 1_000
const CONNECTIONS_OF_ADDRESS = 100
const FAILED_LOGINS = 10
const FAILURE_WINDOW_MS = 10 * 60_000
const IDLE_MS = 60_000
const CLOSE_MS = 4_000

/**
 * SMTP submission (RFC 6409): STARTTLS, then AUTH with an API token as the password, then one message to one recipient
 * at a time, which is handed to the API. 250 means that it is stored.
 */
export function createSubmission(options: SubmissionOptions): Door {
  const { api, log, certificate, onReply = () => undefined } = options
  const logins = new Throttle(options.failedLogins ?? FAILED_LOGINS, FAILURE_WINDOW_MS)
  const crowd = new Crowd(CONNECTIONS_OF_ADDRESS)

  const server = new Door({
    name: options.name,
    banner: 'Postloom submission',
    ...readCertificate(certificate),
    minVersion: 'TLSv1.2',
    size: MESSAGE_BYTES,
    rejectOversized: true,
    authMethods: ['PLAIN', 'LOGIN'],
    authRequiredMessage: '5.7.0 Log in first: STARTTLS, then AUTH with an API token as the password',
    hideENHANCEDSTATUSCODES: false,
    hideDSN: true,
    hideREQUIRETLS: true,
    disabledCommands: ['VRFY', 'HELP', 'WIZ', 'SHELL', 'KILL'],
    disableReverseLookup: true,
    maxClients: CONNECTIONS,
    socketTimeout: options.idleMs ?? IDLE_MS,
    closeTimeout: CLOSE_MS,
    onConnect: ({ remoteAddress }, done) => {
      if (!crowd.enter(remoteAddress)) {
        return done(new Refusal(REPLIES.THROTTLED, 'Too many connections from this address'))
      }
      done(logins.isBlocked(remoteAddress) ? tooManyFailures() : null)
    },
    onClose: ({ remoteAddress }) => crowd.leave(remoteAddress),
    onAuth: (login, session, done) => {
      authenticate(login, session).then(
        (user) => {
          onReply('login', 235)
          done(null, { user })
        },
        (error: unknown) => done(answered('login', error, session)),
      )
    },
    onRcptTo: (_address, { envelope }, done) => {
      const isSecond = envelope.rcptTo.length > 0
      done(
        isSecond
          ? new Refusal(REPLIES.TOO_MANY_RECIPIENTS, 'One recipient a message; send it again for the next')
          : null,
      )
    },
    onData: (stream, session, done) => {
      accept(stream, session).then(
        (id) => {
          onReply('message', 250)
          done(null, `queued as ${id}`)
        },
        (error: unknown) => done(answered('message', error, session)),
      )
    },
  })
  // A client that breaks off is no fault of ours.
  server.on('error', (error) => log.debug({ err: error }, 'a connection broke'))
  renewCertificate(server, certificate, log, options.certificateLookMs)
  return server

  async function authenticate(
    { username, password }: SMTPServerAuthentication,
    { remoteAddress }: SMTPServerSession,
  ): Promise<{ token: string; label: string }> {
    if (logins.isBlocked(remoteAddress)) throw tooManyFailures()
    try {
      if (!username) throw new Refusal(REPLIES.BAD_TOKEN, 'The user name is empty; send any text')
      await api.checkToken(password ?? '')
    } catch (error) {
      const isWrong = error instanceof Refusal && error.responseCode !== REPLIES.API_AWAY[0]
      if (!isWrong) throw error
      logins.fail(remoteAddress)
      throw error.responseCode === REPLIES.BAD_TOKEN[0]
        ? error
        : new Refusal(REPLIES.BAD_TOKEN, 'This API token is not valid here; check the password')
    }
    return { token: password ?? '', label: username }
  }

  async function accept(stream: AsyncIterable<Buffer | string>, session: SMTPServerSession): Promise<string> {
    const raw = await receiveMessage(stream, MESSAGE_BYTES)
    const recipient = session.envelope.rcptTo[0]?.address ?? ''
    const { token } = session.user as { token: string }
    const { submission, idempotencyKey, messageId } = await readMessage(raw, recipient)
    return await api.submit(token, idempotencyKey ?? derivedKey(token, messageId, recipient), submission)
  }

  function answered(what: 'message' | 'login', error: unknown, session: SMTPServerSession): Refusal {
    const refusal =
      error instanceof Refusal
        ? error
        : new Refusal(REPLIES.API_AWAY, 'Something failed on our side; try again in a moment')
    if (error !== refusal) log.error({ err: error, session: session.id }, 'a message could not be handled')
    onReply(what, refusal.responseCode)
    log.debug({ session: session.id, reply: refusal.responseCode }, `a ${what} was refused`)
    return refusal
  }
}

function tooManyFailures(): Refusal {
  return new Refusal(REPLIES.THROTTLED, 'Too many failed logins from this address; try again in ten minutes')
}

/**
 * A client that missed our 250 sends the same message again, and must not make a second email of it. Without a
 * Message-ID nothing tells a repetition, and the key only serves our own retry.
 */
function derivedKey(token: string, messageId: string | null, recipient: string): string {
  if (messageId === null) return `smtp-${randomUUID()}`
  const hash = createHash('sha256').update(JSON.stringify([token, messageId, recipient.toLowerCase()]))
  return `smtp-${hash.digest('hex')}`
}
