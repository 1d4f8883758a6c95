import { Client, type Connection, WithStartWorkflowOperation } from '@temporalio/client'
import type { Workflow } from '@temporalio/common'
import type { Logger } from 'pino'

import { taskQueue } from '../../temporal/contract.ts'
import { Failure } from '../catalogue/failure.ts'
import type { Config } from '../config.ts'
import { createTemporalConnection } from './temporal-connection.ts'

/** The connection to Temporal: opened on first use, again after a break, and never needed to accept mail. */
export type TemporalPort = {
  /** Returns the client. Throws `UNAVAILABLE` when Temporal cannot be reached in time. */
  client(): Promise<Client>
  /**
   * Sends an update to a background workflow and returns its answer; starts the workflow when it does not run. Throws
   * `UNAVAILABLE` when no answer comes in time; the workflow may still handle the update.
   */
  ask<Answer>(question: Question): Promise<Answer>
  /** Returns whether Temporal answers now. */
  isReachable(): Promise<boolean>
  /** Returns the page of a workflow in the Temporal Web UI, or null when no UI is configured. */
  workflowUrl(workflowId: string): string | null
  close(): Promise<void>
}

/** An update for a workflow, and how the workflow is started when it does not run. */
export type Question = {
  workflow: string
  workflowId: string
  input: object
  summary: string
  details: string
  update: string
  withinMs: number
}

const CONNECT_MS = 3_000

/** Creates the port; it connects on first use. */
export function createTemporalPort(config: Config['temporal'], log: Logger): TemporalPort {
  let connecting: Promise<{ connection: Connection; client: Client }> | undefined

  async function connect() {
    const connection = createTemporalConnection(config, CONNECT_MS)
    try {
      await connection.ensureConnected()
    } catch (error) {
      // A connection that failed keeps its gRPC channel in memory until it is closed.
      await connection.close()
      throw error
    }
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

  async function ask<Answer>(question: Question): Promise<Answer> {
    const { workflow, workflowId, input, summary, details, update, withinMs } = question
    const connected = await client()
    const startWorkflowOperation = new WithStartWorkflowOperation(workflow, {
      workflowId,
      taskQueue: taskQueue(config.taskQueue, 'background'),
      args: [input],
      workflowIdConflictPolicy: 'USE_EXISTING',
      staticSummary: summary,
      staticDetails: details,
    })
    try {
      return await connected.withDeadline(Date.now() + withinMs, () =>
        connected.workflow.executeUpdateWithStart<Workflow, Answer, []>(update, { startWorkflowOperation }),
      )
    } catch (error) {
      log.warn({ err: error, workflowId }, 'a workflow did not answer in time')
      throw new Failure(
        'UNAVAILABLE',
        'The request is stored, but the answer takes too long; repeat the request.',
        {
          retryAfter: 5,
          cause: error,
        },
      )
    }
  }

  return {
    client,
    ask,
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
      // Not awaited, because a connection that is still being opened may take long.
      void connecting?.then(({ connection }) => connection.close()).catch(() => undefined)
    },
  }
}
