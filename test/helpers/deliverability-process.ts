// Runs the deliverability worker as a separate process that tests can kill. DATABASE_URL names its database.
import { readConfig } from '../../src/config.ts'
import { createServices } from '../../src/services.ts'
import { startDeliverability } from '../../worker/deliverability.ts'

startDeliverability(await createServices(readConfig(process.env), 'counter'))
