import { type RawBuilder, sql } from 'kysely'

/** An SQL condition over the row `s` of subscriber. */
export type Predicate = RawBuilder<boolean>

/** A condition, and whether it is never null. A null condition does not hold, but neither does its negation. */
export type Test = { holds: Predicate; total: boolean }

/** Makes a test whose condition is never null. */
export function total(holds: Predicate): Test {
  return { holds, total: true }
}

/** Makes a test whose condition is null when the value is missing. */
export function partial(holds: Predicate): Test {
  return { holds, total: false }
}

/** Matches nobody. */
export const never: Test = total(sql<boolean>`false`)
/** Matches everybody. */
export const always: Test = total(sql<boolean>`true`)

/** Returns the condition or its opposite; the opposite includes rows whose value is missing. */
export function signed(test: Test, negated: boolean): Predicate {
  if (!negated) return test.holds
  return test.total ? sql<boolean>`not ${test.holds}` : sql<boolean>`(${test.holds}) is not true`
}

/** Joins conditions with `and`; an empty list matches everybody. */
export function allOf(parts: readonly Predicate[]): Predicate {
  return joined(parts, ' and ', always)
}

/** Joins conditions with `or`; an empty list matches nobody. */
export function anyOf(parts: readonly Predicate[]): Predicate {
  return joined(parts, ' or ', never)
}

function joined(parts: readonly Predicate[], by: string, none: Test): Predicate {
  const [first] = parts
  if (first === undefined) return none.holds
  if (parts.length === 1) return first
  return sql<boolean>`(${sql.join(parts, sql.raw(by))})`
}
