import type { Budget } from './budget.ts'

/**
 * Neighbours in a container: blocks, inline nodes between them, which stand in a paragraph together, and items of a
 * list that its nodes make by standing beside one another.
 */
export type Entry<Node> = { readonly block: Node } | { readonly line: unknown[] } | { readonly items: Node[] }

/** How a kind of document reads its nodes, and what each of them is among its neighbours. */
export interface EntryReader<Node> {
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

/** Whether an entry is a block of one of these types. */
export function isBlockOf<Node extends { readonly type: string }>(
  entry: Entry<Node> | undefined,
  types: ReadonlySet<string>,
): boolean {
  return entry !== undefined && 'block' in entry && types.has(entry.block.type)
}
