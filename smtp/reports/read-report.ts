import { type Attachment, type ParsedMail, simpleParser } from 'mailparser'

import { REPORT_BYTES, type ReportKind } from '../../schema/report.ts'
import { REPLIES, Refusal } from '../refusal.ts'
import { isAutomatic, isFromServer, saysDelayed, saysFailed } from './automatic.ts'
import { isComplaint } from './complaint.ts'
import { readDeliveryStatus } from './delivery-status.ts'
import { findReturned, type KnownOrigin } from './origin.ts'
import { spokenStatus, writtenStatus } from './phrases.ts'

/** A message that came in about an email. */
export type Report = {
  kind: ReportKind
  /** The enhanced status code of a bounce or a delay. */
  status: string | null
  /** What the server said. */
  diagnostic: string | null
  subject: string | null
  /** The author, as the From header says. */
  from: string | null
  messageId: string | null
  /** The tokens in it that may identify the email it is about. */
  returned: KnownOrigin
}

/** The part of the SMTP envelope that matters here. */
export type Envelope = { isNullSender: boolean }

/** Texts are read up to so many characters; a returned email below them may have any length. */
const LONGEST_TEXT = 20_000
const LONGEST_SAID = 1_000
/** Longer runs of blanks are cut to so many, because the time of libqp grows with the square of their length. */
const BLANKS = 64
const MORE_BLANKS = new RegExp(`[ \\t]{${BLANKS + 1},}`, 'g')

const PARSING = {
  // A returned email is an attachment, even when it is meant to be shown inline.
  ignoreEmbedded: true,
  keepDeliveryStatus: true,
  skipHtmlToText: true,
  skipTextToHtml: true,
  skipTextLinks: true,
  skipImageLinks: true,
}

/**
 * Reads an incoming message, as much of it as is kept. Throws `Refusal` when it has too many parts. The time grows no
 * faster than the length of the message, even for a hostile one.
 */
export async function readReport(raw: Buffer, envelope: Envelope): Promise<Report> {
  const mail = await parse(readable(raw))
  const words = wordsOf(mail)
  const known = {
    subject: shortened(mail.subject),
    from: shortened(mail.from?.value[0]?.address),
    messageId: shortened(mail.messageId),
    returned: findReturned(mail, words),
  }
  return { ...known, ...judge(mail, words, envelope) }
}

async function parse(raw: Buffer): Promise<ParsedMail> {
  try {
    return await simpleParser(raw, PARSING)
  } catch (error) {
    const why = error instanceof Error ? error.message : 'unknown fault'
    throw new Refusal(REPLIES.BAD_MESSAGE, `The message cannot be read: ${why}`)
  }
}

/** Returns the beginning of a message, which is enough: the report comes before the email that it returns. */
function readable(raw: Buffer): Buffer {
  const text = raw.subarray(0, REPORT_BYTES).toString('latin1')
  return Buffer.from(text.replaceAll(MORE_BLANKS, ' '.repeat(BLANKS)), 'latin1')
}

type Judgement = Pick<Report, 'kind' | 'status' | 'diagnostic'>

function judge(mail: ParsedMail, words: string, envelope: Envelope): Judgement {
  const feedback = isComplaint(mail)
  if (feedback !== null) return silent(feedback ? 'COMPLAINT' : 'AUTOMATIC')
  const isServer = isFromServer(mail)
  // A person may quote or forward what a server once reported about another email.
  const notified = isServer || envelope.isNullSender ? readNotification(mail, words) : null
  if (notified) return notified
  // Before `isAutomatic`, because a server marks its failure notices as automatic, like an absence note.
  if (isServer) return readUnstructured(mail, words) ?? silent('AUTOMATIC')
  if (isAutomatic(mail, words)) return silent('AUTOMATIC')
  if (!envelope.isNullSender) return silent('REPLY')
  return (saysFailed(mail) ? readUnstructured(mail, words) : null) ?? silent('AUTOMATIC')
}

function readNotification(mail: ParsedMail, words: string): Judgement | null {
  const part = partOf(mail, 'message/delivery-status') ?? partOf(mail, 'message/global-delivery-status')
  // Some servers write the fields into the text.
  const inText = /^(?:Final|Original)-Recipient:[^]*/im.exec(words)?.[0]
  const fields = part?.content.toString() ?? inText
  const told = fields === undefined ? null : readDeliveryStatus(fields, words)
  if (!told) return null
  const said = { status: told.status, diagnostic: shortened(told.diagnostic ?? lineOf(words)) }
  if (told.action === 'delivered') return silent('AUTOMATIC')
  return { kind: told.action === 'failed' ? 'BOUNCE' : 'DELAY', ...said }
}

/** Reads a bounce without fields, as older servers and gateways write it. */
function readUnstructured(mail: ParsedMail, words: string): Judgement | null {
  const status = writtenStatus(words) ?? spokenStatus(words)
  const diagnostic = shortened(lineOf(words))
  if (saysDelayed(mail, words)) return { kind: 'DELAY', status: status ?? '4.0.0', diagnostic }
  if (status === null && !saysFailed(mail)) return null
  return { kind: 'BOUNCE', status: status ?? '5.0.0', diagnostic }
}

function silent(kind: Report['kind']): Judgement {
  return { kind, status: null, diagnostic: null }
}

/** Returns the text for people, up to the email that it returns. */
function wordsOf(mail: ParsedMail): string {
  const html = mail.html === false ? '' : mail.html.slice(0, LONGEST_TEXT * 4).replaceAll(/<[^<>]*>/g, ' ')
  const text = (mail.text?.trim() ? mail.text : html).slice(0, LONGEST_TEXT)
  const returned =
    /^[> \t]*-+ ?(?:this is a copy of|below this line is|returned message|original message|message header)/im
  const end = returned.exec(text)?.index
  return end === undefined ? text : text.slice(0, end)
}

/** Returns the line with a server's reply, or else the first line, as the diagnostic of a bounce that has none. */
function lineOf(words: string): string | null {
  const lines = words
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter(Boolean)
  return (
    lines.find((line) => /(?:^|\D)[45]\d\d[ -](?:#?[45]\.\d|\S)/.test(line)) ??
    lines.find((line) => spokenStatus(line) !== null) ??
    lines[0] ??
    null
  )
}

/** Returns the first attachment of this type. */
function partOf(mail: ParsedMail, type: string): Attachment | undefined {
  return mail.attachments.find(({ contentType }) => contentType.toLowerCase() === type)
}

function shortened(text: string | null | undefined): string | null {
  const line = text
    ?.toWellFormed()
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, LONGEST_SAID)
  return line?.toWellFormed() || null
}
