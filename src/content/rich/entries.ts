import type { Budget } from './budget.ts'

/**
 * An entry of a container: a block, a run of neighbouring inline nodes, which form one paragraph, or a run of
 * neighbouring list items, which form one list.
 */
export type Entry<Node> = { readonly block: Node } | { readonly line: unknown[] } | { readonly items: Node[] }

/** How a document format reads its nodes and classifies them. */
export type EntryReader<Node> = {
  readonly read: (value: unknown) => Node | null
  readonly kindOf: (node: Node) => 'block' | 'line' | 'item'
}

/** Groups the content of a container into entries. */
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

/** The place of a block among its neighbours. */
export type Place = {
  readonly isFirst: boolean
  readonly isLast: boolean
  /** Blank lines after it in the text part: none at the end of a list item, or before a list in one. */
  readonly textGap: 0 | 1
}

/** The block types that change the space beside their neighbours. */
export type SpacingTypes = {
  readonly lists: ReadonlySet<string>
  /** Blocks with space below that does not collapse with the space above the next block. */
  readonly spaced: ReadonlySet<string>
  /** Blocks that replace the space of their neighbours. */
  readonly spacers: ReadonlySet<string>
}

/**
 * Returns the place of an entry. `lists` is the number of lists around the container; `isTight` says that the last
 * block needs no space below.
 */
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
