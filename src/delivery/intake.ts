import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { describeFault } from '../log.ts'
import type { Services } from '../services.ts'
import { claimCampaignMails, claimMails, type ClaimedMail, type LaneName } from './claims.ts'
import { isEnvelopeAddress, wireAddress } from './headers.ts'
import { unmadeReason } from './outcomes.ts'
import type { PreparedMail, Renderer } from './render.ts'
import type { Waiter } from './waiter.ts'

/** A claimed email that can be marked. When it cannot be sent, `content` is a reason code instead of the content. */
export type Ready = { mail: ClaimedMail; content: PreparedMail | string }

/** The claimed and rendered emails of a lane. */
export type Intake = {
  /**
   * Claims and renders ahead until the queue is empty, then waits for a ring or the next poll. Returns when the lane
   * halts.
   */
  run(): Promise<void>
  /** Wakes the intake because there may be new email to claim. */
  ring(): void
  size(): number
  take(most: number): Ready[]
  /** Puts entries at the front, so that the next `take` returns them first. */
  putBack(entries: readonly Ready[]): void
  /** Adds an entry. An email that cannot be sent is added too, so that a withdrawal is checked before it fails. */
  add(entry: Ready): void
}

/** How far ahead an intake claims, and when it pauses. */
export type IntakeOptions = {
  /** Emails in memory at once. */
  ahead: number
  /** How long a claim lasts. */
  leaseMs: number
  pollMs: number
  halt: AbortSignal
  /** Returns how long (ms) no relay can be used; nothing is claimed meanwhile. */
  restMs: () => number
}

/** The least share of each claim that goes to recipients of campaigns, however much other email waits. */
const CAMPAIGN_SHARE = 1 / 4

/** Creates the intake of a lane. It wakes `waiter` whenever an email is ready. */
export function createIntake(
  services: Services,
  name: LaneName,
  renderer: Renderer,
  waiter: Waiter,
  { ahead, leaseMs, pollMs, halt, restMs }: IntakeOptions,
): Intake {
  const fork = () => crossOrganization(services)
  const ready: Ready[] = []
  let cursor: string | null = null
  let rings = 0

  async function run(): Promise<void> {
    while (!halt.aborted) {
      const pauseMs = restMs()
      if (pauseMs > 0) {
        await waiter.until(() => halt.aborted, Math.min(pauseMs, pollMs))
        continue
      }
      if (ready.length >= ahead / 2) {
        await waiter.until(() => halt.aborted || ready.length < ahead / 2, pollMs)
        continue
      }
      const heard = rings
      const claimed = await claim(ahead - ready.length)
      if (claimed === 0) await waiter.until(() => halt.aborted || rings !== heard, pollMs)
    }
  }

  async function claim(want: number): Promise<number> {
    const from = cursor
    const { mails, cursor: next } = await claimMails(fork(), name, want, leaseMs, from)
    cursor = next
    if (name === 'bulk') {
      const share = Math.max(want - mails.length, Math.ceil(want * CAMPAIGN_SHARE))
      mails.push(...(await claimOfCampaigns(share)))
    }
    // In parallel, because DKIM signing runs in other threads.
    await Promise.all(mails.map(async (mail) => add({ mail, content: await prepare(mail) })))
    // No email after the cursor may only mean that the round is over, so claim once more from its start.
    return mails.length === 0 && from !== null ? await claim(want) : mails.length
  }

  /** Returns no emails on an error, so that those already claimed from the queue are still sent. */
  async function claimOfCampaigns(share: number): Promise<ClaimedMail[]> {
    try {
      return await claimCampaignMails(fork(), share, leaseMs)
    } catch (error) {
      services.log.error(
        { fault: describeFault(error), lane: name },
        'emails of campaigns could not be claimed',
      )
      return []
    }
  }

  async function prepare(mail: ClaimedMail): Promise<PreparedMail | string> {
    try {
      if (!isEnvelopeAddress(wireAddress(mail.recipient))) return 'ADDRESS_NOT_SENDABLE'
      return (await renderer.prepare(mail)) ?? 'CONTENT_MISSING'
    } catch (error) {
      return logUnrendered(services, mail, error)
    }
  }

  function add(entry: Ready): void {
    ready.push(entry)
    waiter.wake()
  }

  return {
    run,
    ring() {
      rings += 1
      waiter.wake()
    },
    size: () => ready.length,
    take(most) {
      const taken = ready.splice(0, Math.max(0, most))
      if (taken.length > 0) waiter.wake()
      return taken
    },
    putBack(entries) {
      ready.unshift(...entries)
    },
    add,
  }
}

/** Logs why an email could not be rendered and returns the reason code. */
export function logUnrendered(services: Services, mail: ClaimedMail, error: unknown): string {
  services.log.error({ fault: describeFault(error), email: mail.id }, 'an email could not be rendered')
  return unmadeReason(error)
}
