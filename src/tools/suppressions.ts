import Type from 'typebox'

import { closed, defaulted, limitOf, oneOf, pageOf } from '../../schema/define.ts'
import {
  IMPORTED_REASONS,
  SuppressedAddresses,
  Suppression,
  SUPPRESSION_REASONS,
} from '../../schema/suppression.ts'
import { defineTool } from '../catalogue/tool.ts'
import { readEmail } from '../domain/addresses.ts'
import {
  addSuppressions,
  listSuppressions as listAddresses,
  removeSuppression as lift,
  summarizeRemoval,
  summarizeSuppressing,
} from '../domain/subscribers/suppressions.ts'

const MOST_ADDRESSES = 1_000

export const listSuppressions = defineTool({
  name: 'list_suppressions',
  title: 'List suppressions',
  description:
    'Returns the suppressed addresses, newest first, with the reason. No email is sent to them, whatever the status of the subscriber. Continue with `nextCursor`. `list_suppressed_subscribers` lists bounced and complained subscribers instead.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    reason: Type.Optional(oneOf(SUPPRESSION_REASONS)),
    limit: limitOf(50, 500),
    cursor: Type.Optional(
      Type.String({ description: '`nextCursor` of the previous page, for the same query.' }),
    ),
  }),
  output: pageOf('suppressions', Suppression),
  handler: (call, input) => listAddresses(call, input),
})

export const addSuppression = defineTool({
  name: 'add_suppression',
  title: 'Suppress an address',
  description:
    'Suppresses an address: it gets no email until `remove_suppression`. A subscriber with this address becomes BANNED. Requires a confirmation code.',
  group: 'subscribers',
  effect: 'impact',
  permission: 'subscribers',
  input: closed({ email: Type.String({ description: 'The address. It need not belong to a subscriber.' }) }),
  output: SuppressedAddresses,
  summarize: async (_call, { email }) => summarizeSuppressing([readEmail(email, 'email')], 'MANUAL'),
  handler: (call, { email }) =>
    addSuppressions(call, [readEmail(email, 'email')], { reason: 'MANUAL', source: 'api' }),
})

export const importSuppressions = defineTool({
  name: 'import_suppressions',
  title: 'Import suppressions',
  description:
    'Suppresses a list of addresses, such as one from another service, for one reason. An invalid address is listed in `errors` and does not affect the others. Subscribers with these addresses become BANNED (reason MANUAL), COMPLAINED (COMPLAINT) or BOUNCED (HARD_BOUNCE). Requires a confirmation code.',
  group: 'subscribers',
  effect: 'impact',
  permission: 'subscribers',
  input: closed({
    emails: Type.Array(Type.String({ maxLength: 1_000 }), { minItems: 1, maxItems: MOST_ADDRESSES }),
    reason: defaulted(oneOf(IMPORTED_REASONS), 'MANUAL'),
  }),
  output: SuppressedAddresses,
  summarize: async (_call, { emails, reason }) => summarizeSuppressing(emails, reason),
  handler: (call, { emails, reason }) => addSuppressions(call, emails, { reason, source: 'import' }),
})

export const removeSuppression = defineTool({
  name: 'remove_suppression',
  title: 'Remove a suppression',
  description:
    'Removes the suppression of an address, even one made by hand. A BANNED subscriber becomes UNSUBSCRIBED; BOUNCED and COMPLAINED subscribers keep their status until `reactivate_subscriber`. Returns the address and the reason of the removed suppression. Requires a confirmation code.',
  group: 'subscribers',
  effect: 'impact',
  permission: 'subscribers',
  input: closed({ email: Type.String({ description: 'The suppressed address.' }) }),
  output: closed({ email: Type.String(), reason: oneOf(SUPPRESSION_REASONS) }),
  summarize: (call, { email }) => summarizeRemoval(call, email),
  handler: async (call, { email }) => ({ email, reason: await lift(call, email) }),
})
