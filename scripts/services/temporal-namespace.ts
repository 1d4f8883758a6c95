import { setTimeout as sleep } from 'node:timers/promises'

import { isGrpcServiceError, type Connection } from '@temporalio/client'
import { msToTs } from '@temporalio/common/lib/time.js'

import { RETENTION_SECONDS, SEARCH_ATTRIBUTES } from './temporal.ts'

/** `temporal.api.enums.v1.IndexedValueType` */
const VALUE_TYPES = { Keyword: 2, Datetime: 6 } as const
/** gRPC status codes. */
const NOT_FOUND = 5
const ALREADY_EXISTS = 6
const PERMISSION_DENIED = 7
const UNIMPLEMENTED = 12
/** The oldest server with the features we rely on: update-with-start and search attributes. */
const OLDEST_VERSION = [1, 25] as const
type AttributeName = keyof typeof SEARCH_ATTRIBUTES
// `Object.keys` is typed `string[]`; the keys of this constant are the names.
const NAMES = Object.keys(SEARCH_ATTRIBUTES) as AttributeName[]
const RETENTION = msToTs(RETENTION_SECONDS * 1_000)
const VISIBLE_WITHIN_MS = 60_000

/** The result of preparing a Temporal server. `missingAttributes` could not be registered; runs start without them. */
export type NamespaceReport = {
  serverVersion: string
  isCreated: boolean
  missingAttributes: string[]
}

/**
 * Prepares an external Temporal server: checks its version, creates the namespace, sets a retention of thirty days and
 * registers the search attributes, as far as it has the permission.
 */
export async function prepareNamespace(connection: Connection, namespace: string): Promise<NamespaceReport> {
  const { serverVersion } = await connection.workflowService.getSystemInfo({})
  checkVersion(serverVersion)
  const isCreated = await ensureNamespace(connection, namespace)
  await ensureRetention(connection, namespace)
  const missingAttributes = await ensureAttributes(connection, namespace)
  return { serverVersion, isCreated, missingAttributes }
}

function checkVersion(version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [oldestMajor, oldestMinor] = OLDEST_VERSION
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return
  throw new Error(
    `The Temporal server is ${version || 'of an unknown version'}; Postloom needs ${OLDEST_VERSION.join('.')} or later`,
  )
}

async function ensureNamespace(connection: Connection, namespace: string): Promise<boolean> {
  const describe = (): Promise<unknown> => connection.workflowService.describeNamespace({ namespace })
  if (await isFound(describe)) return false
  await connection.workflowService
    .registerNamespace({ namespace, workflowExecutionRetentionPeriod: RETENTION })
    .catch(unless(ALREADY_EXISTS))
  // The server caches its list of namespaces and may need ten seconds to find a new one.
  const lookUp = (): Promise<unknown> => connection.operatorService.listSearchAttributes({ namespace })
  await until(`the namespace ${namespace}`, () => isFound(lookUp))
  return true
}

async function isFound(ask: () => Promise<unknown>): Promise<boolean> {
  try {
    await ask()
    return true
  } catch (error) {
    if (hasCode(error, NOT_FOUND)) return false
    throw error
  }
}

async function ensureRetention(connection: Connection, namespace: string): Promise<void> {
  const { config } = await connection.workflowService.describeNamespace({ namespace })
  const retention = Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0)
  if (retention >= RETENTION_SECONDS) return
  await connection.workflowService
    .updateNamespace({
      namespace,
      config: { workflowExecutionRetentionTtl: RETENTION },
    })
    .catch(unless(PERMISSION_DENIED))
}

async function ensureAttributes(connection: Connection, namespace: string): Promise<string[]> {
  let missing = NAMES
  try {
    missing = await missingAttributes(connection, namespace)
    if (missing.length === 0) return []
    const searchAttributes = Object.fromEntries(
      missing.map((name) => [name, VALUE_TYPES[SEARCH_ATTRIBUTES[name]]]),
    )
    await connection.operatorService.addSearchAttributes({ namespace, searchAttributes })
  } catch (error) {
    // A hosted Temporal may reserve this to the owner of the namespace, and may even refuse to list the attributes.
    if (hasCode(error, PERMISSION_DENIED) || hasCode(error, UNIMPLEMENTED)) return missing
    // Another process has registered them in the meantime.
    if (!hasCode(error, ALREADY_EXISTS)) throw error
  }
  const areThere = async (): Promise<boolean> => (await missingAttributes(connection, namespace)).length === 0
  await until('the search attributes', areThere)
  return []
}

async function missingAttributes(connection: Connection, namespace: string): Promise<AttributeName[]> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
  for (const name of NAMES) {
    const type = customAttributes[name]
    if (type !== undefined && type !== VALUE_TYPES[SEARCH_ATTRIBUTES[name]]) {
      throw new Error(
        `The search attribute ${name} of namespace ${namespace} has another type than ${SEARCH_ATTRIBUTES[name]}; use a namespace of its own for Postloom (TEMPORAL_NAMESPACE)`,
      )
    }
  }
  return NAMES.filter((name) => customAttributes[name] === undefined)
}

function hasCode(error: unknown, code: number): boolean {
  return isGrpcServiceError(error) && error.code === code
}

function unless(code: number): (error: unknown) => void {
  return (error) => {
    if (!hasCode(error, code)) throw error
  }
}

async function until(awaited: string, ask: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + VISIBLE_WITHIN_MS
  while (!(await ask())) {
    if (Date.now() > deadline) throw new Error(`Temporal does not show ${awaited} after a minute`)
    await sleep(200)
  }
}
