import { isRecord, valueAt } from '../../../../schema/json.ts'
import { formatValue } from '../../../content/variables.ts'

/** The values of variables: those of email content by name, and the run's entry data as `entry.<path>`. */
export type Variables = { named: Record<string, unknown>; entry: Record<string, unknown> }

const VARIABLE = /\{\{\s*([A-Za-z][\w.-]*)\s*(?:\|\s*(?:'([^'}]*)'|"([^"}]*)")\s*)?\}\}/g

/**
 * Fills the `{{variables}}` of a text. An empty value is replaced by the variable's fallback; `encode` is applied to
 * both.
 */
export function fillText(text: string, variables: Variables, encode = (value: string) => value): string {
  return text.replaceAll(VARIABLE, (_all, name: string, single?: string, double?: string) =>
    encode(formatValue(valueOf(name, variables)) || (single ?? double ?? '')),
  )
}

/** Fills the variables in every string of a JSON value, but not in the names of members. */
export function fillJson(value: unknown, variables: Variables): unknown {
  if (typeof value === 'string') return fillText(value, variables)
  if (Array.isArray(value)) return value.map((item) => fillJson(item, variables))
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, fillJson(item, variables)]))
}

function valueOf(name: string, { named, entry }: Variables): unknown {
  if (!name.startsWith('entry.')) return Object.hasOwn(named, name) ? named[name] : undefined
  return valueAt(entry, name.slice('entry.'.length))
}
