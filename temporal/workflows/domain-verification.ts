import {
  allHandlersFinished,
  ApplicationFailure,
  condition,
  continueAsNew,
  defineSignal,
  defineUpdate,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'

import {
  CHECK_NOW,
  type DomainActivities,
  type DomainChecked,
  type DomainPace,
  type DomainVerificationInput,
  type DomainVerificationResult,
  NUDGE,
} from '../contract.ts'
import { domainDetails, domainWaitMinutes } from '../timer.ts'

const { checkDomain } = proxyActivities<DomainActivities>({
  startToCloseTimeout: '30 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '5 minutes' },
})

const nudge = defineSignal(NUDGE)
const checkNow = defineUpdate<DomainChecked>(CHECK_NOW)

/**
 * Checks the DNS records of one domain: several times soon after a user asked, then hourly until they are right or the
 * time for that is over, then daily. The database decides the pace. A request to check now restarts the frequent
 * checks.
 */
export async function DomainVerification(input: DomainVerificationInput): Promise<DomainVerificationResult> {
  const request = { organizationId: input.organizationId, domainId: input.domainId }
  let polls = input.polls ?? 0
  let pace: DomainPace = input.pace ?? 'POLL'
  let begun = 0
  let finished = 0
  let asked = false
  let checked: DomainChecked = { status: 'PENDING', pace, records: [] }
  setHandler(nudge, () => {
    asked = true
  })
  setHandler(checkNow, async () => {
    const enough = begun + 1
    asked = true
    await condition(() => finished >= enough)
    return checked
  })

  for (;;) {
    const minutes = domainWaitMinutes(pace, polls)
    const summary = `${checked.status}: next look in ${minutes} min`
    await condition(() => asked, minutes * 60_000, { summary })
    polls = asked ? 0 : polls + 1
    const look = { summary: asked ? 'look now, as asked' : 'look at the records' }
    asked = false
    begun += 1
    checked = await checkDomain.executeWithOptions(look, [request])
    finished = begun
    pace = checked.pace
    setCurrentDetails(domainDetails(checked))
    if (pace === 'END') {
      // An update that arrives at the last moment still gets an answer.
      await condition(() => asked || allHandlersFinished())
      if (!asked) break
    }
    if (workflowInfo().continueAsNewSuggested) {
      // An update or signal that arrived during this check asks for another one, which must run before continue-as-new.
      await condition(() => asked || allHandlersFinished())
      if (!asked) await continueAsNew<typeof DomainVerification>({ ...request, polls, pace })
    }
  }
  if (checked.status === 'FAILED') {
    throw ApplicationFailure.nonRetryable('the records were not right in time', 'DomainFailed')
  }
  return { status: checked.status }
}
