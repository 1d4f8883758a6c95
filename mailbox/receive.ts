import { simpleParser, type AddressObject, type EmailAddress, type ParsedMail } from 'mailparser'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'

import type { Address, MailStore, NewMail } from './store.ts'

const MAX_BYTES = 25 * 1024 * 1024

/**
 * Creates the SMTP server. It accepts any mail for any recipient without login, and stores it before it answers 250.
 */
export function createReceiver(store: MailStore, onFault: (error: Error) => void): SMTPServer {
  const server = new SMTPServer({
    name: 'postloom-mailbox',
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    size: MAX_BYTES,
    closeTimeout: 1_000,
    onData: (stream, session, done) => {
      receive(store, stream, session).then(
        (id) => done(null, `kept as ${id}`),
        (error: unknown) => done(asRefusal(error, onFault)),
      )
    },
  })
  // A connection that the client resets is not a fault.
  server.on('error', (error) => {
    if (!('code' in error) || error.code !== 'ECONNRESET') onFault(error)
  })
  return server
}

class Refusal extends Error {
  readonly responseCode: number

  constructor(responseCode: number, message: string) {
    super(message)
    this.responseCode = responseCode
  }
}

function asRefusal(error: unknown, onFault: (error: Error) => void): Error {
  if (error instanceof Refusal) return error
  onFault(error instanceof Error ? error : new Error(String(error)))
  return new Refusal(451, '4.3.0 the mailbox could not store this mail; its log says why')
}

async function receive(
  store: MailStore,
  stream: SMTPServerDataStream,
  session: SMTPServerSession,
): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stream) {
    // smtp-server yields buffers, and the whole message even when it is too large.
    const bytes = chunk as Buffer
    size += bytes.length
    if (size <= MAX_BYTES) chunks.push(bytes)
  }
  if (size > MAX_BYTES) throw new Refusal(552, `5.3.4 the mailbox takes at most ${MAX_BYTES} bytes`)
  const { mailFrom, rcptTo } = session.envelope
  const envelope = {
    from: mailFrom ? mailFrom.address : '',
    to: rcptTo.map(({ address }) => address),
  }
  return store.add(await readMail(Buffer.concat(chunks), envelope))
}

/** Reads the fields that the list and the search need. The parser accepts malformed mail, so that is stored as well. */
async function readMail(raw: Buffer, envelope: NewMail['envelope']): Promise<NewMail> {
  const parsed = await parseMail(raw)
  const To = addresses(parsed.to)
  const Cc = addresses(parsed.cc)
  const shown = new Set([...To, ...Cc].map(({ Address }) => Address.toLowerCase()))
  const hidden = envelope.to.filter((address) => !shown.has(address.toLowerCase()))
  const text = parsed.text ?? textOf(parsed.html || '')
  return {
    envelope,
    raw,
    text,
    summary: {
      MessageID: (parsed.messageId ?? '').replace(/^<|>$/g, ''),
      From: addresses(parsed.from)[0] ?? { Name: '', Address: envelope.from },
      To,
      Cc,
      Bcc: hidden.map((address) => ({ Name: '', Address: address })),
      ReplyTo: addresses(parsed.replyTo),
      Subject: parsed.subject ?? '',
      Username: '',
      Tags: [],
      Attachments: parsed.attachments.filter(({ related }) => !related).length,
      // Removes the lines that underline headings in text parts.
      Snippet: text
        .replace(/(?:\s|[-=_*]{4,})+/g, ' ')
        .trim()
        .slice(0, 250),
    },
  }
}

/** Parses a mail without derived content: no text from HTML, no HTML from text, and unchanged cid: links. */
export async function parseMail(raw: Buffer): Promise<ParsedMail> {
  return await simpleParser(raw, { skipHtmlToText: true, skipTextToHtml: true, skipImageLinks: true })
}

/** Returns the addresses of a header as a flat list, with those in groups. */
export function addresses(header: AddressObject | AddressObject[] | undefined): Address[] {
  return [header ?? []].flat().flatMap(({ value }) => value.flatMap(flatten))
}

function flatten(entry: EmailAddress): Address[] {
  if (entry.group) return entry.group.flatMap(flatten)
  return [{ Name: entry.name, Address: entry.address ?? '' }]
}

function textOf(html: string): string {
  return html
    .replace(/<(style|script|head)\b.*?<\/\1>/gis, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replaceAll('&nbsp;', ' ')
}
