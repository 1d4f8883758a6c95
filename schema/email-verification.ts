import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/** The reasons why an address is not simply valid, the most serious first. */
const VERIFICATION_REASONS = [
  'invalid_syntax',
  'no_mail_server',
  'suppressed',
  'disposable',
  'role',
  'dns_unavailable',
] as const

/** The result of checking an address without sending email to it (decisions, section 9). */
export const EmailVerification = closed({
  email: Type.String(),
  status: oneOf(['valid', 'risky', 'invalid']),
  reason: nullable(oneOf(VERIFICATION_REASONS)),
  checks: closed({
    syntax: Type.Boolean({ description: 'Whether the address is syntactically valid.' }),
    mx: nullable(
      Type.Boolean({ description: 'Whether the domain accepts email. Null if no name server answered.' }),
    ),
    disposable: Type.Boolean({ description: 'Whether the domain offers temporary addresses.' }),
    role: Type.Boolean({
      description: 'Whether the address belongs to a role and not to a person, such as info@.',
    }),
    suppressed: Type.Boolean({ description: 'Whether the address is suppressed in this organization.' }),
  }),
})
export type EmailVerification = Static<typeof EmailVerification>
