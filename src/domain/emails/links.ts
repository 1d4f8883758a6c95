import type { CompiledEmail } from '../../content/compile.ts'

/**
 * Returns the link targets by position that are equal for all recipients; null where a link contains variables. A
 * campaign stores them once with its send, because a row per email would cost more than the rest of the email.
 */
export function sharedTargets({ links }: Pick<CompiledEmail, 'links'>): (string | null)[] {
  const targets: (string | null)[] = []
  for (const { position, url } of links) targets[position] = url
  return Array.from(targets, (target) => target ?? null)
}

/** Whether all links are the same for every recipient, so that no email needs its own link rows. */
export function areShared({ links, targets }: Pick<CompiledEmail, 'links' | 'targets'>): boolean {
  return links.every(({ url }) => url !== null) && targets.every(({ repeat }) => repeat === undefined)
}
