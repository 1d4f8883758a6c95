import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox'

/** Returns an object schema that refuses fields it does not name. */
export function closed<Properties extends TProperties>(
  properties: Properties,
  options: { description?: string } = {},
): TObject<Properties> {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

/**
 * Returns an optional property that `invoke()` fills with `value` before a handler runs. TypeBox publishes a property
 * with a plain `default` as required; this one is optional on the wire, while its static type is never undefined.
 */
export function defaulted<Schema extends TSchema>(schema: Schema, value: Static<Schema>): Schema {
  // The modifier only changes `required` in the published schema, so the static type stays that of `schema`.
  return Type.Optional({ ...schema, default: value })
}

/** Returns the schema of `T | null`. A record that others share gets its description here and stays the same schema. */
export function nullable<Schema extends TSchema>(schema: Schema, options: { description?: string } = {}) {
  return Type.Union([schema, Type.Null()], options)
}

/** Returns the schema of one of a closed set of strings, published as `enum`. */
export function oneOf<const Values extends readonly string[]>(
  values: Values,
  options: { description?: string } = {},
) {
  // `Type.Enum` requires a mutable array type, although it only reads the values.
  return Type.Unsafe<Values[number]>(Type.Enum([...values], options))
}

/** Returns the schema of a page of records under `key`, with the cursor of the next page. */
export function pageOf<Key extends string, Item extends TSchema>(key: Key, item: Item) {
  return closed({
    ...keyed(key, Type.Array(item)),
    nextCursor: nullable(
      Type.String({ description: 'The `cursor` of the next page. Null on the last page.' }),
    ),
    hasMore: Type.Boolean({ description: 'Whether more records follow.' }),
  })
}

/** Returns the schema of a list of records under `key`, for lists that take only `limit`. */
export function listOf<Key extends string, Item extends TSchema>(key: Key, item: Item) {
  return closed({
    ...keyed(key, Type.Array(item)),
    hasMore: Type.Boolean({ description: 'Whether there are more records than were returned.' }),
  })
}

/** Returns the schema of a numbered page of records under `key`, for lists that take `page`. */
export function numberedPageOf<Key extends string, Item extends TSchema>(key: Key, item: Item) {
  return closed({
    ...keyed(key, Type.Array(item)),
    page: Type.Integer(),
    pageSize: Type.Integer(),
    total: Type.Integer({ description: 'The number of records on all pages.' }),
    hasMore: Type.Boolean({ description: 'Whether more pages follow.' }),
  })
}

/** Returns the schema of a page number, which counts from 1. */
export function pageNumber() {
  return defaulted(
    Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'The page number, starting at 1.' }),
    1,
  )
}

/** Returns the schema of `limit`, with the default `preset`. A value above `maximum` is refused, never clamped. */
export function limitOf(preset: number, maximum = 100) {
  return defaulted(
    Type.Integer({
      minimum: 1,
      maximum,
      description: `The maximum number of records to return, 1 to ${maximum}.`,
    }),
    preset,
  )
}

/** The parameter `cursor` of a list. */
export const cursor = Type.Optional(Type.String({ description: '`nextCursor` of the previous page.' }))

/** Returns the paging parameters of REST lists: a limit and the id to start after or before. */
export function walkOf(preset = 20) {
  const id = (description: string) => Type.Optional(Type.String({ description }))
  return {
    limit: limitOf(preset),
    after: id('The id of the last record of a page. Returns the records that follow it (older ones).'),
    before: id(
      'The id of the first record of a page. Returns the records that precede it (newer ones). Cannot be combined with `after`.',
    ),
  }
}

function keyed<Key extends string, Value>(key: Key, value: Value) {
  // TypeScript widens a computed key to an index signature; the record has exactly this key.
  return { [key]: value } as Record<Key, Value>
}
