import { readToken } from '../delivery/tracking-token.ts'
import { newId } from '../ids.ts'
import type { Services } from '../services.ts'
import { createLinkTargets } from './link-targets.ts'
import { createVisitWriter, type VisitCounts } from './visit-writer.ts'
import { isMachine, keptAgent, type Reader } from './visitors.ts'

/** Opens and clicks of one process; what they come to is in src/domain/visits.ts. */
export type Tracking = {
  /** Counts an opened email; a token that is not one of ours counts nothing. */
  open(token: string, reader: Reader): Promise<void>
  /** Where a followed link leads, or null when the token is not one of ours. */
  follow(token: string, reader: Reader): Promise<string | null>
  counts(): VisitCounts
  /** Writes what is still in memory; nothing may come after. */
  stop(): Promise<void>
}

/**
 * Answers readers at once: the token says whose email it is, so that an open asks the database nothing and a click only
 * where it leads. What they did is written in batches.
 */
export function createTracking(services: Services): Tracking {
  const { secret } = services.config
  const writer = createVisitWriter(services)
  const findTarget = createLinkTargets(services)

  function visit(
    email: { organizationId: string; messageId: string },
    reader: Reader,
    { position, url }: { position: number | null; url: string | null },
  ): Promise<void> {
    const { organizationId, messageId } = email
    return writer.add({
      id: newId(),
      organizationId,
      messageId,
      position,
      url,
      isMachine: isMachine(reader),
      userAgent: keptAgent(reader),
      at: performance.now(),
    })
  }

  return {
    async open(token, reader) {
      const email = readToken(secret, 'open', token)
      if (email) await visit(email, reader, { position: null, url: null })
    },
    async follow(token, reader) {
      const link = readToken(secret, 'click', token)
      if (!link) return null
      const url = await findTarget(link)
      if (url !== null) await visit(link, reader, { position: link.position, url })
      return url
    },
    counts: () => writer.counts(),
    stop: () => writer.stop(),
  }
}
