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
} from '../domain/suppressions.ts'

const MOST_ADDRESSES = 1_000

export const listSuppressions = defineTool({
  name: 'list_suppressions',
  title: 'List suppressions',
  description:
    'Lists the addresses that get no email whatever their status, newest first, with the reason. list_suppressed_subscribers lists people. Go on with nextCursor.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({
    reason: Type.Optional(oneOf(SUPPRESSION_REASONS)),
    limit: limitOf(50, 500),
    cursor: Type.Optional(Type.String({ description: 'nextCursor of the page before, same query.' })),
  }),
  output: pageOf('suppressions', Suppression),
  handler: (call, input) => listAddresses(call, input),
})

export const addSuppression = defineTool({
  name: 'add_suppression',
  title: 'Suppress an address',
  description:
    'Keeps an address from getting any email until remove_suppression; a subscriber who has it becomes BANNED. Asks for a confirmation code.',
  group: 'subscribers',
  effect: 'impact',
  permission: 'subscribers',
  input: closed({ email: Type.String({ description: 'Any address, of a subscriber or not.' }) }),
  output: SuppressedAddresses,
  summarize: async (_call, { email }) => summarizeSuppressing([readEmail(email, 'email')], 'MANUAL'),
  handler: (call, { email }) =>
    addSuppressions(call, [readEmail(email, 'email')], { reason: 'MANUAL', source: 'api' }),
})

export const importSuppressions = defineTool({
  name: 'import_suppressions',
  title: 'Import suppressions',
  description:
    'Suppresses a list of addresses from another service for one reason; a line that is not an address does not affect the others. Subscribers who have them become BANNED, COMPLAINED or BOUNCED. Asks for a confirmation code.',
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
    'Lifts the suppression of an address, also one made by hand; somebody BANNED is UNSUBSCRIBED then. Bounced and complained subscribers keep their status until reactivate_subscriber. Asks for a confirmation code.',
  group: 'subscribers',
  effect: 'impact',
  permission: 'subscribers',
  input: closed({ email: Type.String({ description: 'The suppressed address.' }) }),
  output: closed({ email: Type.String(), reason: oneOf(SUPPRESSION_REASONS) }),
  summarize: (call, { email }) => summarizeRemoval(call, email),
  handler: async (call, { email }) => ({ email, reason: await lift(call, email) }),
})
