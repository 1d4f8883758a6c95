import type { Attachment, ParsedMail } from 'mailparser'

import { addresses, parseMail } from './receive.ts'
import type { Counts, Page, StoredMail, Summary } from './store.ts'

/** A part that is a file, in the shape of the JSON API. */
export type Part = {
  PartID: string
  FileName: string
  ContentType: string
  ContentID: string
  Size: number
}

/** One mail in full, in the shape of Mailpit's API. */
export type Message = Omit<Summary, 'Created' | 'Attachments' | 'Snippet' | 'Read'> & {
  ReturnPath: string
  Date: string
  ListUnsubscribe: { Header: string; HeaderPost: string; Links: string[]; Errors: string }
  Text: string
  HTML: string
  Inline: Part[]
  Attachments: Part[]
}

/** A parsed mail with its files. */
export type OpenedMail = {
  message: Message
  files: Attachment[]
}

/** Returns one page of the list in the shape of Mailpit's API. */
export function presentList({ mails, matching }: Page, counts: Counts, start: number): object {
  return {
    total: counts.total,
    unread: counts.unread,
    count: mails.length,
    messages_count: matching,
    start,
    tags: [],
    messages: mails,
  }
}

/** Parses a stored mail. */
export async function openMail({ summary, envelope, raw }: StoredMail): Promise<OpenedMail> {
  const parsed = await parseMail(raw)
  const { Created, Read: _read, Snippet: _snippet, Attachments: _count, ...shared } = summary
  const parts = parsed.attachments.map(toPart)
  const isInline = parsed.attachments.map(({ related }) => related)
  return {
    files: parsed.attachments,
    message: {
      ...shared,
      ReplyTo: addresses(parsed.replyTo),
      ReturnPath: envelope.from,
      Date: parsed.date?.toISOString() ?? Created,
      ListUnsubscribe: listUnsubscribe(parsed),
      Text: parsed.text ?? '',
      HTML: parsed.html || '',
      Inline: parts.filter((_, index) => isInline[index]),
      Attachments: parts.filter((_, index) => !isInline[index]),
    },
  }
}

/** Returns the values of every header by name, unfolded and in their order. */
export function readHeaders(raw: Buffer): Record<string, string[]> {
  const end = /\r?\n\r?\n/.exec(raw.toString('latin1', 0, 1_000_000))
  const head = raw.toString('utf8', 0, end?.index ?? raw.length)
  const headers: Record<string, string[]> = Object.create(null)
  for (const line of head.replace(/\r?\n(?=[ \t])/g, '').split(/\r?\n/)) {
    const colon = line.indexOf(':')
    if (colon < 1) continue
    const name = line.slice(0, colon).trim()
    headers[name] ??= []
    headers[name].push(line.slice(colon + 1).trim())
  }
  return headers
}

function toPart(file: Attachment, index: number): Part {
  return {
    PartID: String(index + 1),
    FileName: file.filename ?? '',
    ContentType: file.contentType,
    ContentID: file.cid ?? '',
    Size: file.size,
  }
}

function listUnsubscribe(parsed: ParsedMail): Message['ListUnsubscribe'] {
  const find = (name: string): string => {
    const line = parsed.headerLines.find(({ key }) => key === name)?.line ?? ''
    return line
      .slice(name.length + 1)
      .replace(/\r?\n/g, '')
      .trim()
  }
  const Header = find('list-unsubscribe')
  return {
    Header,
    HeaderPost: find('list-unsubscribe-post'),
    Links: [...Header.matchAll(/<([^>]+)>/g)].map(([, link = '']) => link.trim()),
    Errors: '',
  }
}
