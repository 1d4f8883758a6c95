// Runs a sender as a separate process that tests can kill. DATABASE_URL, RELAY_URL, CONNECTIONS and LEASE_MS configure
// it.
import { readConfig } from '../../src/config.ts'
import { startLanes } from '../../src/delivery/lanes.ts'
import { createServices } from '../../src/services.ts'
import { QUICK } from './mailroom.ts'

const services = await createServices(readConfig(process.env), 'sender')
await startLanes(services, {
  workerName: 'sender',
  lane: {
    ...QUICK,
    connections: Number(process.env['CONNECTIONS'] ?? 4),
    leaseMs: Number(process.env['LEASE_MS'] ?? 5_000),
  },
  reviveMs: 50,
})
