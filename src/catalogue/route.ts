import Type, { type TSchema } from 'typebox'

import { closed } from '../../schema/define.ts'

/** The parts of a request that can contain input, as objects by name. */
export type Parts = Record<'parameters' | 'query' | 'body', Record<string, unknown>>

/** How a request becomes the input of an operation. */
export type Reading = {
  read: (parts: Parts) => Record<string, unknown>
  /** The members of the input that a path parameter provides, by parameter. */
  standsFor: Readonly<Record<string, readonly string[]>>
}

/** How the data of an operation becomes the body of an answer, and how its output schema changes with it. */
export type Reply = { body: (data: unknown) => unknown; schema: (output: TSchema) => TSchema }

/** One address of REST and its operation. */
export type Route = {
  method: 'get' | 'post' | 'patch' | 'delete'
  path: string
  operation: string
  /** The body is a file of this type. */
  file?: string
  /** The body is a list, passed to the operation in the member of this name. */
  list?: string
  /** How the input is read; `together` by default. */
  input?: Reading
  /** The status of a success, 200 by default; a function returns 200 or 201 for the data. */
  status?: number | ((data: unknown) => number)
  /** The body of the answer; by default the operation's data. */
  reply?: Reply
  /** Set if the address also exists under `/api/v1`; `operation` names another operation, which pages as v1 does. */
  v1?: { operation?: string }
}

/** Reads the input from all parts: path parameters take precedence over the query, and the query over the body. */
export const together: Reading = {
  read: ({ parameters, query, body }) => ({ ...body, ...query, ...parameters }),
  standsFor: {},
}

/** Reads the input like `together`, for addresses where `:subscriber` is an id or an email address. */
export const person: Reading = {
  read: (parts) => {
    const { subscriber, ...input } = together.read(parts)
    return { ...input, [String(subscriber).includes('@') ? 'email' : 'subscriberId']: subscriber }
  },
  standsFor: { subscriber: ['subscriberId', 'email'] },
}

/** The reply that answers the operation's data unchanged. */
export const bare: Reply = { body: (data) => data, schema: (output) => output }

/** Returns a reply with one resource of the data, without an object around it. */
export function one(key: string): { reply: Reply } {
  return {
    reply: { body: (data) => Object(data)[key], schema: (output) => memberOf(output, key) },
  }
}

/** Returns a reply in the list shape of REST v2 (contract, "REST v2 resource endpoints"). */
export function many(key: string): { reply: Reply } {
  return {
    reply: {
      body: (data) => {
        const { [key]: records, hasMore = false } = Object(data)
        return { object: 'list', data: records, has_more: hasMore }
      },
      schema: (output) =>
        closed({ object: Type.Literal('list'), data: memberOf(output, key), has_more: Type.Boolean() }),
    },
  }
}

/** Returns the reply to a deletion: the operation's data with `object` and `deleted: true`. */
export function gone(noun: string): { reply: Reply } {
  return {
    reply: {
      body: (data) => ({ object: noun, ...Object(data), deleted: true }),
      schema: (output) =>
        closed({ object: Type.Literal(noun), ...membersOf(output), deleted: Type.Literal(true) }),
    },
  }
}

/**
 * Returns the reply of v1 in its frozen envelope, `{success: true, data}`. If v1 has an operation of its own, its data
 * is answered unchanged, because it includes the paging of v1.
 */
export function v1Reply({ reply = bare, v1 }: Pick<Route, 'reply' | 'v1'>): Reply {
  const { body, schema } = v1?.operation === undefined ? reply : bare
  return {
    body: (data) => ({ success: true, data: body(data) }),
    schema: (output) => closed({ success: Type.Literal(true), data: schema(output) }),
  }
}

/** Returns the status of a success with this data. */
export function statusOf({ status = 200 }: Pick<Route, 'status'>, data: unknown): number {
  return typeof status === 'number' ? status : status(data)
}

/** Returns every status that a success can have. */
export function statusesOf({ status = 200 }: Pick<Route, 'status'>): readonly number[] {
  return typeof status === 'number' ? [status] : [200, 201]
}

function memberOf(output: TSchema, key: string): TSchema {
  const member = membersOf(output)[key]
  if (!member) throw new Error(`an answer is made of "${key}", which the operation does not have`)
  return member
}

function membersOf(output: TSchema): Record<string, TSchema> {
  return Type.IsObject(output) ? output.properties : {}
}
