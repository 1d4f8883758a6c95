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

/** Whether nobody's links lead anywhere else, so that no email has to keep them itself. */
export function areShared({ links, targets }: Pick<CompiledEmail, 'links' | 'targets'>): boolean {
  return links.every(({ url }) => url !== null) && targets.every(({ repeat }) => repeat === undefined)
}
