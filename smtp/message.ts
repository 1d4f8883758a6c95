import { type AddressObject, type EmailAddress, type ParsedMail, simpleParser } from 'mailparser'

import { REPLIES, Refusal } from './refusal.ts'

/** An email as the API takes it from this door: what POST /api/v1/emails takes, and the text part. */
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

/** A message that was read: what to submit, and the keys by which a repetition is known. */
export type ReadMessage = { submission: Submission; idempotencyKey: string | null; messageId: string | null }

/**
 * Reads a MIME message (RFC 5322, 2045) into an email that is written anew; nothing of its bytes is passed on. It goes
 * to the envelope's recipient; To and Cc only show in the original. Refuses attachments, inline images too.
 */
export async function readMessage(raw: Buffer, recipient: string): Promise<ReadMessage> {
  const mail = await parse(raw)
  if (mail.attachments.length > 0) {
    throw new Refusal(REPLIES.ATTACHMENT, 'Attachments and inline images are not taken; link to them instead')
  }
  const from = onlyAddress(mail.from, 'From', REPLIES.BAD_SENDER)
  if (!from) throw new Refusal(REPLIES.BAD_SENDER, 'The From header is missing; name a sender')
  const replyTo = onlyAddress(mail.replyTo, 'Reply-To', REPLIES.BAD_MESSAGE)
  const text = mail.text?.trim() ? mail.text : undefined
  const html = mail.html === false ? undefined : mail.html
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
    idempotencyKey: headerText(mail.headers.get('x-idempotency-key')),
    messageId: mail.messageId ?? null,
  }
}

/** Parses without inventing: no text made of HTML, no HTML made of text. */
async function parse(raw: Buffer): Promise<ParsedMail> {
  const options = { skipHtmlToText: true, skipTextToHtml: true, skipTextLinks: true, skipImageLinks: true }
  try {
    return await simpleParser(raw, options)
  } catch (error) {
    const why = error instanceof Error ? error.message : 'unknown fault'
    throw new Refusal(REPLIES.BAD_MESSAGE, `The message cannot be read: ${why}`)
  }
}

/** The address of a header that may hold one; undefined without the header. */
function onlyAddress(
  header: AddressObject | undefined,
  name: string,
  reply: readonly [number, string],
): EmailAddress | undefined {
  const found = (header?.value ?? []).flatMap((entry) => entry.group ?? [entry])
  const [first] = found
  if (header !== undefined && (found.length !== 1 || !first?.address)) {
    throw new Refusal(reply, `The ${name} header must hold exactly one address`)
  }
  return first
}

function formatFrom({ name, address = '' }: EmailAddress): string {
  return name ? `"${name.replaceAll(/["\\]/g, String.raw`\$&`)}" <${address}>` : address
}

function headerText(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

/** Plain text as it stands, for clients that show HTML. */
function asHtml(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return `<div>${escaped.replaceAll(/\r?\n/g, '<br>\n')}</div>`
}
