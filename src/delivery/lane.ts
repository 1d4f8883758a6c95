import { setTimeout as sleep } from 'node:timers/promises'

import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { describeFault } from '../log.ts'
import type { Services } from '../services.ts'
import {
  claimCampaignMails,
  claimMails,
  type ClaimedMail,
  type LaneName,
  releaseClaims,
  renewLeases,
} from './claims.ts'
import { isEnvelopeAddress, wireAddress } from './headers.ts'
import { acceptance, failureOutcome, unmadeReason, unsent } from './outcomes.ts'
import { createLaneRate } from './rate.ts'
import { isPlain, runTick, type TickItem } from './record.ts'
import type { PreparedMail, RenderedMail, Renderer } from './render.ts'
import { replyLine } from './replies.ts'
import { SmtpFailure } from './smtp-wire.ts'
import type { MailProvider } from './smtp-provider.ts'
import type { Outcome } from './tick.ts'

/** How a lane works; tests shorten the times. */
export type LaneOptions = {
  /** Emails under way at once, and so connections. */
  connections: number
  /** How long a claim or a submission is ours. */
  leaseMs: number
  /** This much before the end of its lease, an email is given up unless its end was written. */
  marginMs: number
  pollMs: number
  backOff?: (tries: number) => number
}

export const LANE_DEFAULTS: LaneOptions = { connections: 32, leaseMs: 60_000, marginMs: 10_000, pollMs: 500 }

/** A lane at work. */
export type Lane = {
  /** There may be something to claim. */
  ring(): void
  /** Finishes what is under way within the grace, puts back what was only claimed, and ends. */
  stop(graceMs: number): Promise<void>
}

/** A claimed email that may be marked; one that cannot be sent at all has a reason in place of its content. */
type Ready = { mail: ClaimedMail; content: PreparedMail | string }

const TICK_MS = 5
const GATHER_MS = 20
/** Emails in memory for each connection: a claim costs a round trip and a commit, however many it brings. */
const CLAIMED_AHEAD = 8
/** What campaigns get at least of what is claimed, however much other mail waits. */
const CAMPAIGN_SHARE = 1 / 4
const TROUBLE_MS = 250

