import { finished } from 'node:stream/promises'

import { type AddressObject, type EmailAddress, MailParser, type MessageText } from 'mailparser'

import { REPLIES, Refusal } from './refusal.ts'

/** An email as the API accepts it from this process: the body of POST /api/v1/emails, and the text part. */
export type Submission = {
  to: string
  from: string
  replyTo?: string
  subject: string
  content: string
  contentType: 'HTML'
  text?: string
  tracking: false
}

/** A message that was read: the email to submit, and the keys by which a repetition is recognized. */
export type ReadMessage = { submission: Submission; idempotencyKey: string | null; messageId: string | null }

/**
 * Reads a MIME message (RFC 5322, 2045) into an email that is composed anew; none of its bytes are passed on. The email
 * goes to the recipient of the envelope; To and Cc are not used. Throws `Refusal` for attachments, also for inline
 * images.
 */
export async function readMessage(raw: Buffer, recipient: string): Promise<ReadMessage> {
  const mail = await parse(raw)
  refuseRepeated(mail.headerNames)
  refuseFiles(mail)
  const from = onlyAddress(mail.from, 'From', REPLIES.BAD_SENDER)
  if (!from) throw new Refusal(REPLIES.BAD_SENDER, 'The From header is missing or empty; name a sender')
  const replyTo = onlyAddress(mail.replyTo, 'Reply-To', REPLIES.BAD_MESSAGE)
  const text = mail.text?.trim() ? mail.text : undefined
  const html = mail.html?.trim() ? mail.html : undefined
  const content = html ?? (text === undefined ? undefined : asHtml(text))
  if (content === undefined)
    throw new Refusal(REPLIES.BAD_MESSAGE, 'The message has neither a text nor an HTML part')
  return {
    submission: {
      to: recipient,
      from: formatFrom(from),
      ...(replyTo && { replyTo: replyTo.address ?? '' }),
      subject: mail.subject ?? '',
      content,
      contentType: 'HTML',
      ...(text !== undefined && { text }),
      tracking: false,
    },
    idempotencyKey: readKey(mail.headers.get('x-idempotency-key')),
    messageId: mail.messageId ?? null,
  }
}

/** A part of a message in the tree of mailparser; `textContent` is the content of a text part. */
type Part = {
  node: { filename: string | false }
  contentType?: string
  textContent?: string
  children: Part[]
}

type Parsed = {
  headers: Map<string, unknown>
  /** The name of each header line in lower case, in the order of the message. */
  headerNames: string[]
  from: AddressObject | undefined
  replyTo: AddressObject | undefined
  subject: string | undefined
  messageId: string | undefined
  text: string | undefined
  html: string | undefined
  hasAttachment: boolean
  root: Part
}

/** Parses a message without deriving text from HTML or HTML from text. Attachments are noticed and discarded. */
async function parse(raw: Buffer): Promise<Parsed> {
  const options = { skipHtmlToText: true, skipTextToHtml: true, skipTextLinks: true, skipImageLinks: true }
  // The types of mailparser lack these properties.
  const parser = new MailParser(options) as MailParser & {
    tree: Part
    headers: Map<string, unknown>
    headerLines: { key: string }[]
  }
  let body: MessageText | undefined
  let hasAttachment = false
  parser.on('data', (data) => {
    if (data.type === 'text') {
      body = data
      return
    }
    hasAttachment = true
    data.content.on('end', () => data.release())
    data.content.resume()
  })
  try {
    parser.end(raw)
    await finished(parser)
  } catch (error) {
    const why = error instanceof Error ? error.message : 'unknown fault'
    throw new Refusal(REPLIES.BAD_MESSAGE, `The message cannot be read: ${why}`)
  }
  const { headers, tree } = parser
  return {
    headers,
    headerNames: parser.headerLines.map(({ key }) => key),
    // mailparser parses these headers into these types.
    from: headers.get('from') as AddressObject | undefined,
    replyTo: headers.get('reply-to') as AddressObject | undefined,
    subject: headers.get('subject') as string | undefined,
    messageId: headers.get('message-id') as string | undefined,
    text: body?.text,
    html: typeof body?.html === 'string' ? body.html : undefined,
    hasAttachment,
    root: tree,
  }
}

/**
 * Throws `Refusal` when a header that is read occurs more than once (RFC 5322 3.6 allows each only once): readers
 * disagree on which one counts.
 */
function refuseRepeated(headerNames: readonly string[]): void {
  for (const name of ['From', 'Reply-To', 'Subject', 'Message-ID', 'X-Idempotency-Key']) {
    if (headerNames.filter((key) => key === name.toLowerCase()).length < 2) continue
    const reply = name === 'From' ? REPLIES.BAD_SENDER : REPLIES.BAD_MESSAGE
    throw new Refusal(reply, `The message has more than one ${name} header; send only one`)
  }
}

/**
 * Throws `Refusal` for files, also inline ones: for a part with a file name, and for a text beside HTML that is not an
 * alternative of it, because one of them would be missing from the email.
 */
function refuseFiles({ hasAttachment, root }: Parsed): void {
  if (hasAttachment || allParts(root).some(({ node }) => node.filename)) {
    throw new Refusal(
      REPLIES.ATTACHMENT,
      'Attachments and inline images and files are not taken; link to them instead',
    )
  }
  const isText = ({ textContent }: Part) => Boolean(textContent?.trim())
  const kinds = new Set(
    allParts(root)
      .filter(isText)
      .map(({ contentType }) => contentType),
  )
  if (kinds.size < 2 || !allParts(root, 'multipart/alternative').some(isText)) return
  throw new Refusal(
    REPLIES.ATTACHMENT,
    'A text beside HTML counts as an attachment; send one text and one HTML part as multipart/alternative',
  )
}

/** Returns a part and all parts inside it, except those inside parts of the type `without`. */
function allParts(root: Part, without?: string): Part[] {
  const found: Part[] = []
  const left = [root]
  for (let part = left.pop(); part; part = left.pop()) {
    if (part.contentType === without) continue
    found.push(part)
    for (const child of part.children) left.push(child)
  }
  return found
}

/**
 * Returns the address of a header that may hold one; undefined when it is missing or empty. Throws `Refusal` for more.
 */
function onlyAddress(
  header: AddressObject | undefined,
  name: string,
  reply: readonly [number, string],
): EmailAddress | undefined {
  const found = (header?.value ?? []).filter((entry) => entry.address || entry.name || entry.group)
  if (found.some(({ group }) => group)) {
    throw new Refusal(reply, `The ${name} header holds a group; name one address in its place`)
  }
  const [first] = found
  if (found.length > 1 || (first && !first.address)) {
    throw new Refusal(reply, `The ${name} header must hold exactly one address`)
  }
  return first
}

function formatFrom({ name, address = '' }: EmailAddress): string {
  return name ? `"${name.replaceAll(/["\\]/g, String.raw`\$&`)}" <${address}>` : address
}

/** Returns the idempotency key that a client chose, or null. Throws `Refusal` when it is malformed. */
function readKey(value: unknown): string | null {
  if (typeof value !== 'string' || value === '') return null
  if (/^[\x21-\x7e][\x20-\x7e]{0,255}$/.test(value)) return value
  throw new Refusal(
    REPLIES.BAD_MESSAGE,
    'The X-Idempotency-Key header must hold 1 to 256 printable ASCII characters',
  )
}

/** Returns plain text as HTML that looks the same. */
function asHtml(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return `<div>${escaped.replaceAll(/\r?\n/g, '<br>\n')}</div>`
}
