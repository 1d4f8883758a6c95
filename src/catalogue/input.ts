import Type from 'typebox'
import { Value } from 'typebox/value'

import { Failure, type Fault, FAULTS_SHOWN, refuseFaults } from './failure.ts'
import { schemaFaults } from './schema-faults.ts'
import { JSON_DEPTH, type Tool } from './tool.ts'

/** Keys that could reach an object's prototype (decisions, section 1). */
const FORBIDDEN_KEYS = new Set(['__proto__', 'constructor', 'prototype'])
// Line breaks and tabs are allowed because content contains them; schemas of single-line fields reject them.
// oxlint-disable-next-line no-control-regex -- finding control characters is its purpose
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F]/

/** Maximum number of characters of a key in the paths of faults. */
const KEY_SHOWN = 100

/** The members of a tool that are needed to read an input. */
export type InputReader = Pick<
  Tool,
  'name' | 'listed' | 'effect' | 'jsonDepth' | 'input' | 'rows' | 'whole' | 'validator'
>

/** A validated input with its defaults filled in, and the confirmation code that was sent with it. */
export type ReadInput = { input: unknown; confirmationCode: string | undefined }

/** An item of a tool's `rows` that cannot be used. `item` is the item as sent; null where it may not be stored. */
export type FaultyItem = { faults: Fault[]; item: unknown }

/** How an input is put together from the parts of a request, so that faults name the part. */
export type RequestParts = {
  /** Names the part that contains, or should contain, the member at a path. */
  partOf(path: string): string
  /** Members that the path of the address provides; no other part can contain them. */
  inPath: ReadonlySet<string>
}

/** Validates the input strictly and fills in the defaults. Throws a failure that lists every fault. */
export function readInput(tool: InputReader, sent: unknown, parts?: RequestParts): ReadInput {
  const whatOf = ([first]: readonly Fault[] = []) =>
    tool.listed ? `The input of ${tool.name}` : (parts?.partOf(first?.path ?? '') ?? 'The body')
  if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) {
    throw new Failure('INVALID_INPUT', `${whatOf()} must be a JSON object; send {} when it takes nothing.`)
  }
  const rows = judgedRows(tool, sent)
  const hostile = hostileFaults(rows ? without(sent, rows) : sent, tool.jsonDepth)
  if (hostile.length > 0) refuseFaults(hostile, whatOf(hostile))
  const { input, confirmationCode } = takeCode(tool, { ...sent, ...rows })
  if (!tool.validator.Check(input)) {
    const faults = schemaFaults(tool.whole, input, { unnamed: parts?.inPath })
    refuseFaults(
      faults,
      whatOf(faults),
      isOnlyMissing(tool, input, faults) ? 'MISSING_FIELD' : 'INVALID_INPUT',
    )
  }
  return { input: Value.Default(tool.input, input), confirmationCode }
}

/** Returns `rows` of the input with faulty items as `FaultyItem`; null where there are none that could be checked. */
function judgedRows({ input, rows, jsonDepth }: InputReader, sent: object): Record<string, unknown[]> | null {
  const items: unknown = rows === undefined ? undefined : Reflect.get(sent, rows)
  const list = rows === undefined ? undefined : input.properties[rows]
  if (rows === undefined || !Array.isArray(items) || !list || !Type.IsArray(list)) return null
  // Too many are refused as a whole, without reading them.
  if (items.length > Number(Reflect.get(list, 'maxItems'))) return null
  const judged = items.map((item: unknown): unknown => {
    // The item stands in a list in an object.
    const hostile = hostileFaults(item, jsonDepth - 2)
    if (hostile.length > 0) return { faults: hostile, item: null } satisfies FaultyItem
    const faults = schemaFaults(list.items, item)
    return faults.length > 0 ? ({ faults, item } satisfies FaultyItem) : item
  })
  return { [rows]: judged }
}

function without(sent: object, rows: Record<string, unknown>): object {
  return Object.fromEntries(Object.entries(sent).filter(([name]) => !Object.hasOwn(rows, name)))
}

/** Returns whether every fault is a required field that was not sent; REST has its own error name for that. */
function isOnlyMissing(tool: InputReader, input: object, faults: readonly Fault[]): boolean {
  const missing = new Set(tool.input.required?.filter((name) => !Object.hasOwn(input, name)))
  return faults.every(({ path }) => missing.has(path))
}

/** Takes the code out of the input of a tool that may ask for one; for other tools it is an unknown field. */
function takeCode(tool: InputReader, raw: object): ReadInput & { input: object } {
  const fields: Record<string, unknown> = { ...raw }
  if (tool.effect !== 'impact') return { input: fields, confirmationCode: undefined }
  const { confirmationCode, ...input } = fields
  if (confirmationCode !== undefined && typeof confirmationCode !== 'string') {
    refuseFaults([{ path: 'confirmationCode', message: 'must be text of five digits, such as "12345"' }])
  }
  return { input, confirmationCode }
}

/**
 * Returns the faults that schemas do not cover: nesting deeper than `maximum`, forbidden keys, control characters or
 * lone surrogates in strings, and numbers such as 1e400, which are read as infinite and would be stored as null.
 */
export function hostileFaults(value: unknown, maximum = JSON_DEPTH, path = ''): Fault[] {
  const faults: Fault[] = []
  inspect(value, { path, depth: 1 })
  return faults

  function inspect(inspected: unknown, at: { path: string; depth: number }): void {
    if (faults.length >= FAULTS_SHOWN) return
    if (typeof inspected === 'string') inspectText(inspected, at.path)
    if (typeof inspected === 'number' && !Number.isFinite(inspected))
      faults.push({ path: at.path, message: 'is a number beyond 1.8e308; send a smaller one' })
    if (typeof inspected !== 'object' || inspected === null) return
    if (at.depth > maximum) {
      faults.push({ path: at.path, message: `is nested deeper than ${maximum} levels` })
      return
    }
    const depth = at.depth + 1
    if (Array.isArray(inspected)) {
      inspected.forEach((item, index) => inspect(item, { path: `${at.path}[${index}]`, depth }))
      return
    }
    for (const [key, member] of Object.entries(inspected)) {
      const shown = key.slice(0, KEY_SHOWN)
      const inside = at.path === '' ? shown : `${at.path}.${shown}`
      if (FORBIDDEN_KEYS.has(key)) faults.push({ path: inside, message: `the key "${key}" is not allowed` })
      else {
        inspectText(key, inside)
        inspect(member, { path: inside, depth })
      }
    }
  }

  function inspectText(text: string, at: string): void {
    const message = textFault(text)
    if (message !== null && faults.length < FAULTS_SHOWN) faults.push({ path: at, message })
  }
}

function textFault(text: string): string | null {
  if (CONTROL_CHARACTERS.test(text)) return 'holds a control character; remove it'
  return text.isWellFormed() ? null : 'holds half of a UTF-16 surrogate pair; send valid Unicode'
}
