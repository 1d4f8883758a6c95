// Runs lanes and engine as a separate process that tests can kill, with leases short enough for tests.
import { readConfig } from '../../src/config.ts'
import { startLanes } from '../../src/delivery/lanes.ts'
import { createServices } from '../../src/services.ts'
import { startEngine } from '../../worker/workers.ts'
import { QUICK } from './mailroom.ts'

const services = await createServices(readConfig(process.env), 'worker')
await startLanes(services, {
  workerName: 'worker',
  lane: { ...QUICK, connections: Number(process.env['CONNECTIONS'] ?? 4) },
  reviveMs: 100,
})
await startEngine(services)
