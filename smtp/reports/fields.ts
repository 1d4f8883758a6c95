/** Fields of a header by their lower-case names; of a repeated field, the first one counts. */
export type Fields = ReadonlyMap<string, string>

/** At most so many characters are read; the fields of a report take only a few lines. */
const LOOKED_AT = 64_000

/**
 * Returns the groups of fields in a text, which empty lines separate (RFC 3464 2.1; RFC 5965 3.1), with unfolded lines.
 * A line of only spaces counts as empty, because some servers write such lines between the recipients.
 */
export function readFields(text: string): Fields[] {
  return text
    .slice(0, LOOKED_AT)
    .replaceAll('\r\n', '\n')
    .replaceAll(/\n[ \t]+(?=\n)/g, '\n')
    .replaceAll(/\n[ \t]+/g, ' ')
    .split(/\n{2,}/)
    .map(readGroup)
    .filter((fields) => fields.size > 0)
}

/** Returns the header of a returned message, which is everything before its first empty line. */
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
