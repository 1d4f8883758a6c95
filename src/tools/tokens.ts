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
} from '../domain/organizations/tokens.ts'

/** Who a token is, for whoever holds it: the SMTP door asks at every login. */
export const getCurrentToken = defineTool({
  name: 'get_current_token',
  title: 'Get the token of this call',
  description:
    'Returns the API token with which the call is made: its name, permissions, and times of creation, last use and expiry.',
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
    'Creates an API token and returns its secret text, which is shown only this once. The new token cannot have a permission that the token of this call lacks.',
  group: 'organization',
  effect: 'write',
  permission: 'tokens',
  listed: false,
  input: closed({
    name: Type.String({
      minLength: 1,
      description: 'The name of the token, such as its purpose, up to 100 characters.',
    }),
    permissions: Type.Optional(
      Type.Array(oneOf(PERMISSIONS), {
        uniqueItems: true,
        description: `The permissions of the token. Defaults to ${DEFAULT_PERMISSIONS.join(', ')}.`,
      }),
    ),
    expiresAt: Type.Optional(
      Type.String({
        description:
          'The time at which the token expires, ISO 8601 with a time zone. By default, it never expires.',
      }),
    ),
  }),
  output: closed({ token: NewToken }),
  handler: async (call, input) => ({ token: await create(call, input) }),
  kept: ({ token }) => ({ token: { ...token, token: null } }),
})

export const deleteToken = defineTool({
  name: 'delete_token',
  title: 'Delete an API token',
  description: 'Deletes an API token. Calls with it are refused from then on.',
  group: 'organization',
  effect: 'impact',
  permission: 'tokens',
  listed: false,
  input: closed({ tokenId: Type.String({ description: 'The id of the token (`tok_…`).' }) }),
  output: closed({ id: Type.String({ description: 'The id of the deleted token (`tok_…`).' }) }),
  summarize: (call, input) => summarizeTokenDeletion(call, input.tokenId),
  handler: async (call, input) => ({ id: await remove(call, input.tokenId) }),
})
