import { createHash, randomUUID } from 'node:crypto'

import type { SMTPServerAuthentication, SMTPServerSession } from 'smtp-server'

import type { ApiClient } from './api-client.ts'
import { KnownTokens } from './known-tokens.ts'
import { MessageMemory, type MemoryLimits } from './message-memory.ts'
import { readMessage } from './message.ts'
import { receiveMessage } from './receive.ts'
import { REPLIES, Refusal } from './refusal.ts'
import { Door, type DoorOptions } from './server.ts'

/** The options of the submission server. The limits default to the constants below; tests lower them. */
export type SubmissionOptions = DoorOptions & {
  api: ApiClient
  failedLogins?: number
  bytesAtOnce?: MemoryLimits
}

/** The limit of one message in bytes (contract, "Limits": 1 MB). */
export const MESSAGE_BYTES = 1_000_000
/** The most bytes of all messages that are being received. */
const BYTES_AT_ONCE = { all: 256_000_000, ofAddress: 32_000_000 }
const CONNECTIONS = { all: 1_000, ofAddress: 100 }
const FAILED_LOGINS = 10
const BAD_PASSWORD =
  'This API token is not valid: it is mistyped, revoked or expired; use an API token with the permission "emails" as the password'

/**
 * Creates the SMTP submission server (RFC 6409): STARTTLS, then AUTH with an API token as the password, then one
 * message to one recipient at a time, which is submitted to the API. 250 means that the email is stored.
 */
export function createSubmission({
  api,
  failedLogins = FAILED_LOGINS,
  bytesAtOnce = BYTES_AT_ONCE,
  ...options
}: SubmissionOptions): Door {
  const memory = new MessageMemory(bytesAtOnce)
  const knownTokens = new KnownTokens()
  const door = new Door(options, {
    banner: 'Postloom submission',
    bytes: MESSAGE_BYTES,
    connections: CONNECTIONS,
    offences: {
      most: failedLogins,
      text: 'Too many failed logins from this address; try again in ten minutes',
    },
    isGreeted: (address) => knownTokens.has(address),
    what: 'message',
    accept: async (stream, session) => `queued as ${await accept(stream, session)}`,
    own: {
      authMethods: ['PLAIN', 'LOGIN'],
      authRequiredMessage: '5.7.0 Log in first: STARTTLS, then AUTH with an API token as the password',
      onAuth: (login, session, done) => {
        authenticate(login, session).then(
          (user) => {
            door.count('login', 235)
            done(null, { user })
          },
          (error: unknown) => done(door.refusalOf('login', error, session)),
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
    },
  })
  return door

  async function authenticate(
    { username, password: shown }: SMTPServerAuthentication,
    { remoteAddress }: SMTPServerSession,
  ): Promise<{ token: string; label: string }> {
    const password = shown ?? ''
    const blocked = knownTokens.has(remoteAddress, password) ? null : door.blocked(remoteAddress)
    if (blocked) throw blocked
    try {
      if (!username) throw new Refusal(REPLIES.BAD_TOKEN, 'The user name is empty; send any text')
      // Nothing else can be a token or the value of an HTTP header.
      if (!/^[\x21-\x7e]+$/.test(password)) throw new Refusal(REPLIES.BAD_TOKEN, BAD_PASSWORD)
      await api.checkToken(password)
    } catch (error) {
      const isWrong = error instanceof Refusal && error.responseCode !== REPLIES.API_AWAY[0]
      if (!isWrong) throw error
      door.offended(remoteAddress)
      knownTokens.delete(remoteAddress, password)
      throw error.failure ? new Refusal(REPLIES.BAD_TOKEN, BAD_PASSWORD) : error
    }
    knownTokens.add(remoteAddress, password)
    return { token: password, label: username }
  }

  async function accept(stream: AsyncIterable<Buffer | string>, session: SMTPServerSession): Promise<string> {
    return await receiveMessage(stream, MESSAGE_BYTES, memory.open(session.remoteAddress), (raw) =>
      submit(raw, session),
    )
  }

  async function submit(raw: Buffer, session: SMTPServerSession): Promise<string> {
    const recipient = session.envelope.rcptTo[0]?.address ?? ''
    const { token } = session.user as { token: string }
    const { submission, idempotencyKey, messageId } = await readMessage(raw, recipient)
    try {
      return await api.submit(token, idempotencyKey ?? derivedKey(token, messageId, recipient), submission)
    } catch (error) {
      throw inWordsOfSmtp(error, idempotencyKey === null ? 'Message-ID' : 'X-Idempotency-Key')
    }
  }
}

/**
 * Rewrites API errors about its headers and limits for SMTP clients; `known` is the header that identified a
 * repetition.
 */
function inWordsOfSmtp(error: unknown, known: 'Message-ID' | 'X-Idempotency-Key'): unknown {
  if (!(error instanceof Refusal)) return error
  if (error.failure === 'UNAUTHENTICATED') return error.saying(BAD_PASSWORD)
  if (error.failure === 'IDEMPOTENCY_MISMATCH') {
    return error.saying(
      `Another message to this recipient had the same ${known} within 24 hours; give each message one of its own`,
    )
  }
  if (error.failure === 'IDEMPOTENCY_IN_PROGRESS') {
    return error.saying(`A message with the same ${known} is being taken; try again in a moment`)
  }
  if (error.failure === 'TOO_LARGE') {
    return error.saying(
      `The message is too large once it is written as HTML, where a character such as & or < takes up to five bytes; ${MESSAGE_BYTES} bytes of plain words fit, of these characters fewer; send less`,
    )
  }
  return error
}

/**
 * Returns the idempotency key of a message without one. A client that missed our 250 sends the message again, which
 * must not create a second email. Without a Message-ID a repetition cannot be recognized, and the random key only
 * serves our own retry.
 */
function derivedKey(token: string, messageId: string | null, recipient: string): string {
  if (messageId === null) return `smtp-${randomUUID()}`
  const hash = createHash('sha256').update(JSON.stringify([token, messageId, recipient.toLowerCase()]))
  return `smtp-${hash.digest('hex')}`
}
