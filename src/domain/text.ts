import { Failure } from '../catalogue/failure.ts'

const CONTROL = /\p{Cc}/u

/** Refuses an input at its path; `message` goes on from the path and says how to repair it. */
export function refuse(path: string, message: string): never {
  throw new Failure('INVALID_INPUT', `${path} ${message}`, { details: [{ path, message }] })
}

/** One line of text within a bound of characters; control characters, tabs and line breaks among them, are refused. */
export function oneLine(text: string, path: string, maximum: number): string {
  if (CONTROL.test(text) || !text.isWellFormed()) {
    refuse(path, 'holds a control character, such as a line break; send one line of printable text.')
  }
  if (characters(text) > maximum) refuse(path, `is longer than ${maximum} characters; shorten it.`)
  return text
}

/** How many characters a reader would count, not UTF-16 units. */
export function characters(text: string): number {
  return text.length < 100_000 ? [...text].length : text.length
}

/** What a copy is called, within a bound of characters. */
export function copyName(name: string, maximum: number): string {
  const suffix = ' (copy)'
  return [...name].slice(0, maximum - suffix.length).join('') + suffix
}

/** Text as it stands for itself inside a pattern of LIKE. */
export function likeLiteral(text: string): string {
  return text.replaceAll(/[\\%_]/g, String.raw`\$&`)
}

/** A number with its noun. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

/** A timestamp as the wire has it (ISO 8601, UTC, milliseconds), from what the driver gives. */
export function timestamp(value: string): string {
  return new Date(value).toISOString()
}

/** A timestamp that may not have come yet. */
export function timestampOrNull(value: string | null): string | null {
  return value === null ? null : timestamp(value)
}
