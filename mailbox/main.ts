import { mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

import { pino } from 'pino'

import { startMailbox } from './mailbox.ts'

/**
 * The mailbox as a process: MAILBOX_PORT, MAILBOX_SMTP_PORT, MAILBOX_FILE, POSTLOOM_HOST. It shows every
 * mail to everybody who can reach it, so it does not exist in production.
 */
const environment = process.env
const log = pino({ name: 'mailbox', level: environment['LOG_LEVEL'] ?? 'info' })

if (environment['POSTLOOM_ENV'] === 'production') {
  log.fatal('The mailbox is for development only: unset POSTLOOM_ENV, or set RELAY_URL to a real relay.')
  process.exit(2)
}

const file = resolve(environment['MAILBOX_FILE'] ?? '.postloom/mailbox.sqlite')
mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
const mailbox = await startMailbox({
  file,
  host: environment['POSTLOOM_HOST'] ?? '127.0.0.1',
  httpPort: Number(environment['MAILBOX_PORT'] ?? 8025),
  smtpPort: Number(environment['MAILBOX_SMTP_PORT'] ?? 1025),
  onFault: (error) => log.error({ err: error }, 'fault'),
})
log.info({ url: mailbox.url, smtpPort: mailbox.smtpPort }, 'mailbox is up')

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void mailbox.close().then(() => process.exit(0))
  })
}
