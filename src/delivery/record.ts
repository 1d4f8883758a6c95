import { isOwnFault } from '../catalogue/database-error.ts'
import type { Call } from '../catalogue/tool.ts'
import { crossOrganization, unitOfWork } from '../catalogue/unit-of-work.ts'
import { nudgeRuns } from '../domain/automations/runs/nudge.ts'
import { type NewEvent, recordEvents } from '../domain/events.ts'
import { describeFault } from '../log.ts'
import type { Services } from '../services.ts'
import { DELIVERY, giveUp, type Held } from './give-up.ts'
import {
  type Candidate,
  markCandidates,
  type Outcome,
  type Recorded,
  recordOutcomes,
  tick,
  type Withheld,
} from './tick.ts'

/** The event type of each verdict that has one. */
const EVENTS: Record<string, string> = {
  SENT: 'EMAIL_SENT',
  BOUNCED: 'EMAIL_BOUNCED',
  DELAYED: 'EMAIL_DELIVERY_DELAYED',
}

/** An item of a tick. `runId` is the automation run that waits for its outcome, or null. */
export type TickItem =
  | { outcome: Outcome; runId: string | null }
  | { candidate: Candidate; runId: string | null }

/**
 * The result of a tick: `marked` are the ids of marked candidates, `failed` are items that are unchanged and belong to
 * the next tick, `rejected` are candidates whose links the database does not accept. Emails of which it accepts nothing
 * are already ended.
 */
export type TickResult = { marked: string[]; failed: TickItem[]; rejected: TickItem[] }

/** `left` are acceptances whose row is gone or that an automation may be listening for. */
type Attempted = TickResult & { left: TickItem[] }
type Work = (items: readonly TickItem[]) => Promise<Pick<Attempted, 'marked' | 'left'>>

/**
 * Runs one tick. Plain acceptances and candidates of all organizations go together in one statement. Items that
 * automations may react to go by organization, in a unit of work that also records the events and nudges the runs.
 */
export async function runTick(
  services: Services,
  items: readonly TickItem[],
  leaseMs: number,
): Promise<TickResult> {
  const first = await attempt(services, items.filter(isPlain), (some) => tickPlain(services, some, leaseMs))
  const attended = [...items.filter((item) => !isPlain(item)), ...first.left]
  const rest = await Promise.all(
    [...byOrganization(attended)].map(([organizationId, own]) =>
      attempt(services, own, (some) => attend(services, organizationId, some, leaseMs)),
    ),
  )
  const result = joined([first, ...rest])
  if (result.rejected.length === 0) return result
  const isLinked = (item: TickItem) => 'candidate' in item && item.candidate.targets.length > 0
  const settled = await Promise.all(
    result.rejected.map(async (item) => {
      if ('outcome' in item) return await recordBare(services, item)
      return isLinked(item) ? joined([]) : await end(services, item, item.candidate, 'MARK_REJECTED')
    }),
  )
  return joined([{ ...result, rejected: result.rejected.filter(isLinked) }, ...settled])
}

/** Processes items together. When the database rejects them, halves them until the rejected one stands alone. */
async function attempt(services: Services, items: readonly TickItem[], work: Work): Promise<Attempted> {
  if (items.length === 0) return joined([])
  try {
    return { ...(await work(items)), failed: [], rejected: [] }
  } catch (error) {
    const isRejected = isOwnFault(error)
    if (isRejected && items.length > 1) {
      const middle = items.length >> 1
      const halves = [items.slice(0, middle), items.slice(middle)]
      return joined(await Promise.all(halves.map((half) => attempt(services, half, work))))
    }
    services.log.error(
      { fault: describeFault(error), emails: items.map(idOf) },
      isRejected ? 'an email was rejected by the database' : 'outcomes could not be recorded yet',
    )
    return joined([
      { marked: [], failed: isRejected ? [] : [...items], rejected: isRejected ? [...items] : [] },
    ])
  }
}

/**
 * Records an outcome that the database rejected, now without its texts and its event, so that an email that was sent is
 * not sent again. When that is rejected too, records it as failed.
 */
