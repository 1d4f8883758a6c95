import { refuse } from '../catalogue/failure.ts'

const CONTROL = /\p{Cc}/u

/** Checks one line of text of at most `maximum` characters; refuses control characters, tabs and line breaks. */
export function oneLine(text: string, path: string, maximum: number): string {
  if (CONTROL.test(text) || !text.isWellFormed()) {
    refuse(path, 'holds a control character, such as a line break; send one line of printable text.')
  }
  if (characters(text) > maximum) refuse(path, `is longer than ${maximum} characters; shorten it.`)
  return text
}

/** Checks a name, which must not be blank, and removes the blanks around it; `meant` says what to send instead. */
export function nameLine(text: string, path: string, maximum: number, meant: string): string {
  const line = oneLine(text.trim(), path, maximum)
  if (line === '') refuse(path, `is blank; send ${meant}.`)
  return line
}

/** Counts code points instead of UTF-16 units; very long text is counted in UTF-16 units, which is faster. */
export function characters(text: string): number {
  return text.length < 100_000 ? [...text].length : text.length
}

/** Returns the name of a copy, within `maximum` characters. */
export function copyName(name: string, maximum: number): string {
  const suffix = ' (copy)'
  return [...name].slice(0, maximum - suffix.length).join('') + suffix
}

/** Escapes text for a LIKE pattern. */
export function likeLiteral(text: string): string {
  return text.replaceAll(/[\\%_]/g, String.raw`\$&`)
}

/** Returns the LIKE pattern of texts that contain the query; null for none or an empty one, which narrows nothing. */
export function searchPattern(query: string | undefined): string | null {
  return query?.trim() ? `%${likeLiteral(query.trim())}%` : null
}

/** Returns a number with its noun, such as "2 emails". */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

/** Converts the driver's timestamp to the API form: ISO 8601 in UTC with milliseconds. */
export function timestamp(value: string): string {
  return new Date(value).toISOString()
}

/** Converts a timestamp that may be null. */
export function timestampOrNull(value: string | null): string | null {
  return value === null ? null : timestamp(value)
}
