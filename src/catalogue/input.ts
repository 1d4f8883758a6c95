import { Value } from 'typebox/value'

import { schemaFaults } from './schema-faults.ts'
import { Failure, type Fault, refuseFaults } from './failure.ts'
import { JSON_DEPTH, type Tool } from './tool.ts'

/** Decisions, section 1: keys that could reach an object's prototype. */
const FORBIDDEN_KEYS = new Set(['__proto__', 'constructor', 'prototype'])
// Line breaks and tabs belong to content; single-line fields refuse them by their own schema.
// oxlint-disable-next-line no-control-regex -- finding control characters is its purpose
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F]/

/** A tool's input as the handler takes it, with the confirmation code that came beside it. */
export type ReadInput = { input: unknown; confirmationCode: string | undefined }

/** Validates strictly, refusing with every fault at once, and fills the defaults. */
export function readInput(tool: Tool, raw: unknown): ReadInput {
  const what = tool.listed ? `The input of ${tool.name}` : 'The body'
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    throw new Failure('INVALID_INPUT', `${what} must be a JSON object; send {} when it takes nothing.`)
  }
  const hostile = hostileFaults(raw, tool.jsonDepth)
  if (hostile.length > 0) refuseFaults(hostile, what)
  const { confirmationCode, ...input } = takeCode(tool, raw)
  if (!tool.validator.Check(input)) {
    const faults = schemaFaults(tool.input, input)
    refuseFaults(faults, what, isOnlyMissing(tool, input, faults) ? 'MISSING_FIELD' : 'INVALID_INPUT')
  }
  return { input: Value.Default(tool.input, input), confirmationCode }
}

/** Whether every fault is a required field that was not sent; REST has a name of its own for that. */
function isOnlyMissing(tool: Tool, input: object, faults: readonly Fault[]): boolean {
  const missing = new Set(tool.input.required?.filter((name) => !Object.hasOwn(input, name)))
  return faults.every(({ path }) => missing.has(path))
}

function takeCode(
  tool: Tool,
  raw: object,
): { confirmationCode: string | undefined } & Record<string, unknown> {
  const fields: Record<string, unknown> = { ...raw }
  if (tool.effect !== 'impact') return { ...fields, confirmationCode: undefined }
  const { confirmationCode, ...input } = fields
  if (confirmationCode !== undefined && typeof confirmationCode !== 'string') {
    refuseFaults([{ path: 'confirmationCode', message: 'must be text of five digits, such as "12345"' }])
  }
  return { ...input, confirmationCode }
}

/** What no schema says: how deep it goes, which keys it has, and which characters its strings hold. */
export function hostileFaults(value: unknown, maximum = JSON_DEPTH, path = '', depth = 1): Fault[] {
  if (typeof value === 'string') return textFaults(value, path)
  if (typeof value !== 'object' || value === null) return []
  if (depth > maximum) return [{ path, message: `is nested deeper than ${maximum} levels` }]
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => hostileFaults(item, maximum, `${path}[${index}]`, depth + 1))
  }
  return Object.entries(value).flatMap(([key, member]) => {
    const at = path === '' ? key : `${path}.${key}`
    if (FORBIDDEN_KEYS.has(key)) return [{ path: at, message: `the key "${key}" is not allowed` }]
    return [...textFaults(key, at), ...hostileFaults(member, maximum, at, depth + 1)]
  })
}

function textFaults(value: string, path: string): Fault[] {
  if (CONTROL_CHARACTERS.test(value)) {
    return [{ path, message: 'holds a control character; remove it' }]
  }
  if (!value.isWellFormed())
    return [{ path, message: 'holds half of a UTF-16 surrogate pair; send valid Unicode' }]
  return []
}
