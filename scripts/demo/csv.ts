/** The records of a CSV text (RFC 4180) by the names of its first line; empty cells are left out. */
export function parseCsv(text: string): Record<string, string>[] {
  const [header = [], ...lines] = text
    .split(/\r?\n/)
    .filter((line) => line !== '')
    .map(cells)
  return lines.map((line) =>
    Object.fromEntries(header.flatMap((name, index) => (line[index] ? [[name, line[index]]] : []))),
  )
}

function cells(line: string): string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
  )
}
