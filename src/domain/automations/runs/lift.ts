import type { Lift } from '../../../../schema/workflow-statistics.ts'

/** The number of people with a variant, and how many of them converted. */
export type Arm = { people: number; converted: number }

/** The z-score of a two-sided 95 % confidence interval. */
const Z = 1.96
/**
 * With fewer people or conversions, the logarithm of the ratio is far from normal and the interval would be too narrow.
 */
const FEWEST_PEOPLE = 100
const FEWEST_CONVERSIONS = 10

/**
 * Returns the lift of a variant over the holdout: p₁ / p₀ − 1, with p = converted / people. The interval is the 95 %
 * confidence interval of the ratio of two independent proportions on the log scale (Katz), with c of n converted:
 * exp(ln(p₁ / p₀) ± 1.96 · √(1/c₁ − 1/n₁ + 1/c₀ − 1/n₀)) − 1.
 * The verdict is `TOO_FEW`, without lift or interval, if either side has fewer than 100 people or 10 conversions.
 */
export function liftOf(variant: Arm, holdout: Arm): Lift {
  const few = [variant, holdout].some(
    ({ people, converted }) => people < FEWEST_PEOPLE || converted < FEWEST_CONVERSIONS,
  )
  if (few) {
    const note = `Too few people to compare: the variant and the holdout need ${FEWEST_PEOPLE} people and ${FEWEST_CONVERSIONS} conversions each.`
    return { verdict: 'TOO_FEW', lift: null, interval: null, note }
  }
  const ratio = variant.converted / variant.people / (holdout.converted / holdout.people)
  const spread =
    Z *
    Math.sqrt([variant, holdout].reduce((sum, { people, converted }) => sum + 1 / converted - 1 / people, 0))
  const low = ratio * Math.exp(-spread) - 1
  const high = ratio * Math.exp(spread) - 1
  const verdict = low > 0 ? 'HIGHER' : high < 0 ? 'LOWER' : 'NO_DIFFERENCE_SEEN'
  return {
    verdict,
    lift: rounded(ratio - 1),
    interval: { low: rounded(low), high: rounded(high) },
    note: NOTES[verdict],
  }
}

const NOTES = {
  HIGHER: 'A larger share of people converts than in the holdout; this is unlikely to be chance.',
  LOWER: 'A smaller share of people converts than in the holdout; this is unlikely to be chance.',
  NO_DIFFERENCE_SEEN: 'The interval contains 0, so the difference may be chance.',
} as const

/** Returns part / whole, rounded to four decimals, or null if the whole is 0. */
export function shareOf(part: number, whole: number): number | null {
  return whole === 0 ? null : rounded(part / whole)
}

function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000
}