async function recordBare(
  services: Services,
  item: Extract<TickItem, { outcome: Outcome }>,
): Promise<Attempted> {
  const { organizationId } = item.outcome
  const bare: Outcome = { ...item.outcome, subject: null, response: null, data: {} }
  const lost: Outcome = { ...bare, kind: 'failed', category: null, reason: 'OUTCOME_REJECTED' }
  for (const outcome of [bare, lost]) {
    const result = await attempt(services, [{ ...item, outcome }], () =>
      unitOfWork(services, { organizationId, actor: DELIVERY }, async (call) => {
        await nudge(call, await recordOutcomes(call.em, [outcome]))
        return { marked: [], left: [] }
      }),
    )
    if (result.rejected.length === 0) return { ...result, failed: result.failed.length > 0 ? [item] : [] }
  }
  return await end(services, item, item.outcome, 'OUTCOME_REJECTED')
}

/** Gives an email up. Its item goes to the next tick only when the database itself has trouble. */
async function end(services: Services, item: TickItem, email: Held, reason: string): Promise<Attempted> {
  try {
    await giveUp(services, email, reason)
    return joined([])
  } catch (error) {
    services.log.error(
      { fault: describeFault(error), email: email.id, reason },
      'an email could not be ended',
    )
    return joined([{ marked: [], failed: isOwnFault(error) ? [] : [item], rejected: [] }])
  }
}

function joined(results: readonly (TickResult & Partial<Attempted>)[]): Attempted {
  return {
    marked: results.flatMap(({ marked }) => marked),
    left: results.flatMap(({ left }) => left ?? []),
    failed: results.flatMap(({ failed }) => failed),
    rejected: results.flatMap(({ rejected }) => rejected),
  }
}

async function tickPlain(services: Services, items: readonly TickItem[], leaseMs: number): ReturnType<Work> {
  const candidates = candidatesOf(items)
  const { left, withheld } = await tick(crossOrganization(services), outcomesOf(items), candidates, leaseMs)
  const gone = new Set(left)
  return {
    marked: markedOf(candidates, withheld),
    left: gone.size === 0 ? [] : items.filter((item) => 'outcome' in item && gone.has(item.outcome.id)),
  }
}

async function attend(
  services: Services,
  organizationId: string,
  items: readonly TickItem[],
  leaseMs: number,
): ReturnType<Work> {
  return await unitOfWork(services, { organizationId, actor: DELIVERY }, async (call) => {
    const recorded = await recordOutcomes(call.em, outcomesOf(items))
    const candidates = candidatesOf(items)
    const withheld = await markCandidates(call.em, candidates, leaseMs)
    const events = recorded.flatMap(({ verdict, subscriberId, data }): NewEvent[] => {
      const type = EVENTS[verdict]
      return type && subscriberId ? [{ type, subscriberId, data }] : []
    })
    if (events.length > 0) await recordEvents(call, events)
    await nudge(call, [...recorded, ...withheld])
    return { marked: markedOf(candidates, withheld), left: [] }
  })
}

function markedOf(candidates: readonly Candidate[], withheld: readonly Withheld[]): string[] {
  const without = new Set(withheld.map(({ id }) => id))
  return candidates.flatMap(({ id }) => (without.has(id) ? [] : [id]))
}

/** Wakes the automation runs that wait for these emails. */
async function nudge(call: Call, done: readonly (Recorded | Withheld)[]): Promise<void> {
  const runIds = done.flatMap(({ runId, verdict }) =>
    runId && ['SENT', 'BOUNCED', 'FAILED', 'SKIPPED'].includes(verdict) ? [runId] : [],
  )
  await nudgeRuns(call.em, call.organization.id, runIds)
}

/**
 * Returns whether an item can share one statement with all other plain items: no run waits for it, and an outcome is an
 * acceptance.
 */
export function isPlain(item: TickItem): boolean {
  return item.runId === null && (!('outcome' in item) || item.outcome.kind === 'sent')
}

function idOf(item: TickItem): string {
  return 'outcome' in item ? item.outcome.id : item.candidate.id
}

function outcomesOf(items: readonly TickItem[]): Outcome[] {
  return items.flatMap((item) => ('outcome' in item ? [item.outcome] : []))
}

function candidatesOf(items: readonly TickItem[]): Candidate[] {
  return items.flatMap((item) => ('candidate' in item ? [item.candidate] : []))
}

function byOrganization(items: readonly TickItem[]): Map<string, TickItem[]> {
  const groups = new Map<string, TickItem[]>()
  for (const item of items) {
    const { organizationId } = 'outcome' in item ? item.outcome : item.candidate
    groups.set(organizationId, [...(groups.get(organizationId) ?? []), item])
  }
  return groups
}
