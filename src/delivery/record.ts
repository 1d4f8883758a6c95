import { crossOrganization, unitOfWork } from '../catalogue/unit-of-work.ts'
import type { Actor, Call } from '../catalogue/tool.ts'
import { nudgeRuns } from '../domain/automations/nudge.ts'
import { type NewEvent, recordEvents } from '../domain/events.ts'
import { describeFault } from '../log.ts'
import type { Services } from '../services.ts'
import { type Candidate, type Outcome, tick, type Ticked } from './tick.ts'

const DELIVERY: Actor = { kind: 'system', id: 'delivery', name: 'Delivery' }

/** Which event a verdict is. */
const EVENTS: Record<string, string> = {
  SENT: 'EMAIL_SENT',
  BOUNCED: 'EMAIL_BOUNCED',
  DELAYED: 'EMAIL_DELIVERY_DELAYED',
}

/** An item of a tick; `runId` says that an automation waits for its outcome. */
export type TickItem =
  | { outcome: Outcome; runId: string | null }
  | { candidate: Candidate; runId: string | null }

/** What became of the items of one part of a tick: `failed` ones are as they were and belong to the next tick. */
export type TickResult = { done: Ticked[]; failed: TickItem[] }

/**
 * Runs one tick. Plain acceptances and markings of all organizations go together in one statement; what automations
 * may hear of goes by organization, in a unit of work that also records the events and nudges the runs.
 */
export async function runTick(
  services: Services,
  items: readonly TickItem[],
  leaseMs: number,
): Promise<TickResult> {
  const plain = items.filter(isPlain)
  const first = await attempt(services, plain, () =>
    tick(crossOrganization(services), outcomesOf(plain), candidatesOf(plain), { leaseMs, attended: false }),
  )
  const known = new Set([...first.done.map(({ id }) => id), ...first.failed.map(idOf)])
  // An acceptance that is missing was heard by an automation, or is no longer ours: attending tells.
  const unsettled = plain.filter((item) => 'outcome' in item && !known.has(idOf(item)))
  const attended = [...items.filter((item) => !isPlain(item)), ...unsettled]
  const rest = await Promise.all(
    [...byOrganization(attended)].map(([organizationId, own]) =>
      attempt(services, own, () => attend(services, organizationId, own, leaseMs)),
    ),
  )
  const results = [first, ...rest]
  return { done: results.flatMap(({ done }) => done), failed: results.flatMap(({ failed }) => failed) }
}

async function attempt(
  services: Services,
  items: readonly TickItem[],
  work: () => Promise<Ticked[]>,
): Promise<TickResult> {
  if (items.length === 0) return { done: [], failed: [] }
  try {
    return { done: await work(), failed: [] }
  } catch (error) {
    services.log.error(
      { fault: describeFault(error), emails: items.length },
      'outcomes could not be recorded yet',
    )
    return { done: [], failed: [...items] }
  }
}

async function attend(
  services: Services,
  organizationId: string,
  items: readonly TickItem[],
  leaseMs: number,
): Promise<Ticked[]> {
  return await unitOfWork(services, { organizationId, actor: DELIVERY }, async (call) => {
    const done = await tick(call.em, outcomesOf(items), candidatesOf(items), { leaseMs, attended: true })
    await announce(call, done)
    return done
  })
}

async function announce(call: Call, done: readonly Ticked[]): Promise<void> {
  const events = done.flatMap(({ part, verdict, subscriberId, data }): NewEvent[] => {
    const type = part === 'outcome' ? EVENTS[verdict] : undefined
    return type && subscriberId ? [{ type, subscriberId, data }] : []
  })
  if (events.length > 0) await recordEvents(call, events)
  const runIds = done.flatMap(({ runId, verdict }) =>
    runId && ['SENT', 'BOUNCED', 'FAILED', 'SKIPPED'].includes(verdict) ? [runId] : [],
  )
  await nudgeRuns(call.em, call.organization.id, runIds)
}

function isPlain(item: TickItem): boolean {
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
