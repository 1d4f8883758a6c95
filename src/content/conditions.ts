/** How a block's condition compares a variable; the words of the editor that writes them. */
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

/** Who sees a block: those for whom the comparison holds, or (`hides`) everybody else. */
export type Condition = {
  readonly reference: number
  readonly operator: ConditionOperator
  readonly value: string
  readonly hides: boolean
}

const FALSE_WORDS = new Set(['', 'false', '0'])
const DAY = /^\d{4}-\d{2}-\d{2}/

/** A number, or the time of an ISO date; NaN for everything else, an empty value above all. */
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

/** Whether somebody with this value, as it would show, sees the block. */
export function isShown(condition: Condition, value: string): boolean {
  return compare(condition, value) !== condition.hides
}
