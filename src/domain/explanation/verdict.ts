import type { Explanation, Reason, VerdictOutcome } from '../../../schema/explanation.ts'

const WORDS: Readonly<Record<VerdictOutcome, string>> = {
  GOT_IT: 'got',
  DID_NOT_GET_IT: 'did not get',
  UNDER_WAY: 'is on the way to getting',
  WOULD_GET_IT: 'would get',
  WOULD_NOT_GET_IT: 'would not get',
}

/** The kind of reason that the answer quotes: the last one that happened, and the last one that holds now. */
const QUOTED: Readonly<Record<VerdictOutcome, Reason['outcome'] | null>> = {
  GOT_IT: null,
  DID_NOT_GET_IT: 'AGAINST',
  UNDER_WAY: 'WAITING',
  WOULD_GET_IT: 'WAITING',
  WOULD_NOT_GET_IT: 'AGAINST',
}

/** Returns an explanation with its answer in words; `what` is a phrase such as "the campaign “Spring”". */
export function verdictOf(
  outcome: VerdictOutcome,
  who: string,
  what: string,
  reasons: Reason[],
): Explanation {
  const deciding = reasons.filter((reason) => reason.outcome === QUOTED[outcome])
  const quoted = [deciding.findLast(({ at }) => at !== null), deciding.findLast(({ at }) => at === null)]
  const sentences = [`${who} ${WORDS[outcome]} ${what}.`, ...quoted.map((reason) => reason?.message ?? '')]
  return { reasons, verdict: { outcome, message: sentences.filter((each) => each !== '').join(' ') } }
}

/** Sorts past reasons by time and puts current ones after them; reasons of the same time keep their order. */
export function inOrder(reasons: readonly Reason[]): Reason[] {
  const happened = reasons.filter(({ at }) => at !== null)
  const now = reasons.filter(({ at }) => at === null)
  return [...happened.toSorted((one, other) => Date.parse(one.at ?? '') - Date.parse(other.at ?? '')), ...now]
}
