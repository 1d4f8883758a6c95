import { type Client, isGrpcServiceError } from '@temporalio/client'

import { SEARCH } from '../temporal/contract.ts'

/** Knows whether runs can be found by our search attributes; `missing` returns null until a server was asked. */
export type SearchAttributes = {
  /**
   * Returns whether the server knows all of them. Throws when it cannot be asked now: a run that starts without its
   * attributes would never get them.
   */
  known(client: Client): Promise<boolean>
  missing(): string[] | null
}

const RETRY_MS = 60_000
const NAMES = Object.values(SEARCH).map(({ name }) => name)
/** The gRPC codes of servers that do not tell their attributes: PERMISSION_DENIED and UNIMPLEMENTED. */
const REFUSALS: ReadonlySet<number> = new Set([7, 12])

/** Asks the server once which attributes it knows, and once a minute while some are missing. */
export function watchSearchAttributes(namespace: string): SearchAttributes {
  let missing: string[] | null = null
  let asking: Promise<void> | undefined
  let askedAt = 0

  async function ask(client: Client): Promise<void> {
    try {
      missing = await unknownTo(client)
      askedAt = Date.now()
    } finally {
      asking = undefined
    }
  }

  async function unknownTo(client: Client): Promise<string[]> {
    try {
      const { customAttributes } = await client.connection.operatorService.listSearchAttributes({ namespace })
      return NAMES.filter((name) => !(name in (customAttributes ?? {})))
    } catch (error) {
      if (isGrpcServiceError(error) && REFUSALS.has(error.code)) return NAMES
      throw error
    }
  }

  return {
    async known(client) {
      if (missing === null || (missing.length > 0 && Date.now() - askedAt > RETRY_MS)) {
        asking ??= ask(client)
        await asking
      }
      return missing?.length === 0
    },
    missing: () => missing,
  }
}
