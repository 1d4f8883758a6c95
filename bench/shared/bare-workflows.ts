import { proxyActivities, sleep } from '@temporalio/workflow'

/** Bare versions of what the engine does, on the same server and SDK and without anything else. */
const { touch } = proxyActivities<{ touch(): Promise<void> }>({ startToCloseTimeout: '1 minute' })

export async function bareActivities(count: number): Promise<void> {
  for (let done = 0; done < count; done++) await touch()
}

export async function bareTimer(until: number): Promise<void> {
  await sleep(Math.max(1, until - Date.now()))
  await touch()
}
