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
  /** Reads across organizations: `em` has no organization filter, so each statement must name the rows it reads. */
  handler: (em: EntityManager, input: Static<Input>) => Promise<Static<Output>>
}

/** An admin tool with its types erased. Admin tools only read. */
export type AdminTool = InputReader &
  Pick<Definition<TObject, TSchema>, 'description' | 'output'> & {
    handler(em: EntityManager, input: unknown): Promise<unknown>
  }

/** Declares an admin tool; its input is validated before the handler gets it. */
export function defineAdminTool<Input extends TObject, Output extends TSchema>({
  handler,
  ...facts
}: Definition<Input, Output>): AdminTool {
  return {
    ...facts,
    listed: true,
    effect: 'read',
    jsonDepth: JSON_DEPTH,
    whole: facts.input,
    validator: Compile(facts.input),
    // invokeAdmin() passes only inputs that `validator` accepted.
    handler: (em, input) => handler(em, input as Static<Input>),
  }
}
