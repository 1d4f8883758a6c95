const RIGHT_TO_LEFT =
  /^[^\p{L}]*[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u
/** Variables, whose names are not words of the text. */
const VARIABLE = /\{\{[^{}]*\}\}/g
/** The number of characters in which the first letter is looked for. */
const ENOUGH = 500

/** How many neighbouring nodes, and how many levels of them, are searched for words. */
const REACH = 3

/** Returns the direction of a text by its first letter, as editors do. Mail programs do not detect it themselves. */
export function directionOfText(text: string): '' | 'rtl' {
  return RIGHT_TO_LEFT.test(text.slice(0, ENOUGH).replaceAll(VARIABLE, '')) ? 'rtl' : ''
}

/**
 * Returns the first text with a letter among nodes and their descendants, else ''. `read` returns a node's text and
 * children, or null for a value that is not a node.
 */
export function firstWords(
  nodes: readonly unknown[],
  read: (value: unknown) => { text: string; children: readonly unknown[] } | null,
  depth = REACH,
): string {
  for (const value of nodes.slice(0, REACH)) {
    const node = read(value)
    if (node === null) continue
    const own = node.text.slice(0, ENOUGH).replaceAll(VARIABLE, '')
    if (/\p{L}/u.test(own)) return own
    const words = depth > 1 ? firstWords(node.children, read, depth - 1) : ''
    if (words !== '') return words
  }
  return ''
}
