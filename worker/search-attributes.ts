import type { Client } from '@temporalio/client'

import { SEARCH } from '../temporal/contract.ts'

/** Whether runs can be found by our search attributes; `missing` is null until a server was asked. */
export type SearchAttributes = {
  known(client: Client): Promise<boolean>
  missing(): string[] | null
}

const RETRY_MS = 60_000

/** Asks the server once which attributes it knows; while some are missing, again every minute. */
export function watchSearchAttributes(namespace: string): SearchAttributes {
  let missing: string[] | null = null
  let asking: Promise<void> | undefined
  let askedAt = 0

  async function ask(client: Client): Promise<void> {
    try {
      const { customAttributes } = await client.connection.operatorService.listSearchAttributes({ namespace })
      missing = Object.values(SEARCH)
        .map(({ name }) => name)
        .filter((name) => !(name in (customAttributes ?? {})))
    } catch {
      missing = Object.values(SEARCH).map(({ name }) => name)
    }
    askedAt = Date.now()
    asking = undefined
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
