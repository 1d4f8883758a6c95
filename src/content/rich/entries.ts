import type { Budget } from './budget.ts'

/**
 * Neighbours in a container: blocks, inline nodes between them, which stand in a paragraph together, and items of a
 * list that its nodes make by standing beside one another.
 */
export type Entry<Node> = { readonly block: Node } | { readonly line: unknown[] } | { readonly items: Node[] }

/** How a kind of document reads its nodes, and what each of them is among its neighbours. */
export type EntryReader<Node> = {
  readonly read: (value: unknown) => Node | null
  readonly kindOf: (node: Node) => 'block' | 'line' | 'item'
}

/** The content of a container as its entries. */
export function readEntries<Node>(
  budget: Budget,
  content: readonly unknown[],
  { read, kindOf }: EntryReader<Node>,
): Entry<Node>[] {
  const entries: Entry<Node>[] = []
  for (const value of content) {
    if (!budget.takeNode()) break
    const node = read(value)
    if (node === null) continue
    const kind = kindOf(node)
    const last = entries.at(-1)
    if (kind === 'block') entries.push({ block: node })
    else if (kind === 'item' && last !== undefined && 'items' in last) last.items.push(node)
    else if (kind === 'item') entries.push({ items: [node] })
    else if (last !== undefined && 'line' in last) last.line.push(value)
    else entries.push({ line: [value] })
  }
  return entries
}

/** A block among its neighbours. */
export type Place = {
  readonly isFirst: boolean
  readonly isLast: boolean
  /** Blank lines after it in the text part: none at the end of an item, or before a list in one. */
  readonly textGap: 0 | 1
}

/** The types of blocks by which the space beside their neighbours changes. */
export type SpacingTypes = {
  readonly lists: ReadonlySet<string>
  /** They bring the space under them, which does not collapse with the space over the next block. */
  readonly spaced: ReadonlySet<string>
  /** They bring all the space there is around them. */
  readonly spacers: ReadonlySet<string>
}

/** How an entry stands in its container, which is in so many lists and may end with its last block. */
export function placeOf<Node extends { readonly type: string }>(
  entries: readonly Entry<Node>[],
  index: number,
  { lists, isTight }: { readonly lists: number; readonly isTight: boolean },
  types: SpacingTypes,
): Place {
  const next = entries[index + 1]
  const isBeforeList = lists > 0 && isBlockOf(next, types.lists)
  return {
    isFirst: index === 0 || isBlockOf(entries[index - 1], types.spaced),
    isLast: (isTight && next === undefined) || isBlockOf(next, types.spacers) || isBeforeList,
    textGap: lists > 0 && (next === undefined || isBeforeList) ? 0 : 1,
  }
}

function isBlockOf<Node extends { readonly type: string }>(
  entry: Entry<Node> | undefined,
  types: ReadonlySet<string>,
): boolean {
  return entry !== undefined && 'block' in entry && types.has(entry.block.type)
}
