import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { describeFault } from '../log.ts'
import type { Services } from '../services.ts'
import { claimCampaignMails, claimMails, type ClaimedMail, type LaneName } from './claims.ts'
import { isEnvelopeAddress, wireAddress } from './headers.ts'
import { unmadeReason } from './outcomes.ts'
import type { PreparedMail, Renderer } from './render.ts'
import type { Waiter } from './waiter.ts'

/** A claimed email that may be marked; one that cannot be sent at all has a reason in place of its content. */
export type Ready = { mail: ClaimedMail; content: PreparedMail | string }

/** The claimed and rendered emails of a lane. */
export type Intake = {
  /** Claims and renders ahead until the lane is empty, then waits for a ring or the poll; ends when the lane halts. */
  run(): Promise<void>
  /** There may be something to claim. */
  ring(): void
  size(): number
  take(most: number): Ready[]
  /** They come first in the next take. */
  putBack(entries: readonly Ready[]): void
  /** What cannot be sent goes the way of everything else, so that withdrawal still comes first. */
  add(entry: Ready): void
}

/** How far ahead a lane claims, and when it does not. */
export type IntakeOptions = {
  /** Emails in memory at once. */
  ahead: number
  /** How long a claim is ours. */
  leaseMs: number
  pollMs: number
  halt: AbortSignal
  /** How long no relay can be used. */
  restMs: () => number
}

/** What campaigns get at least of what is claimed, however much other mail waits. */
const CAMPAIGN_SHARE = 1 / 4

/** Claims what a lane sends next, and renders it. `waiter` hears of everything that is ready. */
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
    // Together, because signing is done by threads beside this one.
    await Promise.all(mails.map(async (mail) => add({ mail, content: await prepare(mail) })))
    // An empty part of the round may only mean that it begins anew.
    return mails.length === 0 && from !== null ? await claim(want) : mails.length
  }

  /** What was claimed before goes on when this fails. */
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

/** Logs why an email could not be rendered, and answers the reason in one of our own words. */
export function logUnrendered(services: Services, mail: ClaimedMail, error: unknown): string {
  services.log.error({ fault: describeFault(error), email: mail.id }, 'an email could not be rendered')
  return unmadeReason(error)
}
