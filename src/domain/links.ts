import type { CompiledEmail } from '../content/compile.ts'

/**
 * The targets by position that everybody gets; null where one holds variables. A campaign's are kept once, with its
 * send, because a row for each email would cost more than anything else that is written of it.
 */
export function sharedTargets({ links }: Pick<CompiledEmail, 'links'>): (string | null)[] {
  const targets: (string | null)[] = []
  for (const { position, url } of links) targets[position] = url
  return Array.from(targets, (target) => target ?? null)
}

/** The targets that an email has to keep itself: none, when all of them are its campaign's. */
export function ownTargets(
  shared: readonly (string | null)[],
  targets: readonly string[],
): readonly string[] {
  const isShared =
    shared.length === targets.length && shared.every((target, index) => target === targets[index])
  return isShared ? [] : targets
}
