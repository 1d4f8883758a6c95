import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { describeFault } from '../log.ts'
import { listenForRings } from '../ports/doorbell.ts'
import type { Services } from '../services.ts'
import { type LaneName, reviveQueue } from './claims.ts'
import { LANE_DEFAULTS, type Lane, type LaneOptions, startLane } from './lane.ts'
import { createRenderer } from './render.ts'
import { createSmtpProvider, type RelayState } from './smtp-provider.ts'

/** The delivery of one process. */
export type Lanes = {
  /** The lanes by name; the emails of one name are shared by one or two. */
  readonly byName: ReadonlyMap<string, readonly Lane[]>
  /** The relays, and whether each can be used now. */
  relays(): RelayState[]
  /** Finishes emails that are being sent within the grace period. */
  stop(): Promise<void>
}

/**
 * The most connections of each lane. While some are sending, the others wait for the tick that marks their next email.
 */
const MOST_CONNECTIONS: Record<LaneName, number> = { transactional: 16, bulk: 256 }
/**
 * `fewShare` of half a lane. The fixed cost of a tick equals that of about thirty emails, so emails that a fast relay
 * answers at once are recorded together.
 */
const FEW_OF_HALF = 1 / 16
/** The share of the connections that is reserved for transactional email. */
const TRANSACTIONAL_SHARE = 1 / 4
const REVIVE_MS = 1_000
const GRACE_MS = 4_000

/**
 * Starts both lanes of this process on the configured relays. Any number of processes can do so side by side. Without a
 * rate limit, the bulk lane runs as two halves, each with batches of its own: neither waits for the other's ticks, and
 * one sends while the other records.
 */
export async function startLanes(
  services: Services,
  options: { workerName: string; lane?: Partial<LaneOptions>; reviveMs?: number; graceMs?: number },
): Promise<Lanes> {
  const provider = createSmtpProvider(services.config.relayUrl, services.log)
  const connections = shareOut(provider.places)
  const parts = { renderer: createRenderer(services), provider }
  function open(name: LaneName): Lane[] {
    const whole = { ...LANE_DEFAULTS, connections: connections[name], ...options.lane }
    const isHalved = name === 'bulk' && services.config.laneRates.bulk === 0 && whole.connections > 1
    if (!isHalved) return [startLane(services, name, parts, whole)]
    const half = whole.connections >> 1
    return [half, whole.connections - half].map((places) =>
      startLane(services, name, parts, { ...whole, connections: places, ticks: 1, fewShare: FEW_OF_HALF }),
    )
  }
  const lanes = new Map<string, Lane[]>([
    ['transactional', open('transactional')],
    ['bulk', open('bulk')],
  ])
  const ring = (name: string) => lanes.get(name)?.forEach((lane) => lane.ring())
  const listener = await listenForRings(services.config.databaseUrl, ring, services.log)
  let reviving: Promise<void> | undefined
  const revival = setInterval(() => {
    // One at a time: while the database does not answer, they would take all places of the pool, and wait for more.
    reviving ??= revive(services, () => [...lanes.keys()].forEach(ring)).finally(() => {
      reviving = undefined
    })
  }, options.reviveMs ?? REVIVE_MS)
  services.log.info({ worker: options.workerName, rates: services.config.laneRates }, 'lanes are open')
  return {
    byName: lanes,
    relays: () => provider.relays(),
    async stop() {
      clearInterval(revival)
      // A revival that still runs must not ask for a database connection while the pool closes.
      await reviving
      await listener.close()
      await Promise.all([...lanes.values()].flat().map((lane) => lane.stop(options.graceMs ?? GRACE_MS)))
      provider.close()
    },
  }
}

/**
 * Divides the connections that the relays allow, so that neither lane waits for the other. A single connection is
 * shared.
 */
function shareOut(places: number): Record<LaneName, number> {
  const transactional = Math.ceil(Math.min(places * TRANSACTIONAL_SHARE, MOST_CONNECTIONS.transactional))
  return { transactional, bulk: Math.max(1, Math.min(places - transactional, MOST_CONNECTIONS.bulk)) }
}

async function revive(services: Services, ring: () => void): Promise<void> {
  try {
    if ((await reviveQueue(crossOrganization(services))) > 0) ring()
  } catch (error) {
    services.log.warn({ fault: describeFault(error) }, 'the delivery queue could not be looked over')
  }
}
