import { Failure, refuse } from '../../catalogue/failure.ts'
import { isFieldName } from '../subscribers/fields.ts'

/** The target of a column. Several columns may go to `name` (joined by a space) and `tags`, one to any other target. */
export type Target = (typeof PLAIN_TARGETS)[number] | `fields.${string}`

const PLAIN_TARGETS = ['email', 'name', 'phone', 'country', 'tags', 'status'] as const
const SHARED: ReadonlySet<string> = new Set(['name', 'tags'])

/** How the header of an export begins; `createdAt` ends it, and in between are the custom fields with a prefix. */
const EXPORTED = ['email', 'name', 'phone', 'status', 'tags'] as const
const EXPORTED_FIELD = 'customFields.'

/** The columns that a download of rejected rows adds; they are unused when such a file is imported again. */
export const REJECTED_COLUMNS = ['row', 'error'] as const

/** Common column names in lower case, with only letters and digits. */
const USUAL_NAMES: Readonly<Record<string, Target>> = {
  email: 'email',
  emailaddress: 'email',
  mail: 'email',
  name: 'name',
  fullname: 'name',
  phone: 'phone',
  phonenumber: 'phone',
  telephone: 'phone',
  mobile: 'phone',
  country: 'country',
  countrycode: 'country',
  tags: 'tags',
  labels: 'tags',
  status: 'status',
}
/** Column names that hold a part of a person's name; used when no column holds the whole name. */
const NAME_PARTS: ReadonlySet<string> = new Set([
  'firstname',
  'givenname',
  'lastname',
  'surname',
  'familyname',
])

/**
 * Returns the target of each column of a header; null for unused columns. Targets come from `mapping` or, without one,
 * from the column names: an unknown name becomes a custom field: the one of `fields` with that name, one that differs
 * only in letter case, or a new one. Throws `INVALID_INPUT` for an invalid target, a duplicate target or a missing email
 * column.
 */
export function readColumns(
  header: readonly string[],
  mapping: Readonly<Record<string, string>> | undefined,
  fields: Iterable<string> = [],
): (Target | null)[] {
  const columns = mapping ? mapped(header, mapping) : guessed(header, fields)
  const taken = new Map<string, string>()
  columns.forEach((target, index) => {
    if (target === null || SHARED.has(target)) return
    const name = header[index] ?? ''
    const other = taken.get(target)
    if (other !== undefined) {
      const both = `${quoted(other)} and ${quoted(name)}`
      refuse('mapping', `leads the columns ${both} to ${target}; send a mapping that names one of them.`)
    }
    taken.set(target, name)
  })
  if (taken.has('email')) return columns
  const names = header.map(quoted).join(', ')
  throw new Failure(
    'INVALID_INPUT',
    `No column is recognized as the email address: the file has ${names}. Name it in mapping, such as {"${header[0] ?? 'E-mail'}": "email"}, or call it "email".`,
    { details: [{ path: 'mapping', message: 'leads no column to email' }] },
  )
}

function mapped(header: readonly string[], mapping: Readonly<Record<string, string>>): (Target | null)[] {
  for (const [name, target] of Object.entries(mapping)) {
    const path = `mapping.${name.slice(0, 80)}`
    const count = header.filter((each) => each === name).length
    if (count === 0) {
      refuse(path, `is not a column of the file; it has ${header.map(quoted).join(', ').slice(0, 1_000)}.`)
    }
    if (count > 1) refuse(path, 'is the name of several columns; give each a name of its own.')
    if (!isTarget(target)) {
      const known = PLAIN_TARGETS.join(', ')
      refuse(path, `leads to ${quoted(target)}, which there is not; use ${known} or fields.<name>.`)
    }
  }
  return header.map((name) => {
    const target = Object.hasOwn(mapping, name) ? mapping[name] : undefined
    return target !== undefined && isTarget(target) ? target : null
  })
}

function isTarget(text: string): text is Target {
  if (text.startsWith('fields.')) return isFieldName(text.slice('fields.'.length))
  return PLAIN_TARGETS.some((target) => target === text)
}

function guessed(header: readonly string[], fields: Iterable<string>): (Target | null)[] {
  const known = new Set(fields)
  const byKey = new Map([...known].map((name) => [name.toLowerCase(), name]))
  const keys = header.map((name) =>
    plain(name)
      .toLowerCase()
      .replaceAll(/[^a-z0-9]/g, ''),
  )
  const hasName = keys.some((key) => USUAL_NAMES[key] === 'name')
  const own = header.length - REJECTED_COLUMNS.length
  const isRejected = REJECTED_COLUMNS.every((name, index) => header[own + index] === name)
  const isExport = EXPORTED.every((name, index) => header[index] === name)
  return header.map((name, index): Target | null => {
    if (isRejected && index >= own) return null
    if (isExport && name === 'createdAt') return null
    const key = keys[index] ?? ''
    const usual = Object.hasOwn(USUAL_NAMES, key) ? USUAL_NAMES[key] : undefined
    if (usual) return usual
    if (!hasName && NAME_PARTS.has(key)) return 'name'
    const exported = name.startsWith(EXPORTED_FIELD) ? name.slice(EXPORTED_FIELD.length) : ''
    const field = isFieldName(exported)
      ? exported
      : plain(name)
          .replaceAll(/[^A-Za-z0-9_-]+/g, '_')
          .replaceAll(/^[^A-Za-z]+|_+$/g, '')
    if (!isFieldName(field)) return null
    return `fields.${known.has(field) ? field : (byKey.get(field.toLowerCase()) ?? field)}`
  })
}

/** Removes accents. */
function plain(text: string): string {
  return text.normalize('NFKD').replaceAll(/\p{M}/gu, '')
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 80))
}
