const RIGHT_TO_LEFT =
  /^[^\p{L}]*[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u
/** The name of a variable is no word of the text. */
const VARIABLE = /\{\{[^{}]*\}\}/g
/** So much of a text says how it is read. */
const ENOUGH = 500

/** How many neighbours are asked for their words, and how many levels of them. */
const REACH = 3

/** How a text is read by its first letter, which is how editors show it; mail programs do not look. */
export function directionOfText(text: string): '' | 'rtl' {
  return RIGHT_TO_LEFT.test(text.slice(0, ENOUGH).replaceAll(VARIABLE, '')) ? 'rtl' : ''
}

/** The first words among nodes and what is in them; `read` gives what a node holds, null for what is none. */
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
