import { isRecord } from '../../../schema/json.ts'
import type { EmailParts } from '../email-parts.ts'
import { type Attributes, memberOf, textOf } from '../rich/attributes.ts'
import type { Budget } from '../rich/budget.ts'
import type { Surface } from '../rich/surface.ts'

/** An element or a text node of a Slate document. Its attributes are members of the node, beside its children. */
export type PlateNode = {
  /** '' for a text node. */
  readonly type: string
  readonly attributes: Attributes
  readonly children: readonly unknown[]
}

/** Reads a node; null for a value that is not one. */
export function readPlateNode(value: unknown): PlateNode | null {
  if (!isRecord(value)) return null
  const type = memberOf(value, 'type')
  const children = memberOf(value, 'children')
  const isText = typeof memberOf(value, 'text') === 'string'
  // The editor treats an element without a type as a paragraph.
  const name = typeof type === 'string' && type !== '' ? type : isText ? '' : 'p'
  return { type: name, attributes: value, children: Array.isArray(children) ? children : [] }
}

/** The state that all writers of one document share. */
export type PlateWalk = {
  readonly parts: EmailParts
  readonly budget: Budget
  /** Writes the blocks of a container. */
  readonly writeBlocks: (content: readonly unknown[], spot: PlateSpot) => void
}

/** The writer's place in the document; see `Spot` in maily/node.ts. */
export type PlateSpot = {
  readonly room: number
  readonly surface: Surface
  readonly depth: number
  readonly lists: number
  readonly isTight: boolean
}

/** Returns the spot one level deeper. */
export function within(spot: PlateSpot, change: Partial<PlateSpot> = {}): PlateSpot {
  return { ...spot, isTight: true, ...change, depth: spot.depth + 1 }
}

/** Reads an image's address and texts; warns about a missing address. */
export function readImage(
  { parts, budget }: PlateWalk,
  attributes: Attributes,
): { src: string; alt: string; title: string } {
  const src = budget.read(textOf(attributes, 'url'))
  if (src === '') parts.table.warn('MISSING_ADDRESS', 'An image has no address; set url.')
  return { src, alt: budget.read(textOf(attributes, 'alt')), title: '' }
}

/** Warns, once for each type, about an element that has no writer in this place. */
export function warnUnknown({ parts }: PlateWalk, { type }: PlateNode, what: string): void {
  const named = parts.table.plain(type.slice(0, 60))
  parts.table.warn('UNKNOWN_NODE', `The element "${named}" ${what}; its content is shown without it.`)
}
