import type { Static, TObject, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'

import type { EntityManager } from '../database.ts'
import type { InputReader } from './input.ts'
import { JSON_DEPTH } from './tool.ts'

type Definition<Input extends TObject, Output extends TSchema> = {
  name: string
  description: string
  input: Input
  output: Output
  /** Reads across organizations: `em` has no filter, so every statement says whose rows it takes. */
  handler: (em: EntityManager, input: Static<Input>) => Promise<Static<Output>>
}

/** An entry of the admin catalogue with its types erased; all of them only read. */
export type AdminTool = InputReader &
  Pick<Definition<TObject, TSchema>, 'description' | 'output'> & {
    handler(em: EntityManager, input: unknown): Promise<unknown>
  }

/** Declares one operation of the admin door; the input is validated before the handler sees it. */
export function defineAdminTool<Input extends TObject, Output extends TSchema>({
  handler,
  ...facts
}: Definition<Input, Output>): AdminTool {
  return {
    ...facts,
    listed: true,
    effect: 'read',
    jsonDepth: JSON_DEPTH,
    validator: Compile(facts.input),
    // invokeAdmin() hands over only what `validator` accepted.
    handler: (em, input) => handler(em, input as Static<Input>),
  }
}
