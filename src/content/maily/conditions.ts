import { isRecord } from '../../../schema/json.ts'
import { type Condition, CONDITION_OPERATORS } from '../conditions.ts'
import { choiceOf, memberOf, textOf } from '../rich/attributes.ts'
import { type Node, variableName, type Walk } from './node.ts'

/**
 * Reads the condition of a block; null means that everybody sees it. An invalid condition hides nothing and gets a
 * warning.
 */
export function readCondition(walk: Walk, { attributes }: Node): Condition | null {
  const rule = memberOf(attributes, 'visibilityRule')
  if (!isRecord(rule)) return readKey(walk, textOf(attributes, 'showIfKey'))
  const action = choiceOf(rule, 'action', ['show', 'hide', 'none'], 'none')
  if (action === 'none') return readKey(walk, textOf(attributes, 'showIfKey'))
  const written = textOf(rule, 'operator')
  const operator = CONDITION_OPERATORS.find((known) => known === written)
  const name = variableName(textOf(rule, 'variable'))
  if (name === null || operator === undefined) {
    const what = name === null ? `names no variable` : `compares by "${walk.parts.table.plain(written)}"`
    const repair =
      name === null ? 'set visibilityRule.variable to a name' : `use one of ${CONDITION_OPERATORS.join(', ')}`
    return refuse(walk, what, repair)
  }
  const given = memberOf(rule, 'value')
  const value = walk.parts.table.plain(typeof given === 'boolean' ? String(given) : textOf(rule, 'value'))
  return { reference: referenceTo(walk, name), operator, value, hides: action === 'hide' }
}

/** Reads the condition of the editor's first version: the variable is set and not false. */
function readKey(walk: Walk, key: string): Condition | null {
  if (key.trim() === '') return null
  const name = variableName(key)
  if (name === null) return refuse(walk, 'names no variable', 'set showIfKey to a name')
  return { reference: referenceTo(walk, name), operator: 'is_true', value: '', hides: false }
}

function referenceTo({ parts }: Walk, name: string): number {
  return parts.table.add({ name, fallback: '' })
}

function refuse({ parts }: Walk, what: string, repair: string): null {
  parts.table.warn(
    'INVALID_CONDITION',
    `The condition of a block ${what}, so everybody sees the block; ${repair}.`,
  )
  return null
}
