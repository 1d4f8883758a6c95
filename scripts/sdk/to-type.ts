import { isRecord } from '../../schema/json.ts'

/** A JSON object. */
export type Json = Record<string, unknown>

/** Returns the name of the type that is declared for a schema, or undefined when the schema is to be written inline. */
export type NameOf = (schema: object) => string | undefined

const ROOT_NOTES = new Set(['description', 'default', 'examples'])

/** Returns a text that identifies a schema regardless of its description, default and examples. */
export function identityOf(schema: object): string {
  return JSON.stringify(Object.fromEntries(Object.entries(schema).filter(([key]) => !ROOT_NOTES.has(key))))
}

/** Returns a schema of the catalogue as a TypeScript type. Supports only the keywords that the catalogue uses. */
export function toType(schema: object, nameOf: NameOf): string {
  const { const: value, enum: values, anyOf, type, items, ...rest }: Json = Object(schema)
  const name = nameOf(schema)
  if (name !== undefined) return name
  if (value !== undefined) return JSON.stringify(value)
  if (Array.isArray(values)) return values.map((one) => JSON.stringify(one)).join(' | ')
  if (Array.isArray(anyOf)) return [...new Set(anyOf.map((one: Json) => toType(one, nameOf)))].join(' | ')
  switch (type) {
    case 'string':
    case 'boolean':
    case 'null':
      return type
    case 'integer':
    case 'number':
      return 'number'
    case 'array':
      return arrayOf(isRecord(items) ? toType(items, nameOf) : 'unknown')
    case 'object':
      return objectType(rest, nameOf)
    case undefined:
      return 'unknown'
    default:
      throw new Error(`the SDK's types know no schema of the type ${JSON.stringify(type)}`)
  }
}

/** Returns `text` as a documentation comment, or nothing when it is empty. */
export function comment(text: unknown): string {
  return typeof text === 'string' && text !== '' ? `/** ${text.replaceAll('*/', '*\\/')} */\n` : ''
}

function objectType({ properties, patternProperties, required }: Json, nameOf: NameOf): string {
  if (isRecord(patternProperties)) {
    const kinds = Object.values(patternProperties).map((one) =>
      isRecord(one) ? toType(one, nameOf) : 'unknown',
    )
    return `Record<string, ${kinds.join(' | ')}>`
  }
  if (!isRecord(properties)) return 'Record<string, unknown>'
  if (Object.keys(properties).length === 0) return 'Record<string, never>'
  const needed = new Set(Array.isArray(required) ? required : [])
  const members = Object.entries(properties).map(([key, value]) => {
    const member = isRecord(value) ? value : {}
    const mark = needed.has(key) ? '' : '?'
    return `${comment(member['description'])}${propertyName(key)}${mark}: ${toType(member, nameOf)}\n`
  })
  return `{\n${members.join('')}}`
}

function arrayOf(item: string): string {
  return /^[\w.]+(?:<[^<>|]*>)?$/.test(item) ? `${item}[]` : `(${item})[]`
}

function propertyName(key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key)
}
