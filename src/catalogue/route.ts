import Type, { type TSchema } from 'typebox'

import { closed } from '../../schema/define.ts'

/** The parts of a request that can hold input, each by name. */
export type Parts = Record<'parameters' | 'query' | 'body', Record<string, unknown>>

/** How a request becomes the input of an operation. */
export type Reading = {
  read: (parts: Parts) => Record<string, unknown>
  /** The members of the input that a parameter of the address stands for. */
  standsFor: Readonly<Record<string, readonly string[]>>
}

/** How the data of an operation becomes the body of an answer, and what that makes of its schema. */
export type Reply = { body: (data: unknown) => unknown; schema: (output: TSchema) => TSchema }

/** One address of REST and the operation behind it. */
export type Route = {
  method: 'get' | 'post' | 'patch' | 'delete'
  path: string
  operation: string
  /** The body is a file of this type. */
  file?: string
  /** The body is a list, which the operation knows by this name. */
  list?: string
  /** The operation's input; all parts together unless it needs another shape. */
  input?: Reading
  /** 200 unless said otherwise; what decides by the data says 200 or 201. */
  status?: number | ((data: unknown) => number)
  /** The body of the answer; the operation's data unless said otherwise. */
  reply?: Reply
  /** Under `/api/v1` as well; there by the operation that pages as v1 does, where that is another. */
  v1?: { operation?: string }
}

/** What stands in the address wins over the body. */
export const together: Reading = {
  read: ({ parameters, query, body }) => ({ ...body, ...query, ...parameters }),
  standsFor: {},
}

/** `:subscriber` is an id or an email address. */
export const person: Reading = {
  read: (parts) => {
    const { subscriber, ...input } = together.read(parts)
    return { ...input, [String(subscriber).includes('@') ? 'email' : 'subscriberId']: subscriber }
  },
  standsFor: { subscriber: ['subscriberId', 'email'] },
}

/** The operation's data as it is. */
export const bare: Reply = { body: (data) => data, schema: (output) => output }

/** One resource stands bare in an answer. */
export function one(key: string): { reply: Reply } {
  return {
    reply: { body: (data) => Object(data)[key], schema: (output) => memberOf(output, key) },
  }
}

/** The list shape of REST v2 (contract, "REST v2 resource endpoints"). */
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

/** What is left of something deleted. */
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
 * The frozen envelope of v1. Where v1 has an operation of its own, that one's answer says by itself how to go on.
 */
export function v1Reply({ reply = bare, v1 }: Pick<Route, 'reply' | 'v1'>): Reply {
  const { body, schema } = v1?.operation === undefined ? reply : bare
  return {
    body: (data) => ({ success: true, data: body(data) }),
    schema: (output) => closed({ success: Type.Literal(true), data: schema(output) }),
  }
}

/** The status of an answer that holds this data. */
export function statusOf({ status = 200 }: Pick<Route, 'status'>, data: unknown): number {
  return typeof status === 'number' ? status : status(data)
}

/** Every status that a success can have. */
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
