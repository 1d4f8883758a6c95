import { isRecord } from '../../../schema/json.ts'
import type { ContentType } from '../../../schema/values.ts'

/** A node of a document, MAILY's or PLATE's. */
export type DocumentNode = Record<string, unknown>

/** Where a node stands; the root of a document has no parent. */
export type Place = { node: DocumentNode; parent: DocumentNode | null; index: number }

/** Content types that are documents. */
export type DocumentType = Exclude<ContentType, 'MARKDOWN'>

/** How the two kinds of document differ: where children and attributes are, and which attributes a reader reads. */
export type Dialect = {
  children: 'content' | 'children'
  isText: (node: DocumentNode) => boolean
  attributesOf: (node: DocumentNode) => unknown
  /** Variables are named by the attribute that elsewhere is the id. */
  hasId: (node: DocumentNode) => boolean
  /** By the type of a node. A map, so that a type called like a member of objects finds nothing. */
  readable: ReadonlyMap<unknown, readonly string[]>
  /** Attributes that hold a variable's name instead of text where another attribute, given here, is true. */
  flags: ReadonlyMap<string, string>
  /** TipTap refuses an empty text, Slate wants one in an empty element. */
  keepsEmptyText: boolean
  /** The node of an image, and the attribute with its address. */
  image: { type: string; address: string }
}

/** What each kind of document is like. */
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

/** A copy of content as one tree, and what the tree is as content again: a PLATE document may be a list alone. */
export function openDocument(content: unknown): {
  root: DocumentNode
  contentOf: (root: DocumentNode) => unknown
} {
  const copy: unknown = structuredClone(content)
  if (isRecord(copy)) return { root: copy, contentOf: (root) => root }
  return { root: { children: copy }, contentOf: ({ children }) => children }
}

/** What stands in a node, in order; empty where nothing can. */
export function childrenOf({ children: member }: Dialect, node: DocumentNode | null): unknown[] {
  const children = node?.[member]
  return Array.isArray(children) ? children : []
}

/** The node and all that is in it, in document order, without recursion; it stops soon after `most`. */
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
