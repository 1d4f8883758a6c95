import { isRecord } from '../../../schema/json.ts'

type Json = Record<string, unknown>

/** Members whose values are data, not schemas. */
const DATA = new Set(['example', 'examples', 'default', 'enum', 'const'])
const LEAST_MEMBERS = 3

/**
 * Moves each record schema that appears more than once to `components.schemas`, so that readers and client generators
 * see one type. Its name is that of the member that contains it. If two records claim the same name, the more frequent
 * one gets it and the other stays inline. Names in `taken` are not used.
 */
export function liftShared(document: Json, taken: ReadonlySet<string>): { document: Json; schemas: Json } {
  const names = nameShared(document, taken)
  const schemas: Json = {}
  const replaced = replace(document, names, schemas)
  const sorted = Object.entries(schemas).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return { document: replaced, schemas: Object.fromEntries(sorted) }
}

/** Returns the name of each shared record by its JSON text. */
function nameShared(document: Json, taken: ReadonlySet<string>): Map<string, string> {
  const places = new Map<string, { name: string; count: number }>()
  countRecords(document, '', (record, name) => {
    const text = JSON.stringify(record)
    const known = places.get(text) ?? { name: '', count: 0 }
    places.set(text, { name: known.name === '' ? name : known.name, count: known.count + 1 })
  })
  const shared = [...places].filter(([, { name, count }]) => name !== '' && !taken.has(name) && count > 1)
  const owners = new Map<string, string>()
  for (const [text, { name }] of shared.toSorted(([, one], [, other]) => other.count - one.count)) {
    if (!owners.has(name)) owners.set(name, text)
  }
  return new Map([...owners].map(([name, text]) => [text, name]))
}

function countRecords(value: unknown, holder: string, found: (record: object, name: string) => void): void {
  if (Array.isArray(value)) for (const item of value) countRecords(item, holder, found)
  if (!isRecord(value)) return
  if (describesRecord(value)) found(value, typeName(holder))
  for (const [key, member] of Object.entries(value)) {
    if (DATA.has(key)) continue
    if (key !== 'properties' || !isRecord(member)) countRecords(member, keywordHolder(key, holder), found)
    else for (const [name, schema] of Object.entries(member)) countRecords(schema, name, found)
  }
}

/**
 * Returns the member name for a nested schema: items and union branches are named like the member that contains them.
 */
function keywordHolder(key: string, holder: string): string {
  return key === 'items' || key === 'anyOf' ? holder : ''
}

function replace(value: Json, names: ReadonlyMap<string, string>, schemas: Json): Json {
  const within = Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      DATA.has(key) ? member : replaceAny(member, names, schemas),
    ]),
  )
  const name = describesRecord(value) ? names.get(JSON.stringify(value)) : undefined
  if (name === undefined) return within
  schemas[name] = within
  return { $ref: `#/components/schemas/${name}` }
}

function replaceAny(value: unknown, names: ReadonlyMap<string, string>, schemas: Json): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => replaceAny(item, names, schemas))
  return isRecord(value) ? replace(value, names, schemas) : value
}

function describesRecord(value: Json): boolean {
  const { type, properties } = value
  return type === 'object' && isRecord(properties) && Object.keys(properties).length >= LEAST_MEMBERS
}

/** Returns the type name for a member: `Campaign` for both `campaigns` and `campaign`. */
function typeName(member: string): string {
  const single = member.replace(/ies$/, 'y').replace(/(?<![isu])s$/, '')
  return single.charAt(0).toUpperCase() + single.slice(1)
}
