import { createHash } from 'node:crypto'

import type { SMTPServerSession } from 'smtp-server'

import { type InboundReport, REPORT_BYTES } from '../schema/report.ts'
import { readReturnPath, type Returned } from '../src/delivery/return-path.ts'
import { readToken } from '../src/delivery/tracking-token.ts'
import type { ApiClient } from './api-client.ts'
import { takeReport } from './intake.ts'
import { MessageMemory } from './message-memory.ts'
import { REPLIES, Refusal } from './refusal.ts'
import { readReport, type Report } from './reports/read-report.ts'
import { Door, type DoorOptions } from './server.ts'

/** The options of the inbound server. `unknownRecipients` is `MOST_UNKNOWN_RECIPIENTS` unless a test lowers it. */
export type InboundOptions = DoorOptions & {
  /** Signs return paths and the tokens in links. */
  secret: string
  api: Pick<ApiClient, 'report'>
  unknownRecipients?: number
}

/** The most bytes of one message: a bounce may return the whole email. */
export const INBOUND_BYTES = 5_000_000
/** The most bytes of all messages that are being received, so that many senders cannot fill the memory. */
const BYTES_AT_ONCE = { all: 64_000_000, ofAddress: 16_000_000 }
const CONNECTIONS = { all: 500, ofAddress: 50 }
/** After so many unknown recipients, an address is refused for a while. */
const MOST_UNKNOWN_RECIPIENTS = 20
/** The local part for feedback loops. The complaint itself names the email that it is about. */
const COMPLAINTS = 'complaints'

/**
 * Creates the inbound SMTP server for bounces, complaints and replies to our emails, and for nothing else: a recipient
 * is the signed return path of one email, or the address for complaints. 250 means that the message is stored. Nothing
 * is ever answered or forwarded, so no mail loop can begin here.
 */
export function createInbound({
  api,
  secret,
  unknownRecipients = MOST_UNKNOWN_RECIPIENTS,
  ...options
}: InboundOptions): Door {
  const memory = new MessageMemory(BYTES_AT_ONCE)
  const door = new Door(options, {
    banner: 'Postloom inbound',
    bytes: INBOUND_BYTES,
    connections: CONNECTIONS,
    offences: {
      most: unknownRecipients,
      text: 'Too many unknown recipients from this address; try again in ten minutes',
    },
    what: 'report',
    accept,
    own: {
      authOptional: true,
      onRcptTo: ({ address }, { envelope, remoteAddress }, done) => {
        const refusal = judgeRecipient(address, envelope.rcptTo.length > 0, remoteAddress)
        if (refusal) door.count('recipient', refusal.responseCode)
        done(refusal)
      },
    },
  })
  return door

  function judgeRecipient(address: string, isSecond: boolean, remoteAddress: string): Refusal | null {
    const blocked = door.blocked(remoteAddress)
    if (blocked) return blocked
    if (isSecond)
      return new Refusal(REPLIES.ONE_AT_A_TIME, 'One recipient a message; send it again for the next')
    const local = address.slice(0, address.lastIndexOf('@')).toLowerCase()
    if (local === COMPLAINTS || readReturnPath(secret, local)) return null
    door.offended(remoteAddress)
    return new Refusal(
      REPLIES.UNKNOWN_RECIPIENT,
      'There is no such address; only reports about emails of ours are accepted',
    )
  }

  async function accept(stream: AsyncIterable<Buffer | string>, session: SMTPServerSession): Promise<string> {
    const { mailFrom, rcptTo } = session.envelope
    const address = rcptTo[0]?.address ?? ''
    const local = address.slice(0, address.lastIndexOf('@')).toLowerCase()
    await takeReport(stream, INBOUND_BYTES, memory.open(session.remoteAddress), async (raw) => {
      const report = await readReport(raw, { isNullSender: mailFrom === false || mailFrom.address === '' })
      const returned = local === COMPLAINTS ? complainedAbout(report) : readReturnPath(secret, local)
      if (!returned) {
        door.offended(session.remoteAddress)
        throw new Refusal(
          REPLIES.NOT_OURS,
          'This is not a complaint about an email of ours: it does not contain its header',
        )
      }
      await api.report(asInbound(returned, report, raw))
    })
    return 'stored'
  }

  /**
   * Returns the email that a complaint is about, or null. A complaint is believed when it returns something that we
   * signed in that email.
   */
  function complainedAbout({ kind, returned }: Report): Returned | null {
    if (kind !== 'COMPLAINT') return null
    const paths = returned.returnPaths.flatMap((local) => readReturnPath(secret, local) ?? [])
    const links = returned.unsubscribeTokens.flatMap((token) => readToken(secret, 'unsubscribe', token) ?? [])
    return paths[0] ?? links[0] ?? null
  }
}

/**
 * Returns a report in the form of the API. Its fingerprint is the same when the report comes twice: it is made from the
 * Message-ID, or else from all bytes.
 */
function asInbound({ organizationId, messageId }: Returned, report: Report, raw: Buffer): InboundReport {
  const { kind, status, diagnostic, subject, from } = report
  const fingerprint = createHash('sha256')
    .update(`${kind}\n`)
    .update(report.messageId ?? raw)
    .digest('hex')
  const kept = raw.subarray(0, REPORT_BYTES).toString('base64')
  return { organizationId, messageId, kind, status, diagnostic, subject, from, fingerprint, raw: kept }
}
