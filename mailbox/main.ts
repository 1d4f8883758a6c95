import { mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

import { pino } from 'pino'

import { startMailbox } from './mailbox.ts'

/**
 * Runs the mailbox as a process, configured by MAILBOX_PORT, MAILBOX_SMTP_PORT, MAILBOX_FILE and POSTLOOM_HOST. It
 * shows all mail to anybody who can reach it, so it refuses to start in production.
 */
const environment = process.env
const log = pino({ name: 'mailbox', level: environment['LOG_LEVEL'] || 'info' })

if (environment['POSTLOOM_ENV'] === 'production') {
  log.fatal('The mailbox is for development only: unset POSTLOOM_ENV, or set RELAY_URL to a real relay.')
  process.exit(2)
}

const file = resolve(environment['MAILBOX_FILE'] || '.postloom/mailbox.sqlite')
mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
const mailbox = await startMailbox({
  file,
  host: environment['POSTLOOM_HOST'] || '127.0.0.1',
  httpPort: Number(environment['MAILBOX_PORT'] || 8025),
  smtpPort: Number(environment['MAILBOX_SMTP_PORT'] || 1025),
  onFault: (error) => log.error({ err: error }, 'fault'),
})
log.info({ url: mailbox.url, smtpPort: mailbox.smtpPort }, 'mailbox is up')

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void mailbox.close().then(() => process.exit(0))
  })
}
