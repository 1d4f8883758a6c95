import { seededRandom } from '../test/helpers/smtp-sink.ts'

/** Numbers and texts by name. */
export type Figures = Record<string, number | string>

/** A statement that must hold, and the observed value. */
export type Claim = { claim: string; holds: boolean; seen: string }

/** The injected faults, the observations and the claims of an experiment. */
export type Outcome = { injected: Figures; seen: Figures; claims: Claim[] }

/** `small` is for every test run; `full` is the size of the figures in docs/reliability.md. */
export type SizeName = 'small' | 'full'

/** The environment of an experiment. */
export type Lab = {
  /** The seed of `random`, from which all random choices come, so that a run can be repeated. */
  seed: number
  random: () => number
  /** Reports progress. */
  say(line: string): void
  /** Registers a clean-up that runs at the end, in reverse order, even if the experiment fails. */
  defer(close: () => Promise<unknown>): void
}

/** An outcome, and whether all its claims hold. */
export type Report = Outcome & {
  experiment: string
  title: string
  size: SizeName
  settings: Figures
  seed: number
  holds: boolean
}

/** A fault or an attack with its proof, in two sizes. */
export type Experiment = {
  id: string
  title: string
  run: (size: SizeName, options: { seed: number; say: (line: string) => void }) => Promise<Report>
}

/** Returns an experiment with the given id, title, sizes and function. */
export function defineExperiment<Size extends Figures>(given: {
  id: string
  title: string
  sizes: Record<SizeName, Size>
  run(lab: Lab, size: Size): Promise<Outcome>
}): Experiment {
  const { id, title } = given
  return {
    id,
    title,
    async run(size, { seed, say }) {
      const closing: (() => Promise<unknown>)[] = []
      const lab: Lab = { seed, random: seededRandom(seed), say, defer: (close) => closing.unshift(close) }
      try {
        const settings = given.sizes[size]
        const outcome = await given.run(lab, settings)
        const holds = outcome.claims.every((each) => each.holds)
        return { experiment: id, title, size, settings, seed, holds, ...outcome }
      } finally {
        for (const close of closing) await close()
      }
    },
  }
}

/** A long timeout, because the machine may be busy with other work. */
export const PATIENCE = { withinMs: 120_000 }

/** Claims that `seen` equals `expected`. */
export function is(claim: string, seen: number | string, expected: number | string): Claim {
  return { claim, holds: seen === expected, seen: `${seen}${seen === expected ? '' : `, not ${expected}`}` }
}

/** Claims that `seen` is at most `limit`. */
export function atMost(claim: string, seen: number, limit: number): Claim {
  return { claim, holds: seen <= limit, seen: `${seen} of at most ${limit}` }
}

/** Runs `work` `count` times concurrently and waits for all; then throws the first failure, if any. */
export async function atOnce(count: number, work: () => Promise<void>): Promise<void> {
  const results = await Promise.allSettled(Array.from({ length: count }, work))
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
