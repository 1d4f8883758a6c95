import { type Connection, isGrpcServiceError } from '@temporalio/client'

import type { Config } from '../../src/config.ts'
import { createTemporalConnection } from '../../src/ports/temporal-connection.ts'
import { taskQueue } from '../../temporal/contract.ts'
import type { Finding } from './reachable.ts'

/** A gRPC status code. */
const NOT_FOUND = 5
/** `temporal.api.enums.v1.TaskQueueType` */
const QUEUE_TYPES = { workflows: 1, activities: 2 } as const
const CONNECT_MS = 5_000
const ANSWER_MS = 5_000

/** Checks that Temporal answers, has the namespace, and has workers on our task queues. */
export async function examineTemporal(config: Config['temporal']): Promise<Finding[]> {
  const { address, namespace } = config
  const connection = createTemporalConnection(config, CONNECT_MS)
  try {
    await connection.ensureConnected()
  } catch {
    await connection.close()
    return [
      {
        name: 'temporal',
        status: 'fail',
        detail: `${address} does not answer`,
        repair:
          'Check TEMPORAL_ADDRESS, and whether the server runs. Until then mail is accepted and sent, but no workflow moves.',
      },
    ]
  }
  try {
    return await connection.withDeadline(Date.now() + ANSWER_MS, () =>
      look(connection, namespace, config.taskQueue),
    )
  } catch (error) {
    return [
      {
        name: 'temporal',
        status: 'fail',
        detail: `${address}: ${isGrpcServiceError(error) ? error.details : String(error)}`,
        repair: 'Check TEMPORAL_NAMESPACE and TEMPORAL_API_KEY, and the health of the server.',
      },
    ]
  } finally {
    await connection.close()
  }
}

async function look(connection: Connection, namespace: string, prefix: string): Promise<Finding[]> {
  const { serverVersion } = await connection.workflowService.getSystemInfo({})
  const server: Finding = { name: 'temporal', status: 'ok', detail: `Temporal ${serverVersion}` }
  try {
    await connection.workflowService.describeNamespace({ namespace })
  } catch (error) {
    if (!isGrpcServiceError(error) || error.code !== NOT_FOUND) throw error
    const repair =
      'Run "node scripts/prepare.ts", which makes it, or set TEMPORAL_NAMESPACE to one that is there.'
    return [
      server,
      { name: 'namespace', status: 'fail', detail: `there is no namespace ${namespace}`, repair },
    ]
  }
  const queues = (['runs', 'background'] as const).map((kind) => taskQueue(prefix, kind))
  return [
    server,
    { name: 'namespace', status: 'ok', detail: namespace },
    ...(await Promise.all(queues.map((queue) => lookAtQueue(connection, namespace, queue)))),
  ]
}

async function lookAtQueue(connection: Connection, namespace: string, queue: string): Promise<Finding> {
  const missing: string[] = []
  for (const [what, taskQueueType] of Object.entries(QUEUE_TYPES)) {
    const { pollers } = await connection.workflowService.describeTaskQueue({
      namespace,
      taskQueue: { name: queue },
      taskQueueType,
    })
    if (pollers.length === 0) missing.push(what)
  }
  const name = `queue ${queue}`
  if (missing.length === 0) return { name, status: 'ok', detail: 'workers poll it' }
  return {
    name,
    status: 'fail',
    detail: `nobody polls it for ${missing.join(' and ')}`,
    repair:
      'Start a worker (npm start, or node worker/main.ts) with the same TEMPORAL_TASK_QUEUE and namespace.',
  }
}
