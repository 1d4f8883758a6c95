import { seededRandom } from '../test/helpers/smtp-sink.ts'

/** Numbers and texts by what they are called. */
export type Figures = Record<string, number | string>

/** A sentence that must hold, and what was seen of it. */
export type Claim = { claim: string; holds: boolean; seen: string }

/** What an experiment did, what it saw, and what must hold. */
export type Outcome = { injected: Figures; seen: Figures; claims: Claim[] }

/** Small enough for every run of the tests, or as large as the figures in docs/reliability.md. */
export type SizeName = 'small' | 'full'

/** What an experiment is given. */
export type Lab = {
  /** All chance comes from it, so that a run can be had again. */
  seed: number
  random: () => number
  /** Says how far it is. */
  say(line: string): void
  /** Closes something at the end, the latest first, however the experiment ends. */
  defer(close: () => Promise<unknown>): void
}

/** An outcome, and whether every claim of it holds. */
export type Report = Outcome & {
  experiment: string
  title: string
  size: SizeName
  settings: Figures
  seed: number
  holds: boolean
}

/** A fault or an attack with its proof, runnable at two sizes. */
export type Experiment = {
  id: string
  title: string
  run: (size: SizeName, options: { seed: number; say: (line: string) => void }) => Promise<Report>
}

/** Makes an experiment of what it is called, how large it is, and what it does. */
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

/** How long an experiment waits for what must come: it may share its machine with anything. */
export const PATIENCE = { withinMs: 120_000 }

/** It is exactly this. */
export function is(claim: string, seen: number | string, expected: number | string): Claim {
  return { claim, holds: seen === expected, seen: `${seen}${seen === expected ? '' : `, not ${expected}`}` }
}

/** It is no more than this. */
export function atMost(claim: string, seen: number, limit: number): Claim {
  return { claim, holds: seen <= limit, seen: `${seen} of at most ${limit}` }
}

/** Does the same many times at once, and ends when all of it has ended; then what failed first is thrown. */
export async function atOnce(count: number, work: () => Promise<void>): Promise<void> {
  const results = await Promise.allSettled(Array.from({ length: count }, work))
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
