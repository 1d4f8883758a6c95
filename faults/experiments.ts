import type { Experiment } from './experiment.ts'
import { killedSender } from './r1-killed-sender.ts'
import { lostAnswers } from './r2-lost-answers.ts'

/** Every experiment that `npm run faults` knows, in the order of docs/reliability.md. */
export const EXPERIMENTS: readonly Experiment[] = [killedSender, lostAnswers]
