// A sender of its own, to be killed: DATABASE_URL, RELAY_URL and CONNECTIONS say what it works on.
import { readConfig } from '../../src/config.ts'
import { startLanes } from '../../src/delivery/lanes.ts'
import { createServices } from '../../src/services.ts'
import { QUICK } from './mailroom.ts'

const services = await createServices(readConfig(process.env), 'sender')
await startLanes(services, {
  workerName: 'sender',
  lane: { ...QUICK, connections: Number(process.env['CONNECTIONS'] ?? 4) },
  reviveMs: 50,
})
