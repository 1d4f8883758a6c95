import Type, { type Static } from 'typebox'

import { closed } from './define.ts'

/** Limits of a sender's display name, in characters. */
export const SENDER_LIMITS = { name: 100 } as const

/** A sender address on the wire (decisions, section 8). `verified` says whether its domain may send now. */
export const Sender = closed({
  id: Type.String(),
  name: Type.String(),
  email: Type.String(),
  domainId: Type.String(),
  replyTo: Type.Optional(Type.String()),
  isDefault: Type.Boolean(),
  verified: Type.Boolean(),
})
export type Sender = Static<typeof Sender>
