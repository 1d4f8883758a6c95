import { randomBytes } from 'node:crypto'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'

import type { Condition } from './search.ts'

/** A mail address with its display name, in the shape of the JSON API. */
export type Address = {
  Name: string
  Address: string
}

/** One row of the list, in the shape of the JSON API. */
export type Summary = {
  ID: string
  MessageID: string
  Read: boolean
  From: Address
  To: Address[]
  Cc: Address[]
  Bcc: Address[]
  ReplyTo: Address[]
  Subject: string
  /** When the mailbox received it, ISO 8601. */
  Created: string
  Username: string
  Tags: string[]
  Size: number
  Attachments: number
  Snippet: string
}

/** A received mail, with the fields that the list and the search need. */
export type NewMail = {
  summary: Omit<Summary, 'ID' | 'Read' | 'Created' | 'Size'>
  /** The addresses of the SMTP envelope. */
  envelope: { from: string; to: string[] }
  text: string
  raw: Buffer
}

/** One stored mail. */
export type StoredMail = {
  summary: Summary
  envelope: NewMail['envelope']
  raw: Buffer
}

/** One page of the list; `matching` counts all mails that match the condition. */
export type Page = {
  mails: Summary[]
  matching: number
}

/** The number of mails; `latest` is the sequence number of the newest one, 0 if there is none. */
export type Counts = {
  total: number
  unread: number
  latest: number
}

const SCHEMA = `
  PRAGMA auto_vacuum = INCREMENTAL;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS mail (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    created INTEGER NOT NULL,
    is_read INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    from_text TEXT NOT NULL,
    to_text TEXT NOT NULL,
    subject TEXT NOT NULL,
    summary TEXT NOT NULL,
    envelope TEXT NOT NULL,
    body TEXT NOT NULL,
    raw BLOB NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS mail_counts ON mail (seq, size, is_read);
`

/** Maximum number of mails and of their bytes; older mail is deleted. */
export type Bounds = {
  mails: number
  bytes: number
}

const COLUMNS = 'id, created, is_read, size, summary'

/** Stores mail in one SQLite file, bounded; lists it newest first. */
export class MailStore {
  readonly #database: DatabaseSync
  readonly #bounds: Bounds
  #sinceTrim = 0

  constructor(file: string, bounds: Bounds = { mails: 10_000, bytes: 1_000_000_000 }) {
    this.#database = new DatabaseSync(file, { timeout: 5_000 })
    this.#bounds = bounds
    this.#database.exec(SCHEMA)
  }

  /** Stores the mail and returns its id. Returns after the write, so that accepted mail survives a crash. */
  add({ summary, envelope, text, raw }: NewMail): string {
    const id = randomBytes(12).toString('base64url')
    const { MessageID, From, To, Cc, Bcc, Subject } = summary
    this.#database
      .prepare(
        `INSERT INTO mail (id, created, size, message_id, from_text, to_text, subject, summary, envelope, body, raw)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(
        id,
        Date.now(),
        raw.length,
        MessageID.toLowerCase(),
        searchable([From], [envelope.from]),
        searchable([...To, ...Cc, ...Bcc], envelope.to),
        Subject.toLowerCase(),
        JSON.stringify(summary),
        JSON.stringify(envelope),
        text.slice(0, 200_000).toLowerCase(),
        raw,
      )
    this.#sinceTrim += 1
    if (this.#sinceTrim >= Math.min(100, this.#bounds.mails / 10)) this.#trim()
    return id
  }

  list(condition: Condition, start: number, limit: number): Page {
    const { where, values } = condition
    const rows = this.#all(
      `SELECT ${COLUMNS} FROM mail WHERE ${where} ORDER BY seq DESC LIMIT ? OFFSET ?`,
      ...values,
      limit,
      start,
    )
    const [count] = this.#all(`SELECT count(*) AS matching FROM mail WHERE ${where}`, ...values)
    return { mails: rows.map(toSummary), matching: Number(count?.['matching']) }
  }

  counts(): Counts {
    const [row] = this.#all(
      'SELECT count(*) AS total, count(*) FILTER (WHERE is_read = 0) AS unread, max(seq) AS latest FROM mail',
    )
    return { total: Number(row?.['total']), unread: Number(row?.['unread']), latest: Number(row?.['latest']) }
  }

  /** Returns the mail with this id, or the newest for "latest"; undefined if there is none. */
  find(id: string): StoredMail | undefined {
    const columns = `${COLUMNS}, envelope, raw`
    const [row] =
      id === 'latest'
        ? this.#all(`SELECT ${columns} FROM mail ORDER BY seq DESC LIMIT 1`)
        : this.#all(`SELECT ${columns} FROM mail WHERE id = ?`, id)
    if (!row) return undefined
    // The column holds what add() wrote.
    const envelope = JSON.parse(String(row['envelope'])) as NewMail['envelope']
    return { summary: toSummary(row), envelope, raw: Buffer.from(row['raw'] as Uint8Array) }
  }

  /** Marks these mails, or all of them, as read or unread. */
  mark(ids: readonly string[] | undefined, isRead: boolean): void {
    if (!ids) {
      this.#database.prepare('UPDATE mail SET is_read = ?').run(Number(isRead))
      return
    }
    const statement = this.#database.prepare('UPDATE mail SET is_read = ? WHERE id = ?')
    for (const id of ids) statement.run(Number(isRead), id)
  }

  /** Deletes these mails, or all that match the condition. */
  delete(selection: readonly string[] | Condition): void {
    if ('where' in selection) {
      this.#database.prepare(`DELETE FROM mail WHERE ${selection.where}`).run(...selection.values)
    } else {
      const statement = this.#database.prepare('DELETE FROM mail WHERE id = ?')
      for (const id of selection) statement.run(id)
    }
    this.#database.exec('PRAGMA incremental_vacuum')
  }

  close(): void {
    this.#database.close()
  }

  #trim(): void {
    this.#sinceTrim = 0
    this.#database
      .prepare(
        `DELETE FROM mail WHERE seq <= (
           SELECT max(seq) FROM (
             SELECT seq, row_number() OVER newest AS position, sum(size) OVER newest AS bytes
             FROM mail WINDOW newest AS (ORDER BY seq DESC)
           ) WHERE position > ? OR (bytes > ? AND position > 1)
         )`,
      )
      .run(this.#bounds.mails, this.#bounds.bytes)
  }

  #all(text: string, ...values: SQLInputValue[]): Record<string, unknown>[] {
    return this.#database.prepare(text).all(...values)
  }
}

function toSummary(row: Record<string, unknown>): Summary {
  // The column holds what add() wrote.
  const summary = JSON.parse(String(row['summary'])) as NewMail['summary']
  return {
    ...summary,
    ID: String(row['id']),
    Read: row['is_read'] === 1,
    Created: new Date(Number(row['created'])).toISOString(),
    Size: Number(row['size']),
  }
}

function searchable(addresses: readonly Address[], envelope: readonly string[]): string {
  const shown = addresses.map(({ Name, Address }) => `${Name} ${Address}`)
  return [...shown, ...envelope].join(' ').toLowerCase()
}
