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
    syntax: Type.Boolean({ description: 'It is written as an address.' }),
    mx: nullable(Type.Boolean({ description: 'Its domain takes email; null when no name server said.' })),
    disposable: Type.Boolean({ description: 'Its domain gives out addresses for minutes or days.' }),
    role: Type.Boolean({ description: 'It is that of an office and not of a person, such as info@.' }),
    suppressed: Type.Boolean({ description: 'It gets no email from this organization.' }),
  }),
})
export type EmailVerification = Static<typeof EmailVerification>
