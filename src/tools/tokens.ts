import { closed } from '../../schema/define.ts'
import { Token } from '../../schema/token.ts'
import { defineTool } from '../catalogue/tool.ts'
import { currentToken } from '../domain/tokens.ts'

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
