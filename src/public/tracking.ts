import { readToken } from '../delivery/tracking-token.ts'
import { newId } from '../ids.ts'
import type { Services } from '../services.ts'
import { createLinkTargets } from './link-targets.ts'
import { createVisitWriter, type VisitCounts } from './visit-writer.ts'
import { isMachine, keptAgent, type Reader } from './visitors.ts'

/** Tracks opens and clicks in one process; src/domain/emails/visits.ts processes them. */
export type Tracking = {
  /** Records an open; does nothing when the token is not valid. */
  open(token: string, reader: Reader): Promise<void>
  /** Records a click and returns the link's target, or null when the token is not valid. */
  follow(token: string, reader: Reader): Promise<string | null>
  counts(): VisitCounts
  /** Writes the visits that are still in memory; nothing may be recorded afterwards. */
  stop(): Promise<void>
}

/**
 * Creates the tracking of a process. It answers readers without delay: the token identifies the email, so an open needs
 * no query and a click only the one for its target. Visits are written in batches.
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
