import { type RawBuilder, sql } from 'kysely'

/** A condition in SQL over the row `s` of subscriber. */
export type Predicate = RawBuilder<boolean>

/** A condition, and whether it is never null; null means "does not hold" in a where clause but must not be negated. */
export type Test = { holds: Predicate; total: boolean }

/** A condition that is true or false for every row. */
export function total(holds: Predicate): Test {
  return { holds, total: true }
}

/** A condition that is null where the value is missing. */
export function partial(holds: Predicate): Test {
  return { holds, total: false }
}

/** Holds for nobody. */
export const never: Test = total(sql<boolean>`false`)
/** Holds for everybody. */
export const always: Test = total(sql<boolean>`true`)

/** The condition or its opposite; the opposite includes the rows where the value is missing. */
export function signed(test: Test, negated: boolean): Predicate {
  if (!negated) return test.holds
  return test.total ? sql<boolean>`not ${test.holds}` : sql<boolean>`(${test.holds}) is not true`
}

/** All of the conditions; none holds for everybody. */
export function allOf(parts: readonly Predicate[]): Predicate {
  return joined(parts, ' and ', always)
}

/** Any of the conditions; none holds for nobody. */
export function anyOf(parts: readonly Predicate[]): Predicate {
  return joined(parts, ' or ', never)
}

function joined(parts: readonly Predicate[], by: string, none: Test): Predicate {
  const [first] = parts
  if (first === undefined) return none.holds
  if (parts.length === 1) return first
  return sql<boolean>`(${sql.join(parts, sql.raw(by))})`
}
