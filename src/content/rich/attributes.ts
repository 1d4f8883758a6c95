import { readColor } from './color.ts'

/** The unchecked attributes of a node. Each reader below returns a value that is safe to write, or the default. */
export type Attributes = Readonly<Record<string, unknown>>

/** Returns the value of an own member, or undefined; inherited members such as `constructor` do not count. */
export function memberOf(attributes: Attributes, name: string): unknown {
  return Object.hasOwn(attributes, name) ? attributes[name] : undefined
}

/**
 * Returns a text as it is, '' if there is none. Numbers become text, because editors store numeric labels as numbers.
 */
export function textOf(attributes: Attributes, name: string): string {
  const value = memberOf(attributes, name)
  return typeof value === 'number' ? String(value) : typeof value === 'string' ? value : ''
}

/**
 * Returns a whole number of pixels (or per cent) between `least` and `most`; `12`, `"12"` and `"12px"` are the same.
 */
export function numberOf(
  attributes: Attributes,
  name: string,
  fallback: number,
  most: number,
  least = 0,
): number {
  return readNumber(memberOf(attributes, name), most, least) ?? fallback
}

/** Like `numberOf`, for a bare value; null if it is not a number. */
export function readNumber(value: unknown, most: number, least = 0): number | null {
  const text = typeof value === 'string' && value.length < 24 ? value.trim().replace(/(?:px|%)$/, '') : value
  const number = typeof text === 'string' && text !== '' ? Number(text) : text
  if (typeof number !== 'number' || !Number.isFinite(number)) return null
  return Math.round(Math.min(most, Math.max(least, number)))
}

/** Returns the attribute if it is one of `choices`, else `fallback`. */
export function choiceOf<Choice extends string>(
  attributes: Attributes,
  name: string,
  choices: readonly Choice[],
  fallback: Choice,
): Choice {
  const value = memberOf(attributes, name)
  return choices.find((choice) => choice === value) ?? fallback
}

/** Returns a colour as `#rrggbb`; `fallback` if it is absent, malformed or transparent. */
export function colorOf<Fallback>(
  attributes: Attributes,
  name: string,
  fallback: Fallback,
): string | Fallback {
  return readColor(memberOf(attributes, name)) ?? fallback
}

/** The values of an alignment attribute. */
export const ALIGNMENTS = ['left', 'center', 'right'] as const
/** The horizontal position of a block in its column. */
export type Alignment = (typeof ALIGNMENTS)[number]
