import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'
import { PERMISSIONS } from './values.ts'

/** An API token without its text, which is shown once and never stored. */
export const Token = closed({
  id: Type.String({ description: 'tok_…' }),
  name: Type.String(),
  /** By which its owner knows it. */
  lastFour: Type.String(),
  permissions: Type.Array(oneOf(PERMISSIONS)),
  createdAt: Type.String(),
  lastUsedAt: nullable(Type.String()),
  expiresAt: nullable(Type.String()),
})
export type Token = Static<typeof Token>
