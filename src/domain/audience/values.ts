import {
  AUDIENCE_LIMITS,
  type FieldKind,
  type Period,
  PERIOD_MAXIMUM,
  PERIOD_UNITS,
  type PeriodUnit,
} from '../../../schema/audience.ts'
import { isRecord } from '../../../schema/json.ts'
import { SUBSCRIBER_STATUSES } from '../../../schema/values.ts'
import { didYouMean, kindOf } from '../../catalogue/schema-faults.ts'
import { type IdPrefix, readId } from '../../ids.ts'
import { readMoment } from './moment.ts'

/** The properties that decide which values a leaf accepts. */
export type ValueRules = { kind: FieldKind; operator: string; emailSteps?: ReadonlySet<string> | undefined }

type Check = (value: unknown) => string | null

/** Returns the fault of a leaf's value as a sentence without its subject; null when valid. */
export function valueFault(rules: ValueRules, value: unknown): string | null {
  switch (rules.operator) {
    case 'is_set':
    case 'is_not_set':
      return value === undefined ? null : `must be left out; ${rules.operator} compares with nothing`
    case 'within_last':
    case 'more_than_ago':
    case 'within_next':
      return periodFault(value, 1)
    case 'anniversary_in':
      return periodFault(value, 0)
    case 'between':
      return betweenFault(rules.kind, value)
    case 'in':
    case 'not_in':
      return listFault(value, AUDIENCE_LIMITS.listValues, scalarCheck(rules.kind, 'equals', 'list'))
    default:
      return kindFault(rules, value)
  }
}

/** Returns the fault of a period `{amount, unit}`; null when valid. */
export function periodFault(value: unknown, least: number): string | null {
  const example = 'such as {"amount": 30, "unit": "DAYS"}'
  if (!isRecord(value)) return `must be {amount, unit}, ${example}, not ${kindOf(value)}`
  const other = Object.keys(value).find((key) => key !== 'amount' && key !== 'unit')
  if (other !== undefined) return `must be {amount, unit}, ${example}; "${other.slice(0, 80)}" is not known`
  const { amount, unit } = value
  if (!isPeriodUnit(unit)) {
    const hint = typeof unit === 'string' ? didYouMean(unit, PERIOD_UNITS) : example
    return `must have the unit ${PERIOD_UNITS.join(', ')}; ${hint}`
  }
  const most = PERIOD_MAXIMUM[unit]
  if (typeof amount === 'number' && Number.isInteger(amount) && amount >= least && amount <= most) return null
  return `must have a whole amount of ${unit} from ${least} to ${most}, ${example}`
}

/** Whether a value is `{amount, unit}`. */
export function isPeriod(value: unknown): value is Period {
  return isRecord(value) && typeof value.amount === 'number' && isPeriodUnit(value.unit)
}

function isPeriodUnit(unit: unknown): unit is PeriodUnit {
  return PERIOD_UNITS.some((known) => known === unit)
}

function kindFault(rules: ValueRules, value: unknown): string | null {
  switch (rules.kind) {
    case 'tags':
      return listFault(value, AUDIENCE_LIMITS.names, tagCheck)
    case 'segment':
      return listFault(value, AUDIENCE_LIMITS.names, idCheck('seg'))
    case 'campaign':
      return campaignFault(value, rules.emailSteps)
    case 'workflow':
      return value === undefined ? null : oneOrMoreFault(value, idCheck('wf'))
    case 'random':
      return typeof value === 'number' && value >= 0 && value <= 100
        ? null
        : `must be a share in percent, 0 to 100, not ${kindOf(value)}`
    default:
      return scalarCheck(rules.kind, rules.operator, 'alone')(value)
  }
}

function scalarCheck(kind: FieldKind, operator: string, place: 'alone' | 'list'): Check {
  if (kind === 'id') return idCheck('sub')
  if (kind === 'status') return statusCheck
  if (place === 'list') return textCheck
  if (['contains', 'not_contains', 'starts_with', 'ends_with'].includes(operator)) return filledTextCheck
  if (operator === 'before' || operator === 'after') return dateCheck
  const equality = operator === 'equals' || operator === 'not_equals'
  if (kind === 'number') return numberCheck
  if (kind === 'boolean') return booleanCheck
  if (kind === 'date') return dateCheck
  if (kind === 'any') return equality ? scalarOfAnyKind : numberOrDateCheck
  return textCheck
}

