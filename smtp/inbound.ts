import { createHash } from 'node:crypto'

import type { Logger } from 'pino'
import type { SMTPServerSession } from 'smtp-server'

import { type InboundReport, REPORT_BYTES } from '../schema/report.ts'
import { readReturnPath, type Returned } from '../src/delivery/return-path.ts'
import { readToken } from '../src/delivery/tracking-token.ts'
import type { ApiClient } from './api-client.ts'
import { type CertificateFiles, readCertificate } from './certificate.ts'
import { Crowd } from './crowd.ts'
import { Intake } from './intake.ts'
import { REPLIES, Refusal } from './refusal.ts'
import { readReport, type Report } from './reports/read-report.ts'
import { Door, renewCertificate } from './server.ts'
import { Throttle } from './throttle.ts'

/** What the listener is made of; bounds are those below unless a test shortens them. */
export type InboundOptions = {
  /** The name it greets with. */
  name: string
  certificate: CertificateFiles
  /** What return paths and links are signed with. */
  secret: string
  api: Pick<ApiClient, 'report'>
  log: Logger
  /** Hears the reply of every message and every refused recipient, for the metrics. */
  onReply?: (what: 'report' | 'recipient', reply: number) => void
  idleMs?: number
  strangers?: number
  certificateLookMs?: number
}

/** The most of one message: a bounce may bring back all of the email. */
export const INBOUND_BYTES = 5_000_000
/** The most of all messages that are being received, so that many senders cannot fill the memory. */
const BYTES_AT_ONCE = 64_000_000
const CONNECTIONS = 500
const CONNECTIONS_OF_ADDRESS = 50
/** So many recipients that are none of ours, and an address is not heard for a while. */
const STRANGERS = 20
const STRANGERS_WINDOW_MS = 10 * 60_000
const IDLE_MS = 60_000
const CLOSE_MS = 4_000
/** Where feedback loops are registered: which email a complaint is about stands in the complaint. */
const COMPLAINTS = 'complaints'

/**
 * Inbound SMTP for bounces, complaints and replies to our emails, and for nothing else: a recipient is the signed
 * return path of one email, or the address for complaints. 250 means that what came is stored. Nothing is ever
 * answered or passed on, so no loop can begin here.
 */
export function createInbound(options: InboundOptions): Door {
  const { api, log, certificate, secret, onReply = () => undefined } = options
  const strangers = new Throttle(options.strangers ?? STRANGERS, STRANGERS_WINDOW_MS)
  const intake = new Intake(INBOUND_BYTES, BYTES_AT_ONCE)
  const crowd = new Crowd(CONNECTIONS_OF_ADDRESS)

  const server = new Door({
    name: options.name,
    banner: 'Postloom inbound',
    ...readCertificate(certificate),
    size: INBOUND_BYTES,
    rejectOversized: true,
    authOptional: true,
    hideENHANCEDSTATUSCODES: false,
    hideDSN: true,
    hideREQUIRETLS: true,
    disabledCommands: ['AUTH', 'VRFY', 'HELP', 'WIZ', 'SHELL', 'KILL'],
    disableReverseLookup: true,
    maxClients: CONNECTIONS,
    socketTimeout: options.idleMs ?? IDLE_MS,
    closeTimeout: CLOSE_MS,
    onConnect: ({ remoteAddress }, done) => {
      if (!crowd.enter(remoteAddress)) {
        return done(new Refusal(REPLIES.THROTTLED, 'Too many connections from this address'))
      }
      done(strangers.isBlocked(remoteAddress) ? tooManyStrangers() : null)
    },
    onClose: ({ remoteAddress }) => crowd.leave(remoteAddress),
    onRcptTo: ({ address }, { envelope, remoteAddress }, done) => {
      const refusal = judgeRecipient(address, envelope.rcptTo.length > 0, remoteAddress)
      if (refusal) onReply('recipient', refusal.responseCode)
      done(refusal)
    },
    onData: (stream, session, done) => {
      accept(stream, session).then(
        () => {
          onReply('report', 250)
          done(null, 'stored')
        },
        (error: unknown) => done(answered(error, session)),
      )
    },
  })
  // A client that breaks off is no fault of ours.
  server.on('error', (error) => log.debug({ err: error }, 'a connection broke'))
  renewCertificate(server, certificate, log, options.certificateLookMs)
  return server

  function judgeRecipient(address: string, isSecond: boolean, remoteAddress: string): Refusal | null {
    if (strangers.isBlocked(remoteAddress)) return tooManyStrangers()
    if (isSecond)
      return new Refusal(REPLIES.ONE_AT_A_TIME, 'One recipient a message; send it again for the next')
    const local = address.slice(0, address.lastIndexOf('@')).toLowerCase()
    if (local === COMPLAINTS || readReturnPath(secret, local)) return null
    strangers.fail(remoteAddress)
    return new Refusal(
      REPLIES.UNKNOWN_RECIPIENT,
      'There is no such address; only what answers an email of ours is taken',
    )
  }

  async function accept(stream: AsyncIterable<Buffer | string>, session: SMTPServerSession): Promise<void> {
    const { mailFrom, rcptTo } = session.envelope
    const address = rcptTo[0]?.address ?? ''
    const local = address.slice(0, address.lastIndexOf('@')).toLowerCase()
    await intake.take(stream, async (raw) => {
      const report = await readReport(raw, { isNullSender: mailFrom === false || mailFrom.address === '' })
      const returned = local === COMPLAINTS ? complainedAbout(report) : readReturnPath(secret, local)
      if (!returned) {
        strangers.fail(session.remoteAddress)
        throw new Refusal(
          REPLIES.NOT_OURS,
          'This is no complaint about an email of ours: it does not bring back its header',
        )
      }
      await api.report(asInbound(returned, report, raw))
    })
  }

  /** A complaint is believed when it brings back something that we signed in that email. */
  function complainedAbout({ kind, returned }: Report): Returned | null {
    if (kind !== 'COMPLAINT') return null
    const paths = returned.returnPaths.flatMap((local) => readReturnPath(secret, local) ?? [])
    const links = returned.unsubscribeTokens.flatMap((token) => readToken(secret, 'unsubscribe', token) ?? [])
    return paths[0] ?? links[0] ?? null
  }

  function answered(error: unknown, session: SMTPServerSession): Refusal {
    const refusal =
      error instanceof Refusal
        ? error
        : new Refusal(REPLIES.API_AWAY, 'Something failed on our side; try again in a moment')
    if (error !== refusal) log.error({ err: error, session: session.id }, 'a report could not be handled')
    onReply('report', refusal.responseCode)
    log.debug({ session: session.id, reply: refusal.responseCode }, 'a report was refused')
    return refusal
  }
}

function tooManyStrangers(): Refusal {
  return new Refusal(
    REPLIES.THROTTLED,
    'Too many unknown recipients from this address; try again in ten minutes',
  )
}

/** A report that comes twice has the same Message-ID, or is the same to the byte. */
function asInbound({ organizationId, messageId }: Returned, report: Report, raw: Buffer): InboundReport {
  const { kind, status, diagnostic, subject, from } = report
  const fingerprint = createHash('sha256')
    .update(`${kind}\n`)
    .update(report.messageId ?? raw)
    .digest('hex')
  const kept = raw.subarray(0, REPORT_BYTES).toString('base64')
  return { organizationId, messageId, kind, status, diagnostic, subject, from, fingerprint, raw: kept }
}
