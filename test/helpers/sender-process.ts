// A sender of its own, to be killed: DATABASE_URL, RELAY_URL and CONNECTIONS say what it works on, LEASE_MS for how long.
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
