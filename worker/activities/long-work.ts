import { Context } from '@temporalio/activity'

import type { WorkControl } from '../../src/domain/work-control.ts'
import type { Services } from '../../src/services.ts'
import { asActivityError } from './errors.ts'

const HEARTBEAT_MS = 1_000

/** Runs the work of an activity with a sign of life each second, without which another worker takes over. */
export async function longWork<Progress, Result>(
  services: Services,
  work: (control: WorkControl<Progress>) => Promise<Result>,
): Promise<Result> {
  const context = Context.current()
  let latest: Progress | undefined
  // Also in the middle of a slow page.
  const timer = setInterval(() => context.heartbeat(latest), HEARTBEAT_MS)
  try {
    return await work({
      report: (progress) => (latest = progress),
      isStopping: () => context.cancellationSignal.aborted,
    })
  } catch (error) {
    throw asActivityError(services, error)
  } finally {
    clearInterval(timer)
  }
}
