import type { Postloom } from '@postloom/sdk'

import type { Output } from './output.ts'
import type { Connection, Environment } from './settings.ts'

/** The context of every command. */
export type Context = {
  env: Environment
  output: Output
  /** Connects to the service; throws `NOT_LOGGED_IN` when there is no token. */
  connect: () => Promise<{ client: Postloom; connection: Connection }>
}
