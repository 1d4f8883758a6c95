import { isRecord } from '../../../../schema/json.ts'
import { formatValue } from '../../../content/variables.ts'

/** What variables stand for: those of email content by name, and what the run was started with as `entry.<path>`. */
export type Variables = { named: Record<string, unknown>; entry: Record<string, unknown> }

const VARIABLE = /\{\{\s*([A-Za-z][\w.-]*)\s*(?:\|\s*(?:'([^'}]*)'|"([^"}]*)")\s*)?\}\}/g

/** Text with its `{{variables}}` filled, each as `encode` writes it; an empty value takes the fallback. */
export function fillText(text: string, variables: Variables, encode = (value: string) => value): string {
  return text.replaceAll(VARIABLE, (_all, name: string, single?: string, double?: string) =>
    encode(formatValue(valueOf(name, variables)) || (single ?? double ?? '')),
  )
}

/** The same in every text of a JSON value; names of members stay as they are. */
export function fillJson(value: unknown, variables: Variables): unknown {
  if (typeof value === 'string') return fillText(value, variables)
  if (Array.isArray(value)) return value.map((item) => fillJson(item, variables))
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, fillJson(item, variables)]))
}

function valueOf(name: string, { named, entry }: Variables): unknown {
  if (!name.startsWith('entry.')) return Object.hasOwn(named, name) ? named[name] : undefined
  let value: unknown = entry
  for (const part of name.slice('entry.'.length).split('.')) {
    value = isRecord(value) && Object.hasOwn(value, part) ? value[part] : undefined
  }
  return value
}
