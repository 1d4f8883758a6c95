// Runs the webhook worker as a separate process that tests can kill. DATABASE_URL names its database.
import { readConfig } from '../../src/config.ts'
import { createServices } from '../../src/services.ts'
import { startWebhookTurns } from '../../worker/webhook-turns.ts'

startWebhookTurns(await createServices(readConfig(process.env), 'webhooks'))
