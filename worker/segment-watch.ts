import { Failure } from '../src/catalogue/failure.ts'
import { crossOrganization, unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { applySegmentChanges, organizationsWithChanges } from '../src/domain/segments/changes.ts'
import { claimRecheck, finishRecheck, noteMisplaced, type Recheck } from '../src/domain/segments/recheck.ts'
import { NIL_ID } from '../src/ids.ts'
import { describeFault } from '../src/log.ts'
import type { Services } from '../src/services.ts'
import { startRounds, takeEach } from './rounds.ts'

const POLL_MS = 500
/** The actor of changes by segments, as it appears in a subscriber's history. */
export const SEGMENT_ACTOR = { kind: 'system' as const, id: 'segments', name: 'segments' }

/** Checks twice a second for people who may have entered or left a watched segment; needs no Temporal. */
export function startSegmentWatch(services: Services): { stop(): Promise<void> } {
  return startRounds(services, watchSegments, {
    pollMs: POLL_MS,
    complaint: 'the segments could not be looked at',
  })
}

/**
 * Does one round: a recheck that is due, then one batch of changes of every organization. Returns how many changes it
 * took.
 */
export async function watchSegments(services: Services): Promise<number> {
  const em = crossOrganization(services)
  const recheck = await claimRecheck(em)
  if (recheck) await compare(services, recheck)
  const changed = await organizationsWithChanges(em)
  return await takeEach(services, changed, 'changes of segments will be looked at again', (organizationId) =>
    unitOfWork(services, { organizationId, actor: SEGMENT_ACTOR }, applySegmentChanges),
  )
}

async function compare(services: Services, recheck: Recheck): Promise<void> {
  const { organizationId, segmentId } = recheck
  const scope = { organizationId, actor: SEGMENT_ACTOR }
  try {
    let page: string | null = NIL_ID
    while (page !== null) {
      const after: string = page
      page = await unitOfWork(services, scope, (call) => noteMisplaced(call, segmentId, after))
    }
    await unitOfWork(services, scope, (call) => finishRecheck(call, recheck))
  } catch (error) {
    // The recheck is claimed again when its lease ends. Filters that name something deleted fail until somebody repairs
    // them.
    if (error instanceof Failure) return
    services.log.warn({ fault: describeFault(error) }, 'a segment could not be compared with its members')
  }
}
