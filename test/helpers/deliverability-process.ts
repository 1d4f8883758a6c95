// A counter of its own, to be killed: DATABASE_URL says what it works on.
import { readConfig } from '../../src/config.ts'
import { createServices } from '../../src/services.ts'
import { startDeliverability } from '../../worker/deliverability.ts'

startDeliverability(await createServices(readConfig(process.env), 'counter'))
