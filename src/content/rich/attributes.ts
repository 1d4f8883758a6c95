import { readColor } from './color.ts'

/** The attributes of a node, of which nothing is known: each reader answers what may be written, or the default. */
export type Attributes = Readonly<Record<string, unknown>>

/** An own member; names of the prototype are no attributes. */
export function memberOf(attributes: Attributes, name: string): unknown {
  return Object.hasOwn(attributes, name) ? attributes[name] : undefined
}

/** A text as it stands, '' when there is none. Numbers are text too, because editors store them for labels. */
export function textOf(attributes: Attributes, name: string): string {
  const value = memberOf(attributes, name)
  return typeof value === 'number' ? String(value) : typeof value === 'string' ? value : ''
}

/** A whole number of pixels (or per cent) in bounds; `12`, `"12"` and `"12px"` are the same. */
export function numberOf(
  attributes: Attributes,
  name: string,
  fallback: number,
  most: number,
  least = 0,
): number {
  return readNumber(memberOf(attributes, name), most, least) ?? fallback
}

/** The same for a single value; null when it is no number. */
export function readNumber(value: unknown, most: number, least = 0): number | null {
  const text = typeof value === 'string' && value.length < 24 ? value.trim().replace(/(?:px|%)$/, '') : value
  const number = typeof text === 'string' && text !== '' ? Number(text) : text
  if (typeof number !== 'number' || !Number.isFinite(number)) return null
  return Math.round(Math.min(most, Math.max(least, number)))
}

/** One of some words. */
export function choiceOf<Choice extends string>(
  attributes: Attributes,
  name: string,
  choices: readonly Choice[],
  fallback: Choice,
): Choice {
  const value = memberOf(attributes, name)
  return choices.find((choice) => choice === value) ?? fallback
}

/** A colour as `#rrggbb`; the fallback also for one that nothing can be seen of. */
export function colorOf<Fallback>(
  attributes: Attributes,
  name: string,
  fallback: Fallback,
): string | Fallback {
  return readColor(memberOf(attributes, name)) ?? fallback
}

export const ALIGNMENTS = ['left', 'center', 'right'] as const
/** Where a block stands in its column. */
export type Alignment = (typeof ALIGNMENTS)[number]
