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
import type { Outcome } from './tick.ts'
import { createWaiter } from './waiter.ts'

/** The settings of a lane; tests use shorter times. */
export type LaneOptions = {
  /** How many emails are sent at once, each over its own connection. */
  connections: number
  /** How many ticks run at once. Ticks that touch the same campaign batch wait for each other. */
  ticks: number
  /** A tick starts once at most this share of the connections is still sending, or after `GATHER_MS` at the latest. */
  fewShare: number
  /** How long a claim or a submission is leased to this process. */
  leaseMs: number
  /** An email is given up this long before its lease ends, unless its last byte was already written. */
  marginMs: number
  pollMs: number
  backOff?: (tries: number) => number
}

/** The defaults: few connections and two overlapping ticks. `startLanes` sets what each lane really uses. */
export const LANE_DEFAULTS: LaneOptions = {
  connections: 32,
  ticks: 2,
  fewShare: 1 / 2,
  leaseMs: 60_000,
  marginMs: 10_000,
  pollMs: 500,
}

/** A running lane. */
export type Lane = {
  /** How many emails ended in each way since the lane was started. */
  readonly ended: Readonly<Record<Outcome['kind'], number>>
  /** Wakes the lane because there may be new email to claim. */
  ring(): void
  /**
   * Stops the lane: finishes emails that are being sent within `graceMs` and puts back those that were only claimed.
   */
  stop(graceMs: number): Promise<void>
}

const TICK_MS = 5
const GATHER_MS = 20
/** Emails claimed ahead for each connection: a claim costs one round trip and one commit, whatever its size. */
const CLAIMED_AHEAD = 4
const TROUBLE_MS = 250

/** Starts to deliver the email of one lane: claim, render, mark, send, record. */
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
  const ended: Record<Outcome['kind'], number> = { sent: 0, soft: 0, hard: 0, failed: 0, back: 0 }
  const recording: TickItem[] = []
  const sending = new Set<Promise<void>>()
  /**
   * Emails that are or may be marked and are not recorded yet. Never more than `slots`, so that a crash repeats at most
   * that many.
   */
  let occupied = 0
  let tickedAt = 0
  /** True after the grace period: outcomes that cannot be recorded at once are then left to their leases. */
  let isOver = false

  /**
   * Runs ticks until the lane has halted and nothing is left to record. A tick records finished emails and marks new
   * ones. With two loops, one runs its tick while the other gathers.
   */
  async function work(): Promise<void> {
    while (!halt.signal.aborted || recording.length > 0 || sending.size > 0) {
      if (!hasWork()) {
        await waiter.until(() => hasWork() || (halt.signal.aborted && sending.size === 0), pollMs)
        continue
      }
      await gather()
      if (!hasWork()) continue
      tickedAt = performance.now()
      // The tick that marks the next emails also frees the slots of these.
      const freed = recording.filter(isPlain).length
      const next = canMark() ? intake.take(slots - occupied + freed) : []
      const done = recording.splice(0)
      const more = Math.max(0, next.length - freed)
      occupied += more
      // A separate statement: `occupied += await …` would use the value from before the wait, which the other loop
      // changes.
      const kept = await tickOnce(next, done)
      occupied += kept - done.length - more
    }
  }

  function hasWork(): boolean {
    return recording.length > 0 || canMark()
  }

  /**
   * Waits until few connections are still sending, so that one tick records many emails: a tick has a high fixed cost.
   */
  async function gather(): Promise<void> {
    const before = tickedAt
    const early = before + TICK_MS - performance.now()
    if (early > 0) await sleep(early)
    const isFew = () => halt.signal.aborted || sending.size <= slots * options.fewShare
    await waiter.until(isFew, before + GATHER_MS - performance.now())
  }

  /** Returns whether an email can be marked: one is ready, and a slot is free once the finished emails are recorded. */
  function canMark(): boolean {
    const hasRoom = occupied - recording.length < slots
    return !halt.signal.aborted && intake.size() > 0 && hasRoom && conversations.restMs() === 0
  }

  /** Runs one tick. Returns how many of these emails are marked, or still to be recorded, afterwards. */
  async function tickOnce(next: readonly Ready[], done: readonly TickItem[]): Promise<number> {
    const deadline = performance.now() + leaseMs - marginMs
    const result = await runTick(services, [...done, ...next.map(candidateOf)], leaseMs)
    const marked = new Set(result.marked)
    for (const entry of next) if (marked.has(entry.mail.id)) start(entry, deadline)
    const left = result.failed.filter((item) => 'outcome' in item)
    const rejected = idsOfCandidates(result.rejected)
    for (const { mail, content } of next) {
      // The database rejected its links. Without them it can be marked, and is then recorded as failed.
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
      ended[outcome.kind] += 1
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
    ended,
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

/**
 * Returns how many emails are marked at once. With a rate, no more than leave within half a second: once an email is
 * marked, it is too late to withdraw it.
 */
function slotsOf(connections: number, rate: number): number {
  return rate === 0 ? connections : Math.max(1, Math.min(connections, Math.ceil(rate / 2)))
}