const textCheck: Check = (value) => {
  if (typeof value !== 'string') return `must be text, not ${kindOf(value)}`
  if (value.length > AUDIENCE_LIMITS.textLength)
    return `must have at most ${AUDIENCE_LIMITS.textLength} characters`
  if (!value.isWellFormed() || hasControl(value)) return 'must not hold control characters or broken Unicode'
  return null
}
const filledTextCheck: Check = (value) => (value === '' ? 'must not be empty' : textCheck(value))
const tagCheck: Check = (value) => (value === '' ? 'must name a tag' : textCheck(value))
const numberCheck: Check = (value) =>
  typeof value === 'number' ? null : `must be a number, not ${kindOf(value)}`
const booleanCheck: Check = (value) =>
  typeof value === 'boolean' ? null : `must be true or false, not ${kindOf(value)}`
const scalarOfAnyKind: Check = (value) => {
  if (typeof value === 'number' || typeof value === 'boolean') return null
  if (typeof value === 'string') return textCheck(value)
  return `must be text, a number, true or false, not ${kindOf(value)}`
}
const dateCheck: Check = (value) => {
  if (typeof value === 'string' && readMoment(value, 'UTC') !== null) return null
  const found = typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : kindOf(value)
  return `must be an ISO date, such as "2025-01-31" or "2025-01-31T09:00:00Z", not ${found}`
}
const numberOrDateCheck: Check = (value) =>
  typeof value === 'number' || (typeof value === 'string' && dateCheck(value) === null)
    ? null
    : `must be a number or an ISO date, such as 5 or "2025-01-31", not ${kindOf(value)}`
const statusCheck: Check = (value) => {
  if (SUBSCRIBER_STATUSES.some((status) => status === value)) return null
  const hint = typeof value === 'string' ? didYouMean(value, SUBSCRIBER_STATUSES) : kindOf(value)
  return `must be one of ${SUBSCRIBER_STATUSES.join(', ')}; ${hint}`
}

function idCheck(prefix: IdPrefix): Check {
  return (value) =>
    typeof value === 'string' && readId(prefix, value) !== null
      ? null
      : `must be an id that begins with ${prefix}_, not ${typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : kindOf(value)}`
}

function betweenFault(kind: FieldKind, value: unknown): string | null {
  if (!Array.isArray(value) || value.length !== 2) return `must be a list of two values, the lower first`
  const [low, high]: unknown[] = value
  const check = scalarCheck(kind, 'gte', 'alone')
  const fault = check(low) ?? check(high)
  if (fault !== null) return fault
  if (typeof low === 'number' && typeof high === 'number') {
    return low <= high ? null : 'must have the lower value first'
  }
  const from = typeof low === 'string' ? readMoment(low, 'UTC') : null
  const to = typeof high === 'string' ? readMoment(high, 'UTC') : null
  if (!from || !to) return 'must be two numbers or two dates'
  const inOrder = to.end === null ? from.start <= to.start : from.start < to.end
  return inOrder ? null : 'must have the earlier date first'
}

function campaignFault(value: unknown, emailSteps: ReadonlySet<string> | undefined): string | null {
  if (value === undefined) return null
  if (!isRecord(value)) return oneOrMoreFault(value, idCheck('cmp'))
  const { stepId } = value
  if (typeof stepId !== 'string' || Object.keys(value).length !== 1) {
    return 'must be the id of a campaign, a list of ids, or {"stepId": …} for the email of a step'
  }
  if (!emailSteps) return '{stepId} can only be used in the steps of a workflow; give the id of a campaign'
  if (emailSteps.has(stepId)) return null
  return `there is no EMAIL step ${JSON.stringify(stepId.slice(0, 64))}; ${didYouMean(stepId, [...emailSteps])}`
}

function oneOrMoreFault(value: unknown, check: Check): string | null {
  return Array.isArray(value) ? listFault(value, AUDIENCE_LIMITS.names, check) : check(value)
}

function listFault(value: unknown, most: number, check: Check): string | null {
  if (!Array.isArray(value)) return `must be a list, not ${kindOf(value)}`
  if (value.length === 0 || value.length > most) return `must be a list of 1 to ${most} values`
  for (const [index, item] of value.entries()) {
    const fault = check(item)
    if (fault !== null) return `item ${index} ${fault}`
  }
  return null
}

function hasControl(text: string): boolean {
  return /\p{Cc}/u.test(text)
}
