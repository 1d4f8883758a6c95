import { Context } from '@temporalio/activity'

import { Failure } from '../../src/catalogue/failure.ts'
import { crossOrganization, unitOfWork } from '../../src/catalogue/unit-of-work.ts'
import { noteTimedGoals } from '../../src/domain/automations/goals/goal-filters.ts'
import {
  noteTimedConditions,
  organizationsWithConditions,
} from '../../src/domain/automations/runs/conditions.ts'
import { noteMisplaced, segmentsOfTime, watchingOrganizations } from '../../src/domain/segments/recheck.ts'
import { decodeId, encodeId, NIL_ID } from '../../src/ids.ts'
import type { Services } from '../../src/services.ts'
import type { SegmentActivities, SegmentRefreshed } from '../../temporal/contract.ts'
import { SEGMENT_ACTOR } from '../segment-watch.ts'
import { asActivityError } from './errors.ts'

/** The database side of SegmentRefresh. */
export function createSegmentActivities(services: Services): SegmentActivities {
  async function refresh(): Promise<SegmentRefreshed> {
    const { heartbeatDetails } = Context.current().info
    const done = typeof heartbeatDetails === 'string' ? decodeId('org', heartbeatDetails) : ''
    const em = crossOrganization(services)
    const found = [...(await watchingOrganizations(em)), ...(await organizationsWithConditions(em))]
    const all = [...new Set(found)].toSorted()
    const left = all.filter((id) => id > done)
    let segments = 0
    let previous = done
    for (const organizationId of left) {
      segments += await tryRefresh(services, organizationId, () => beat(previous))
      previous = organizationId
    }
    return { organizations: left.length, segments }
  }

  return {
    refreshSegments: () =>
      refresh().catch((error: unknown) => {
        throw asActivityError(services, error)
      }),
  }
}

/** Says that it lives, and after which organization another attempt would go on; stops where the worker stops. */
function beat(organizationId: string): void {
  const { cancellationSignal, heartbeat } = Context.current()
  heartbeat(organizationId === '' ? undefined : encodeId('org', organizationId))
  cancellationSignal.throwIfAborted()
}

/** Refreshes an organization. A failure is logged and tried again in the next round; other organizations go on. */
async function tryRefresh(
  services: Services,
  organizationId: string,
  afterPage: () => void,
): Promise<number> {
  try {
    return await refreshOrganization(services, organizationId, afterPage)
  } catch (error) {
    Context.current().cancellationSignal.throwIfAborted()
    services.log.warn({ err: error, organizationId }, 'segments that time changes could not be compared')
    return 0
  }
}

async function refreshOrganization(
  services: Services,
  organizationId: string,
  afterPage: () => void,
): Promise<number> {
  const scope = { organizationId, actor: SEGMENT_ACTOR }
  const segments = await unitOfWork(services, scope, segmentsOfTime, { readOnly: true })
  await unitOfWork(services, scope, noteTimedConditions)
  await unitOfWork(services, scope, noteTimedGoals)
  for (const { id } of segments) {
    let page: string | null = NIL_ID
    while (page !== null) {
      const after: string = page
      page = await unitOfWork(services, scope, (call) => noteMisplaced(call, id, after)).catch(stopAtMissing)
      afterPage()
    }
  }
  return segments.length
}

/** A segment whose filters name what is gone keeps its members until somebody repairs it. */
function stopAtMissing(error: unknown): null {
  if (error instanceof Failure) return null
  throw error
}
