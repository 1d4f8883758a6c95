import type { Postloom } from '@postloom/sdk'

import type { Output } from './output.ts'
import type { Connection, Environment } from './settings.ts'

/** What every command works with. */
export type Context = {
  env: Environment
  output: Output
  /** The service that is asked; refuses where there is no token. */
  connect: () => Promise<{ client: Postloom; connection: Connection }>
}
