import type { Lift } from '../../../../schema/workflow-statistics.ts'

/** People of one variant, and how many of them converted. */
export type Arm = { people: number; converted: number }

/** The standard normal deviate of a two-sided interval of 95 %. */
const Z = 1.96
/** Below this the logarithm of a ratio is far from normal, and an interval would promise too much. */
const FEWEST_PEOPLE = 100
const FEWEST_CONVERSIONS = 10

/**
 * Lift of a variant over the holdout: p₁ / p₀ − 1, with p = converted / people. The interval is that of the ratio of two
 * independent shares on the scale of logarithms (Katz): exp(ln(p₁ / p₀) ± 1.96 · √(1/c₁ − 1/n₁ + 1/c₀ − 1/n₀)) − 1.
 * Where a variant has fewer than 100 people or 10 conversions, it says that they are too few.
 */
export function liftOf(variant: Arm, holdout: Arm): Lift {
  const few = [variant, holdout].some(
    ({ people, converted }) => people < FEWEST_PEOPLE || converted < FEWEST_CONVERSIONS,
  )
  if (few) {
    const note = `Too few people to say: it takes ${FEWEST_PEOPLE} people and ${FEWEST_CONVERSIONS} conversions in the variant and in the holdout.`
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
  HIGHER: 'More people convert than in the holdout; chance alone would hardly do that.',
  LOWER: 'Fewer people convert than in the holdout; chance alone would hardly do that.',
  NO_DIFFERENCE_SEEN: 'The interval holds 0: what is seen may be chance.',
} as const

/** A share, or null of nobody. */
export function shareOf(part: number, whole: number): number | null {
  return whole === 0 ? null : rounded(part / whole)
}

function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000
}
