import Type from 'typebox'

import { closed, oneOf } from '../../schema/define.ts'
import { DEFAULT_PERMISSIONS, NewToken, Token } from '../../schema/token.ts'
import { PERMISSIONS } from '../../schema/values.ts'
import { defineTool } from '../catalogue/tool.ts'
import {
  createToken as create,
  currentToken,
  deleteToken as remove,
  summarizeTokenDeletion,
} from '../domain/tokens.ts'

/** Who a token is, for whoever holds it: the SMTP door asks at every login. */
export const getCurrentToken = defineTool({
  name: 'get_current_token',
  title: 'Get the token of this call',
  description: 'The API token that the call is made with: its name, permissions and times.',
  group: 'organization',
  effect: 'read',
  permission: null,
  listed: false,
  counted: false,
  input: closed({}),
  output: closed({ token: Token }),
  handler: async (call) => ({ token: await currentToken(call) }),
})

/** The list is in lists.ts. */
export const createToken = defineTool({
  name: 'create_token',
  title: 'Create an API token',
  description:
    'Makes an API token and shows its text, once. It gets no permission that the token of this call lacks.',
  group: 'organization',
  effect: 'write',
  permission: 'tokens',
  listed: false,
  input: closed({
    name: Type.String({ minLength: 1, description: 'What it is for; up to 100 characters.' }),
    permissions: Type.Optional(
      Type.Array(oneOf(PERMISSIONS), {
        uniqueItems: true,
        description: `What it may do; ${DEFAULT_PERMISSIONS.join(', ')} without it.`,
      }),
    ),
    expiresAt: Type.Optional(
      Type.String({ description: 'When it ends, ISO 8601 with a zone; never without it.' }),
    ),
  }),
  output: closed({ token: NewToken }),
  handler: async (call, input) => ({ token: await create(call, input) }),
  kept: ({ token }) => ({ token: { ...token, token: null } }),
})

export const deleteToken = defineTool({
  name: 'delete_token',
  title: 'Delete an API token',
  description: 'Revokes an API token at once; every further call with it is refused.',
  group: 'organization',
  effect: 'impact',
  permission: 'tokens',
  listed: false,
  input: closed({ tokenId: Type.String({ description: 'The id (tok_…).' }) }),
  output: closed({ id: Type.String({ description: 'The id it had (tok_…).' }) }),
  summarize: (call, input) => summarizeTokenDeletion(call, input.tokenId),
  handler: async (call, input) => ({ id: await remove(call, input.tokenId) }),
})
