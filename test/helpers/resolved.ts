import type { TSchema } from 'typebox'

/** Returns a schema with its references replaced by their targets in an OpenAPI document. */
export function resolved(schema: unknown, document: object): TSchema {
  const text = JSON.stringify(schema, (_key, value: unknown) => {
    const reference: unknown = Object(value).$ref
    if (typeof reference !== 'string') return value
    return reference
      .slice(2)
      .split('/')
      .reduce<unknown>((at, name) => Reflect.get(Object(at), name), document)
  })
  return JSON.parse(text)
}
