/** One name of a cell: in quotes, in which a quote is doubled, or up to the next separator. */
const NAME = /\s*"((?:[^"]|"")*)"(?=\s*(?:[;,]|$))|([^;,]+)/g

/** Writes tag names into one cell of a CSV file, so that `readTagCell` returns them. */
export function writeTagCell(names: readonly string[]): string {
  return names.map((name) => (/[",;]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name)).join(', ')
}

/** Reads the tag names in one cell of a CSV file, separated by commas or semicolons. */
export function readTagCell(cell: string): string[] {
  return [...cell.matchAll(NAME)]
    .map(([, quoted, plain = '']) => (quoted?.replaceAll('""', '"') ?? plain).trim())
    .filter(Boolean)
}
