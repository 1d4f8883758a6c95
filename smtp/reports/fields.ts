/** Fields of a header by their lower-case name; of one that is there twice, the first counts. */
export type Fields = ReadonlyMap<string, string>

/** What is told of an email takes a few lines; no more than this is read. */
const LOOKED_AT = 64_000

/** The groups of fields in a text, between empty lines (RFC 3464, 2.1; RFC 5965, 3.1), with their lines unfolded. */
export function readFields(text: string): Fields[] {
  return text
    .slice(0, LOOKED_AT)
    .replaceAll('\r\n', '\n')
    .replaceAll(/\n[ \t]+/g, ' ')
    .split(/\n{2,}/)
    .map(readGroup)
    .filter((fields) => fields.size > 0)
}

/** The header of a message that came back, which is all before its first empty line. */
export function readHeader(message: string): Fields {
  const end = /\r?\n\r?\n/.exec(message)?.index
  return readFields(end === undefined ? message : message.slice(0, end))[0] ?? new Map()
}

function readGroup(group: string): Fields {
  const fields = new Map<string, string>()
  for (const line of group.split('\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).trim().toLowerCase()
    if (colon > 0 && !/\s/.test(name) && !fields.has(name)) fields.set(name, line.slice(colon + 1).trim())
  }
  return fields
}
