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
const MAILS_A_CONNECTION = 500

/** Any relay, over connections that are kept between emails. As many are open as emails are under way. */
export function createSmtpProvider(relayUrl: string): MailProvider {
  const relay = readRelay(relayUrl)
  const idle: { connection: SmtpConnection; timer: NodeJS.Timeout }[] = []

  function takeIdle(): SmtpConnection | null {
    for (let kept = idle.pop(); kept; kept = idle.pop()) {
      clearTimeout(kept.timer)
      if (kept.connection.isOpen) return kept.connection
    }
    return null
  }

  function keep(connection: SmtpConnection): void {
    if (!connection.isOpen) return
    if (connection.used >= MAILS_A_CONNECTION) return connection.quit()
    const timer = setTimeout(() => {
      idle.splice(
        idle.findIndex((kept) => kept.connection === connection),
        1,
      )
      connection.quit()
    }, IDLE_MS)
    timer.unref()
    idle.push({ connection, timer })
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
      for (const { connection, timer } of idle.splice(0)) {
        clearTimeout(timer)
        connection.quit()
      }
    },
  }
}
