import { setTimeout as sleep } from 'node:timers/promises'

import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { describeFault } from '../log.ts'
import type { Services } from '../services.ts'
import { type LaneName, releaseClaims } from './claims.ts'
import { createConversations } from './conversation.ts'
import { createIntake, type Ready } from './intake.ts'
import { createLaneRate } from './rate.ts'
import { isPlain, runTick, type TickItem } from './record.ts'
import type { Renderer } from './render.ts'
import type { MailProvider } from './smtp-provider.ts'
import { createWaiter } from './waiter.ts'

/** How a lane works; tests shorten the times. */
export type LaneOptions = {
  /** Emails under way at once, and so connections. */
  connections: number
  /** Ticks under way at once. Those of one batch of a campaign wait for each other. */
  ticks: number
  /** The share of the connections that may still speak when the next tick begins, unless it would begin too late. */
  fewShare: number
  /** How long a claim or a submission is ours. */
  leaseMs: number
  /** This much before the end of its lease, an email is given up unless its end was written. */
  marginMs: number
  pollMs: number
  backOff?: (tries: number) => number
}

/** One lane whose two ticks overlap, on few connections; `startLanes` says what each lane has in its place. */
export const LANE_DEFAULTS: LaneOptions = {
  connections: 32,
  ticks: 2,
  fewShare: 1 / 2,
  leaseMs: 60_000,
  marginMs: 10_000,
  pollMs: 500,
}

/** A lane at work. */
export type Lane = {
  /** There may be something to claim. */
  ring(): void
  /** Finishes what is under way within the grace, puts back what was only claimed, and ends. */
  stop(graceMs: number): Promise<void>
}

const TICK_MS = 5
const GATHER_MS = 20
/** Emails in memory for each connection: a claim costs a round trip and a commit, however many it brings. */
const CLAIMED_AHEAD = 4
const TROUBLE_MS = 250