/** Starts moving the email of one lane: claim, render, mark, send, record. */
export function startLane(
  services: Services,
  name: LaneName,
  parts: { renderer: Renderer; provider: MailProvider },
  options: LaneOptions = LANE_DEFAULTS,
): Lane {
  const fork = () => crossOrganization(services)
  const rate = createLaneRate(fork, name, services.config.laneRates[name])
  const slots = slotsOf(options.connections, services.config.laneRates[name])
  const ahead = slots * (rate.isLimited ? 2 : CLAIMED_AHEAD)
  const ready: Ready[] = []
  const recording: TickItem[] = []
  const sending = new Set<Promise<void>>()
  const ended = new Set<ClaimedMail>()
  /** Emails that are marked or may be, and are not recorded: never more than slots, so that a crash repeats no more. */
  let occupied = 0
  let tickedAt = 0
  let waitingForRate = 0
  let cursor: string | null = null
  const halt = new AbortController()
  /** After its grace, what cannot be recorded at once is left to the leases. */
  let isOver = false
  let rings = 0
  let pausedUntil = 0
  const sleepers = new Set<() => void>()

  /** Claims and renders ahead of the connections until the lane is empty, then waits for a ring or the poll. */
  async function refill(): Promise<void> {
    while (!halt.signal.aborted) {
      const pauseMs = pausedUntil - performance.now()
      if (pauseMs > 0) {
        await until(() => halt.signal.aborted, Math.min(pauseMs, options.pollMs))
        continue
      }
      if (ready.length >= ahead / 2) {
        await until(() => halt.signal.aborted || ready.length < ahead / 2, options.pollMs)
        continue
      }
      const heard = rings
      const claimed = await claim(ahead - ready.length)
      if (claimed === 0) await until(() => halt.signal.aborted || rings !== heard, options.pollMs)
    }
  }

  async function claim(want: number): Promise<number> {
    const from = cursor
    const { mails, cursor: next } = await claimMails(fork(), name, want, options.leaseMs, from)
    cursor = next
    if (name === 'bulk') {
      const share = Math.max(want - mails.length, Math.ceil(want * CAMPAIGN_SHARE))
      mails.push(...(await claimOfCampaigns(share)))
    }
    // Together, because signing is done by threads beside this one.
    await Promise.all(mails.map(prepare))
    // An empty part of the round may only mean that it begins anew.
    return mails.length === 0 && from !== null ? await claim(want) : mails.length
  }

  /** What was claimed before goes on when this fails. */
  async function claimOfCampaigns(share: number): Promise<ClaimedMail[]> {
    try {
      return await claimCampaignMails(fork(), share, options.leaseMs)
    } catch (error) {
      services.log.error(
        { fault: describeFault(error), lane: name },
        'emails of campaigns could not be claimed',
      )
      return []
    }
  }

  async function prepare(mail: ClaimedMail): Promise<void> {
    try {
      if (!isEnvelopeAddress(wireAddress(mail.recipient))) return finishUnsent(mail, 'ADDRESS_NOT_SENDABLE')
      const content = await parts.renderer.prepare(mail)
      ready.push({ mail, content: content ?? 'CONTENT_MISSING' })
    } catch (error) {
      return finishUnsent(mail, unrendered(mail, error))
    }
    wake()
  }

  /** What cannot be sent goes the way of everything else, so that withdrawal still comes first. */
  function finishUnsent(mail: ClaimedMail, reason: string): void {
    ready.push({ mail, content: reason })
    wake()
  }

  function unrendered(mail: ClaimedMail, error: unknown): string {
    services.log.error({ fault: describeFault(error), email: mail.id }, 'an email could not be rendered')
    return unmadeReason(error)
  }

  /** Each tick records what finished and marks as many as have room. Two loops, so that one works while the other waits. */
  async function work(): Promise<void> {
    while (!halt.signal.aborted || recording.length > 0 || sending.size > 0) {
      if (!hasWork()) {
        await until(() => hasWork() || (halt.signal.aborted && sending.size === 0), options.pollMs)
        continue
      }
      await gather()
      if (!hasWork()) continue
      tickedAt = performance.now()
      const freed = recording.filter(isPlain).length
      const next = canMark() ? takeReady(freed) : []
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

  /** While most connections speak, what they end gathers: a tick for one email costs much of what one for thirty does. */
  async function gather(): Promise<void> {
    const before = tickedAt
    const early = before + TICK_MS - performance.now()
    if (early > 0) await sleep(early)
    const isFew = () => halt.signal.aborted || sending.size <= slots / 2
    await until(isFew, before + GATHER_MS - performance.now())
  }

  /** Whether there is something to mark, and room when what has finished by now is recorded. */
  function canMark(): boolean {
    return (
      !halt.signal.aborted &&
      ready.length > 0 &&
      occupied - recording.length < slots &&
      performance.now() >= pausedUntil
    )
  }

  /** The statement that marks them frees the places of `freed` others. */
  function takeReady(freed: number): Ready[] {
    const taken = ready.splice(0, Math.max(0, slots - occupied + freed))
    if (taken.length > 0) wake()
    return taken
  }

  /** Answers how many of these are marked, or still to be recorded, afterwards. */
  async function tickOnce(next: readonly Ready[], done: readonly TickItem[]): Promise<number> {
    const deadline = performance.now() + options.leaseMs - options.marginMs
    const candidates = next.map(({ mail, content }): TickItem => {
      const { id, organizationId, attempt, runId } = mail
      const targets = typeof content === 'string' ? [] : content.targets
      return { candidate: { id, organizationId, attempt, targets }, runId }
    })
    const result = await runTick(services, [...done, ...candidates], options.leaseMs)
    const marked = new Set(result.marked)
    for (const entry of next) if (marked.has(entry.mail.id)) start(entry, deadline)
    const left = result.failed.filter((item) => 'outcome' in item)
    const kept = left.length + next.filter(({ mail }) => marked.has(mail.id)).length
    const rejected = new Set(result.rejected.map((item) => ('candidate' in item ? item.candidate.id : '')))
    for (const { mail, content } of next) {
      // Without its links it can be marked, and then recorded as failed.
      if (rejected.has(mail.id) && typeof content !== 'string') finishUnsent(mail, 'RENDER_FAULT')
    }
    if (result.failed.length === 0 || isOver) return kept
    const failed = new Set(result.failed.flatMap((item) => ('candidate' in item ? [item.candidate.id] : [])))
    ready.unshift(...next.filter(({ mail }) => failed.has(mail.id)))
    recording.unshift(...left)
    await sleep(TROUBLE_MS)
    return kept
  }

  function start(entry: Ready, deadline: number): void {
    const task = submit(entry, deadline).then((outcome) => {
      sending.delete(task)
      ended.delete(entry.mail)
      recording.push({ outcome, runId: entry.mail.runId })
      wake()
    })
    sending.add(task)
  }

  async function submit({ mail, content }: Ready, deadline: number): Promise<Outcome> {
    if (typeof content === 'string') return unsent(mail, content)
    try {
      return await converse(mail, await content.compose(), deadline)
    } catch (error) {
      return unsent(mail, unrendered(mail, error))
    }
  }

  async function converse(mail: ClaimedMail, rendered: RenderedMail, deadline: number): Promise<Outcome> {
    try {
      const reply = await parts.provider.send(
        rendered.returnPath,
        wireAddress(mail.recipient),
        rendered.data,
        {
          deadline,
          isUrgent: name === 'transactional',
          beforeData: rate.isLimited ? takeTurn : null,
          onEnd: () => ended.add(mail),
        },
      )
      return acceptance(mail, rendered.subject, replyLine(reply))
    } catch (error) {
      const failure = error instanceof SmtpFailure ? error : new SmtpFailure('connect', faultOf(error))
      if (failure.stage === 'connect') pause(failure)
      return failureOutcome(mail, rendered.subject, failure, {
        pauseMs: Math.ceil(Math.max(0, pausedUntil - performance.now())),
        ...(options.backOff && { backOff: options.backOff }),
      })
    }
  }

  async function takeTurn(): Promise<void> {
    waitingForRate += 1
    try {
      await rate.spend(() => waitingForRate)
    } finally {
      waitingForRate -= 1
    }
  }

  /** Until a relay may be tried again; nobody's mail is at fault. */
  function pause(failure: SmtpFailure): void {
    if (performance.now() < pausedUntil) return
    const pauseMs = parts.provider.restMs()
    if (pauseMs === 0) return
    pausedUntil = performance.now() + pauseMs
    services.log.warn({ lane: name, pauseMs, reason: failure.message }, 'no relay can be used')
  }

  /** Waits until the condition holds, asked again at every wake-up, or until the time is over. */
  async function until(holds: () => boolean, withinMs: number): Promise<void> {
    const end = performance.now() + withinMs
    while (!holds()) {
      const left = end - performance.now()
      if (left <= 0) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left)
        sleepers.add(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
  }

  function wake(): void {
    for (const sleeper of sleepers) sleeper()
    sleepers.clear()
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
    renewLeases(fork(), [...ended], options.leaseMs).catch((error: unknown) =>
      services.log.warn({ fault: describeFault(error), lane: name }, 'leases could not be renewed'),
    )
  }, options.leaseMs / 3)
  const refilling = forever(refill)
  const working = Promise.all([forever(work), forever(work)])

  return {
    ring() {
      rings += 1
      wake()
    },
    async stop(graceMs) {
      halt.abort()
      wake()
      await Promise.race([Promise.all([refilling, working]), sleep(graceMs, undefined, { ref: false })])
      isOver = true
      clearInterval(renewal)
      await releaseClaims(
        fork(),
        ready.splice(0).map(({ mail }) => mail),
      )
    },
  }
}

/** Emails marked at once: with a rate as many as leave within half a second, because who withdraws one meanwhile is late. */
function slotsOf(connections: number, rate: number): number {
  return rate === 0 ? connections : Math.max(1, Math.min(connections, Math.ceil(rate / 2)))
}

function faultOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown fault'
}
