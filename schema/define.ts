import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox'

/** An object that refuses every field it does not name. */
export function closed<Properties extends TProperties>(
  properties: Properties,
  options: { description?: string } = {},
): TObject<Properties> {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

/**
 * An optional property that the catalogue fills before a handler runs. TypeBox publishes a property with a plain
 * `default` as required; on the wire this one is optional, while its static type is never undefined.
 */
export function defaulted<Schema extends TSchema>(schema: Schema, value: Static<Schema>): Schema {
  // The modifier only changes `required` in the published schema; invoke() fills the value, so handlers always see one.
  return Type.Optional({ ...schema, default: value })
}

/** `T | null`. */
export function nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()])
}

/** One of a closed set of strings, published as `enum`. */
export function oneOf<const Values extends readonly string[]>(
  values: Values,
  options: { description?: string } = {},
) {
  // Type.Enum wants a mutable array type; the values are only read.
  return Type.Unsafe<Values[number]>(Type.Enum([...values], options))
}

/** A page of records under the key that names them, with an opaque or positional cursor. */
export function pageOf<Key extends string, Item extends TSchema>(key: Key, item: Item) {
  return closed({
    ...keyed(key, Type.Array(item)),
    nextCursor: nullable(Type.String()),
    hasMore: Type.Boolean(),
  })
}

/** Records under the key that names them, for lists that take only `limit`. */
export function listOf<Key extends string, Item extends TSchema>(key: Key, item: Item) {
  return closed({ ...keyed(key, Type.Array(item)), hasMore: Type.Boolean() })
}

/** A numbered page of records under the key that names them, for lists that take `page`. */
export function numberedPageOf<Key extends string, Item extends TSchema>(key: Key, item: Item) {
  return closed({
    ...keyed(key, Type.Array(item)),
    page: Type.Integer(),
    pageSize: Type.Integer(),
    total: Type.Integer(),
    hasMore: Type.Boolean(),
  })
}

/** Which page a list returns, from 1. */
export function pageNumber() {
  return defaulted(Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'From 1.' }), 1)
}

/** How many records a list returns; more than `maximum` is refused, never clamped. */
export function limitOf(preset: number, maximum = 100) {
  return defaulted(
    Type.Integer({
      minimum: 1,
      maximum,
      description: `How many to return, 1 to ${maximum}.`,
    }),
    preset,
  )
}

/** What a list of REST takes: how many, and from where in which direction. */
export function walkOf(preset = 20) {
  const id = (description: string) => Type.Optional(Type.String({ description }))
  return {
    limit: limitOf(preset),
    after: id('The id that the page before ended with: what follows it, older.'),
    before: id('The id that a page began with: what stands before it, newer. Not both.'),
  }
}

function keyed<Key extends string, Value>(key: Key, value: Value) {
  // A computed key widens to an index signature; the record holds exactly this key.
  return { [key]: value } as Record<Key, Value>
}
