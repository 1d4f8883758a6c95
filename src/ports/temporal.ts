import { Client, Connection } from '@temporalio/client'
import type { Logger } from 'pino'

import { Failure } from '../catalogue/failure.ts'
import type { Config } from '../config.ts'

/** The way to Temporal: connected on first use, again after a break, and never needed for accepting mail. */
export type TemporalPort = {
  /** The client, or UNAVAILABLE when Temporal cannot be reached in time. */
  client(): Promise<Client>
  /** Whether Temporal answers now. */
  isReachable(): Promise<boolean>
  /** The page of a workflow in the Temporal Web UI, or null when no UI is configured. */
  workflowUrl(workflowId: string): string | null
  close(): Promise<void>
}

const CONNECT_MS = 3_000

/** The real one. */
export function createTemporalPort(config: Config['temporal'], log: Logger): TemporalPort {
  let connecting: Promise<{ connection: Connection; client: Client }> | undefined

  async function connect() {
    const connection = await Connection.connect({
      address: config.address,
      ...(config.tls && { tls: true }),
      ...(config.apiKey && { apiKey: config.apiKey }),
      connectTimeout: CONNECT_MS,
    })
    return { connection, client: new Client({ connection, namespace: config.namespace }) }
  }

  async function client(): Promise<Client> {
    connecting ??= connect()
    try {
      return (await connecting).client
    } catch (error) {
      connecting = undefined
      log.warn({ err: error }, 'Temporal cannot be reached')
      throw new Failure('UNAVAILABLE', 'Temporal cannot be reached; repeat the request in a moment.', {
        retryAfter: 5,
        cause: error,
      })
    }
  }

  return {
    client,
    async isReachable() {
      try {
        const { connection } = await client()
        await connection.withDeadline(Date.now() + CONNECT_MS, () =>
          connection.workflowService.getSystemInfo({}),
        )
        return true
      } catch {
        return false
      }
    },
    workflowUrl(workflowId) {
      if (!config.uiUrl) return null
      return `${config.uiUrl}/namespaces/${encodeURIComponent(config.namespace)}/workflows/${encodeURIComponent(workflowId)}`
    },
    async close() {
      // A connection that is still being made may take its time; nobody waits for it.
      void connecting?.then(({ connection }) => connection.close()).catch(() => undefined)
    },
  }
}
