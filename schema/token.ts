import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'
import { PERMISSIONS, type Permission } from './values.ts'

/** What a token may do unless its maker says otherwise (decisions, section 9). */
export const DEFAULT_PERMISSIONS: readonly Permission[] = PERMISSIONS.filter(
  (permission) => permission !== 'domains' && permission !== 'tokens',
)

const members = {
  id: Type.String({ description: 'tok_…' }),
  name: Type.String(),
  /** By which its owner knows it. */
  lastFour: Type.String(),
  permissions: Type.Array(oneOf(PERMISSIONS)),
  createdAt: Type.String(),
  lastUsedAt: nullable(Type.String()),
  expiresAt: nullable(Type.String()),
}

/** An API token without its text, which is shown once and never stored. */
export const Token = closed(members)
export type Token = Static<typeof Token>

/** An API token as only the call that makes it shows it. */
export const NewToken = closed({
  ...members,
  token: nullable(
    Type.String({ description: 'The text, pl_…; null where an Idempotency-Key is answered a second time.' }),
  ),
})
export type NewToken = Static<typeof NewToken>
