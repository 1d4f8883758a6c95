import { isRecord } from '../../../schema/json.ts'
import type { ContentType } from '../../../schema/values.ts'

/** A node of a MAILY or PLATE document. */
export type DocumentNode = Record<string, unknown>

/** A node with its parent and its index among the siblings; the root has no parent. */
export type Place = { node: DocumentNode; parent: DocumentNode | null; index: number }

/** Content types that are documents. */
export type DocumentType = Exclude<ContentType, 'MARKDOWN'>

/** How the two document types differ: where children and attributes are, and which attributes hold readable text. */
export type Dialect = {
  children: 'content' | 'children'
  isText: (node: DocumentNode) => boolean
  attributesOf: (node: DocumentNode) => unknown
  /** Whether the node's `id` attribute is an id: in a MAILY `variable` node it is the variable's name. */
  hasId: (node: DocumentNode) => boolean
  /** Attributes with readable text by node type. A map: in an object, a type named `constructor` would match. */
  readable: ReadonlyMap<unknown, readonly string[]>
  /** Maps a text attribute to the flag that, when true, makes the attribute hold a variable's name instead of text. */
  flags: ReadonlyMap<string, string>
  /** Whether empty text nodes stay: TipTap refuses them, Slate requires one in an empty element. */
  keepsEmptyText: boolean
  /** The type of an image node, and the attribute that holds its address. */
  image: { type: string; address: string }
}

/** The dialect of each document type. */
export const DIALECTS: Readonly<Record<DocumentType, Dialect>> = {
  MAILY: {
    children: 'content',
    isText: ({ type }) => type === 'text',
    attributesOf: ({ attrs }) => attrs,
    hasId: ({ type }) => type !== 'variable',
    readable: new Map([
      ['button', ['text']],
      ['image', ['alt']],
      ['linkCard', ['title', 'description']],
      ['variable', ['fallback']],
    ]),
    flags: new Map([['text', 'isTextVariable']]),
    keepsEmptyText: false,
    image: { type: 'image', address: 'src' },
  },
  PLATE: {
    children: 'children',
    isText: ({ text }) => typeof text === 'string',
    attributesOf: (node) => node,
    hasId: () => true,
    readable: new Map([['img', ['alt']]]),
    flags: new Map(),
    keepsEmptyText: true,
    image: { type: 'img', address: 'url' },
  },
}

/**
 * Returns a copy of the content as one tree, and a function that turns the tree back into content. A PLATE document may
 * be a bare list, which gets a root node here.
 */
export function openDocument(content: unknown): {
  root: DocumentNode
  contentOf: (root: DocumentNode) => unknown
} {
  const copy: unknown = structuredClone(content)
  if (isRecord(copy)) return { root: copy, contentOf: (root) => root }
  return { root: { children: copy }, contentOf: ({ children }) => children }
}

/** Returns the children of a node in order; empty for a node without any. */
export function childrenOf({ children: member }: Dialect, node: DocumentNode | null): unknown[] {
  const children = node?.[member]
  return Array.isArray(children) ? children : []
}

/** Lists the node and its descendants in document order, without recursion. Stops after `most` + 1 places. */
export function placesFrom(dialect: Dialect, start: Place, most: number): Place[] {
  const places: Place[] = []
  const waiting = [start]
  for (let place = waiting.pop(); place && places.length <= most; place = waiting.pop()) {
    places.push(place)
    const { node: parent } = place
    const children = childrenOf(dialect, parent)
      .slice(0, most + 1)
      .flatMap((node, index): Place[] => (isRecord(node) ? [{ node, parent, index }] : []))
    waiting.push(...children.toReversed())
  }
  return places
}
