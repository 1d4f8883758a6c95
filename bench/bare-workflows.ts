import { proxyActivities, sleep } from '@temporalio/workflow'

/** The bare versions of what the engine does: the same server, the same SDK, nothing else. */
const { touch } = proxyActivities<{ touch(): Promise<void> }>({ startToCloseTimeout: '1 minute' })

export async function bareActivities(count: number): Promise<void> {
  for (let done = 0; done < count; done++) await touch()
}

export async function bareTimer(until: number): Promise<void> {
  await sleep(Math.max(1, until - Date.now()))
  await touch()
}
