import { isRecord } from '../../../schema/json.ts'
import type { EmailParts } from '../email-parts.ts'
import { type Attributes, memberOf, textOf } from '../rich/attributes.ts'
import type { Budget } from '../rich/budget.ts'
import type { Surface } from '../rich/surface.ts'

/** An element or a text of a Slate document. Its attributes are members beside its children. */
export type PlateNode = {
  /** '' is a text. */
  readonly type: string
  readonly attributes: Attributes
  readonly children: readonly unknown[]
}

/** Reads a node; null for what is none. */
export function readPlateNode(value: unknown): PlateNode | null {
  if (!isRecord(value)) return null
  const type = memberOf(value, 'type')
  const children = memberOf(value, 'children')
  const isText = typeof memberOf(value, 'text') === 'string'
  // An element without a type is a paragraph, which is what the editor makes of it.
  const name = typeof type === 'string' && type !== '' ? type : isText ? '' : 'p'
  return { type: name, attributes: value, children: Array.isArray(children) ? children : [] }
}

/** What all of one document share while it is written. */
export type PlateWalk = {
  readonly parts: EmailParts
  readonly budget: Budget
  /** Writes the blocks of a container. */
  readonly writeBlocks: (content: readonly unknown[], spot: PlateSpot) => void
}

/** Where in the document the writer is. */
export type PlateSpot = {
  readonly room: number
  readonly surface: Surface
  readonly depth: number
  readonly lists: number
  readonly isTight: boolean
}

/** One step further in. */
export function within(spot: PlateSpot, change: Partial<PlateSpot> = {}): PlateSpot {
  return { ...spot, isTight: true, ...change, depth: spot.depth + 1 }
}

/** What an image shows; one without an address is a warning. */
export function readImage(
  { parts, budget }: PlateWalk,
  attributes: Attributes,
): { src: string; alt: string; title: string } {
  const src = budget.read(textOf(attributes, 'url'))
  if (src === '') parts.table.warn('MISSING_ADDRESS', 'An image has no address; set url.')
  return { src, alt: budget.read(textOf(attributes, 'alt')), title: '' }
}

/** Says once for each kind that a document holds something that has no writer where it stands. */
export function warnUnknown({ parts }: PlateWalk, { type }: PlateNode, what: string): void {
  const named = parts.table.plain(type.slice(0, 60))
  parts.table.warn('UNKNOWN_NODE', `The element "${named}" ${what}; its content is shown without it.`)
}
