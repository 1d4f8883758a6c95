// A worker for webhooks of its own, to be killed: DATABASE_URL says what it works on.
import { readConfig } from '../../src/config.ts'
import { createServices } from '../../src/services.ts'
import { startWebhookTurns } from '../../worker/webhook-turns.ts'

startWebhookTurns(await createServices(readConfig(process.env), 'webhooks'))
