/** The comparisons that a block's condition can make, named as in the MAILY editor. */
export const CONDITION_OPERATORS = [
  'is_true',
  'is_false',
  'equals',
  'not_equals',
  'contains',
  'not_contains',
  'starts_with',
  'ends_with',
  'greater_than',
  'less_than',
] as const
export type ConditionOperator = (typeof CONDITION_OPERATORS)[number]

/** Decides who sees a block: recipients for whom the comparison holds or, with `hides`, all others. */
export type Condition = {
  readonly reference: number
  readonly operator: ConditionOperator
  readonly value: string
  readonly hides: boolean
}

const FALSE_WORDS = new Set(['', 'false', '0'])
const DAY = /^\d{4}-\d{2}-\d{2}/

/** Returns a number, or the time of an ISO date in ms; NaN for anything else, including an empty value. */
function magnitude(text: string): number {
  if (text === '') return Number.NaN
  return DAY.test(text) ? Date.parse(text.replace(/^(\S+) (\S+) UTC$/, '$1T$2Z')) : Number(text)
}

function compare({ operator, value }: Condition, text: string): boolean {
  switch (operator) {
    case 'is_true':
      return !FALSE_WORDS.has(text.toLowerCase())
    case 'is_false':
      return FALSE_WORDS.has(text.toLowerCase())
    case 'equals':
      return text === value
    case 'not_equals':
      return text !== value
    case 'contains':
      return text.includes(value)
    case 'not_contains':
      return !text.includes(value)
    case 'starts_with':
      return text.startsWith(value)
    case 'ends_with':
      return text.endsWith(value)
    case 'greater_than':
      return magnitude(text) > magnitude(value)
    case 'less_than':
      return magnitude(text) < magnitude(value)
  }
}

/** Returns whether a recipient sees the block; `value` is the variable's value formatted as in the email. */
export function isShown(condition: Condition, value: string): boolean {
  return compare(condition, value) !== condition.hides
}
