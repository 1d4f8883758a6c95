import { readRelay } from './relay.ts'
import type { SmtpReply } from './replies.ts'
import { openSmtpConnection, type SendGate, type SmtpConnection } from './smtp-connection.ts'
import { SmtpFailure } from './smtp-wire.ts'

/** What hands an email to the world: the answer is an acceptance, a refusal is an SmtpFailure. */
export type MailProvider = {
  send(from: string, to: string, data: string, gate: SendGate): Promise<SmtpReply>
  close(): void
}

const IDLE_MS = 20_000
const SWEEP_MS = 5_000
const MAILS_A_CONNECTION = 500

/** Any relay, over connections that are kept between emails. As many are open as emails are under way. */
export function createSmtpProvider(relayUrl: string): MailProvider {
  const relay = readRelay(relayUrl)
  /** The one that waits longest is first. */
  const idle: { connection: SmtpConnection; since: number }[] = []
  let sweeping: NodeJS.Timeout | undefined

  function takeIdle(): SmtpConnection | null {
    for (let kept = idle.pop(); kept; kept = idle.pop()) if (kept.connection.isOpen) return kept.connection
    return null
  }

  function keep(connection: SmtpConnection): void {
    if (!connection.isOpen) return
    if (connection.used >= MAILS_A_CONNECTION) return connection.quit()
    idle.push({ connection, since: performance.now() })
    sweeping ??= setInterval(closeIdle, SWEEP_MS).unref()
  }

  /** One look now and then, because a timer for each email would be set and taken back thousands of times a second. */
  function closeIdle(): void {
    const end = performance.now() - IDLE_MS
    while (idle[0] && idle[0].since <= end) idle.shift()?.connection.quit()
    if (idle.length > 0) return
    clearInterval(sweeping)
    sweeping = undefined
  }

  async function sendOver(
    connection: SmtpConnection,
    ...mail: Parameters<MailProvider['send']>
  ): Promise<SmtpReply> {
    try {
      return await connection.send(...mail)
    } finally {
      keep(connection)
    }
  }

  return {
    async send(...mail) {
      const kept = takeIdle()
      if (kept) {
        try {
          return await sendOver(kept, ...mail)
        } catch (error) {
          // A relay may close what was idle at any moment; nothing of this email was said yet.
          const isStale = error instanceof SmtpFailure && error.stage === 'mail' && !error.reply
          if (!isStale) throw error
        }
      }
      return await sendOver(await openSmtpConnection(relay), ...mail)
    },
    close() {
      clearInterval(sweeping)
      for (const { connection } of idle.splice(0)) connection.quit()
    },
  }
}
