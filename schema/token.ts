import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'
import { PERMISSIONS, type Permission } from './values.ts'

/** The permissions of a new token when the caller names none (decisions, section 9). */
export const DEFAULT_PERMISSIONS: readonly Permission[] = PERMISSIONS.filter(
  (permission) => permission !== 'domains' && permission !== 'tokens',
)

const members = {
  id: Type.String({ description: 'The id of the token (`tok_…`).' }),
  name: Type.String(),
  /** The last four characters of the token's text, by which its owner recognizes it. */
  lastFour: Type.String(),
  permissions: Type.Array(oneOf(PERMISSIONS)),
  createdAt: Type.String(),
  lastUsedAt: nullable(Type.String()),
  expiresAt: nullable(Type.String()),
}

/** An API token without its text, which is shown only once and never stored. */
export const Token = closed(members)
export type Token = Static<typeof Token>

/** An API token together with its text. Only the call that creates the token returns this. */
export const NewToken = closed({
  ...members,
  token: nullable(
    Type.String({
      description:
        'The secret text of the token (`pl_…`). Null if the call repeats an earlier one with the same Idempotency-Key.',
    }),
  ),
})
export type NewToken = Static<typeof NewToken>
