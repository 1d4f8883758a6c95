import type { SQLInputValue } from 'node:sqlite'

/** A WHERE clause for the table `mail` and the values it binds. */
export type Condition = {
  where: string
  values: SQLInputValue[]
}

/** Matches every mail. */
const ALL: Condition = { where: 'true', values: [] }

const FIELDS: Record<string, string> = {
  from: 'from_text',
  to: 'to_text',
  cc: 'to_text',
  bcc: 'to_text',
  subject: 'subject',
  'message-id': 'message_id',
}

const FLAGS: Record<string, string> = { 'is:read': 'is_read = 1', 'is:unread': 'is_read = 0' }

const ANYWHERE = ['from_text', 'to_text', 'subject', 'body', 'message_id']

/**
 * Parses a search: words that must all occur, `from:`, `to:` (also as `cc:` and `bcc:`), `subject:`, `message-id:`,
 * `is:read`, `is:unread`, "quoted phrases", and `-` or `!` before terms that must not occur.
 */
export function parseSearch(query: string): Condition {
  const terms = query.match(/[-!]?(?:[a-z-]+:)?(?:"[^"]*"?|[^\s"]+)/gi) ?? []
  const conditions = terms.map(parseTerm)
  if (conditions.length === 0) return ALL
  return {
    where: conditions.map(({ where }) => where).join(' AND '),
    values: conditions.flatMap(({ values }) => values),
  }
}

function parseTerm(term: string): Condition {
  const isNegated = /^[-!]/.test(term) && term.length > 1
  const positive = (isNegated ? term.slice(1) : term).toLowerCase()
  const condition = parsePositive(positive)
  return isNegated ? { ...condition, where: `NOT (${condition.where})` } : condition
}

function parsePositive(term: string): Condition {
  const flag = FLAGS[term]
  if (flag) return { where: flag, values: [] }
  const [, field = '', rest = term] = /^([a-z-]+):(.*)$/s.exec(term) ?? []
  const column = FIELDS[field]
  const columns = column ? [column] : ANYWHERE
  const text = (column ? rest : term).replaceAll('"', '')
  return {
    where: `(${columns.map((name) => `instr(${name}, ?) > 0`).join(' OR ')})`,
    values: columns.map(() => text),
  }
}
