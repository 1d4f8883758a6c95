/** The texts that describe a built-in variable in a document, on a form, and in a preview. */
export type BuiltInVariable = {
  readonly name: string
  readonly label: string
  readonly description: string
  readonly example: string
}

/** The variables every email can use without a custom field; get_available_variables publishes this table. */
export const BUILT_IN_VARIABLES: readonly BuiltInVariable[] = Object.freeze([
  { name: 'name', label: 'Name', description: "The subscriber's name.", example: 'Ada Lovelace' },
  {
    name: 'email',
    label: 'Email address',
    description: "The subscriber's email address.",
    example: 'ada@example.com',
  },
  {
    name: 'phone',
    label: 'Phone number',
    description: "The subscriber's phone number.",
    example: '+33 6 12 34 56 78',
  },
  {
    name: 'org-name',
    label: 'Organization name',
    description: 'The name of the organization that sends the email.',
    example: 'Analytical Engines',
  },
  {
    name: 'unsubscribeUrl',
    label: 'Unsubscribe link',
    description: 'The personal address where the subscriber stops further email.',
    example: 'https://mail.example.com/u/example',
  },
  {
    name: 'onlineUrl',
    label: 'Online view link',
    description: 'The personal address where this email can be read in a browser.',
    example: 'https://mail.example.com/v/example',
  },
])

/** The address that confirms a subscription; only the email that asks for the confirmation has one. */
export const CONFIRM_VARIABLE = 'confirmUrl'

/** The addresses that the service makes for each recipient; list items cannot override them. */
export const SERVICE_VARIABLES: ReadonlySet<string> = new Set([
  'unsubscribeUrl',
  'onlineUrl',
  CONFIRM_VARIABLE,
])

const VARIABLE_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/

/** Returns whether the text is a variable name: the same rule as for custom field names, which share the namespace. */
export function isVariableName(text: string): boolean {
  return VARIABLE_NAME.test(text)
}

// Control characters end headers and lines, and U+2028/9 end lines. Bidirectional embeddings and isolates reorder the
// text after them. U+FDD0..5 are the placeholder characters of this folder.
const UNPRINTABLE =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\ufdd0-\ufdd5]+/g

/** Returns one line of printable text: characters that could end a header, a line or a placeholder become spaces. */
export function flatten(text: string): string {
  return text.toWellFormed().replace(UNPRINTABLE, ' ').trim()
}

/** Formats a variable's value as plain text on one line. Values without a plain form (objects, NaN) are empty. */
export function formatValue(value: unknown): string {
  if (typeof value === 'string') return flatten(value)
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : ''
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (!Array.isArray(value)) return ''
  return value
    .filter((item: unknown) => !Array.isArray(item))
    .map(formatValue)
    .filter((item) => item !== '')
    .join(', ')
}

/** A date with a time, as custom fields store it. */
const STORED_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

/** Returns the text of a value as readers see it: a stored date and time becomes `2026-03-01 14:30 UTC`. */
export function asReadersWrite(text: string): string {
  return STORED_TIME.test(text) ? `${text.slice(0, 10)} ${text.slice(11, 16)} UTC` : text
}