/** Starts moving the email of one lane: claim, render, mark, send, record. */
export function startLane(
  services: Services,
  name: LaneName,
  parts: { renderer: Renderer; provider: MailProvider },
  options: LaneOptions = LANE_DEFAULTS,
): Lane {
  const { leaseMs, marginMs, pollMs } = options
  const fork = () => crossOrganization(services)
  const rate = createLaneRate(fork, name, services.config.laneRates[name])
  const slots = slotsOf(options.connections, services.config.laneRates[name])
  const waiter = createWaiter()
  const halt = new AbortController()
  const conversations = createConversations(services, name, parts.provider, rate, options.backOff)
  const intake = createIntake(services, name, parts.renderer, waiter, {
    ahead: slots * (rate.isLimited ? 2 : CLAIMED_AHEAD),
    leaseMs,
    pollMs,
    halt: halt.signal,
    restMs: () => conversations.restMs(),
  })
  const recording: TickItem[] = []
  const sending = new Set<Promise<void>>()
  /** Emails that are marked or may be, and are not recorded: never more than slots, so that a crash repeats no more. */
  let occupied = 0
  let tickedAt = 0
  /** After its grace, what cannot be recorded at once is left to the leases. */
  let isOver = false

  /** Each tick records what finished and marks as many as have room. Of two loops, one works while the other waits. */
  async function work(): Promise<void> {
    while (!halt.signal.aborted || recording.length > 0 || sending.size > 0) {
      if (!hasWork()) {
        await waiter.until(() => hasWork() || (halt.signal.aborted && sending.size === 0), pollMs)
        continue
      }
      await gather()
      if (!hasWork()) continue
      tickedAt = performance.now()
      // The statement that marks the next ones frees the places of these.
      const freed = recording.filter(isPlain).length
      const next = canMark() ? intake.take(slots - occupied + freed) : []
      const done = recording.splice(0)
      const more = Math.max(0, next.length - freed)
      occupied += more
      // Apart from the addition, which would take the number from before the wait: the other loop changes it meanwhile.
      const kept = await tickOnce(next, done)
      occupied += kept - done.length - more
    }
  }

  function hasWork(): boolean {
    return recording.length > 0 || canMark()
  }

  /** While many connections speak, what they end gathers: a tick for one email costs much of what one for thirty does. */
  async function gather(): Promise<void> {
    const before = tickedAt
    const early = before + TICK_MS - performance.now()
    if (early > 0) await sleep(early)
    const isFew = () => halt.signal.aborted || sending.size <= slots * options.fewShare
    await waiter.until(isFew, before + GATHER_MS - performance.now())
  }

  /** Whether there is something to mark, and room when what has finished by now is recorded. */
  function canMark(): boolean {
    const hasRoom = occupied - recording.length < slots
    return !halt.signal.aborted && intake.size() > 0 && hasRoom && conversations.restMs() === 0
  }

  /** Answers how many of these are marked, or still to be recorded, afterwards. */
  async function tickOnce(next: readonly Ready[], done: readonly TickItem[]): Promise<number> {
    const deadline = performance.now() + leaseMs - marginMs
    const result = await runTick(services, [...done, ...next.map(candidateOf)], leaseMs)
    const marked = new Set(result.marked)
    for (const entry of next) if (marked.has(entry.mail.id)) start(entry, deadline)
    const left = result.failed.filter((item) => 'outcome' in item)
    const rejected = idsOfCandidates(result.rejected)
    for (const { mail, content } of next) {
      // Without its links it can be marked, and then recorded as failed.
      if (rejected.has(mail.id) && typeof content !== 'string') intake.add({ mail, content: 'RENDER_FAULT' })
    }
    if (result.failed.length > 0 && !isOver) {
      const failed = idsOfCandidates(result.failed)
      intake.putBack(next.filter(({ mail }) => failed.has(mail.id)))
      recording.unshift(...left)
      await sleep(TROUBLE_MS)
    }
    return left.length + next.filter(({ mail }) => marked.has(mail.id)).length
  }

  function start(entry: Ready, deadline: number): void {
    const task = conversations.hold(entry, deadline).then((outcome) => {
      sending.delete(task)
      recording.push({ outcome, runId: entry.mail.runId })
      waiter.wake()
    })
    sending.add(task)
  }

  async function forever(loop: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await loop()
      } catch (error) {
        if (isOver) return
        services.log.error({ fault: describeFault(error), lane: name }, 'a lane stumbled')
        await sleep(TROUBLE_MS)
      }
    }
  }

  const renewal = setInterval(() => {
    conversations
      .renew(leaseMs)
      .catch((error: unknown) =>
        services.log.warn({ fault: describeFault(error), lane: name }, 'leases could not be renewed'),
      )
  }, leaseMs / 3)
  const works = Array.from({ length: options.ticks }, () => forever(work))
  const loops = Promise.all([forever(() => intake.run()), ...works])

  return {
    ring: () => intake.ring(),
    async stop(graceMs) {
      halt.abort()
      waiter.wake()
      await Promise.race([loops, sleep(graceMs, undefined, { ref: false })])
      isOver = true
      clearInterval(renewal)
      await releaseClaims(
        fork(),
        intake.take(intake.size()).map(({ mail }) => mail),
      )
    },
  }
}

function candidateOf({ mail, content }: Ready): TickItem {
  const { id, organizationId, attempt, batchId, subscriberId, recipient, runId } = mail
  const targets = typeof content === 'string' ? [] : content.targets
  return { candidate: { id, organizationId, attempt, batchId, subscriberId, recipient, targets }, runId }
}

function idsOfCandidates(items: readonly TickItem[]): Set<string> {
  return new Set(items.flatMap((item) => ('candidate' in item ? [item.candidate.id] : [])))
}

/** Emails marked at once: with a rate as many as leave within half a second, because who withdraws one meanwhile is late. */
function slotsOf(connections: number, rate: number): number {
  return rate === 0 ? connections : Math.max(1, Math.min(connections, Math.ceil(rate / 2)))
}
