import type { Token } from '@postloom/sdk'
import type { Command } from 'commander'

import { dataOf } from '../api.ts'
import type { Context } from '../context.ts'
import { facts, table } from '../output.ts'
import { requireConfirmation } from '../terminal.ts'

type Permission = Token['permissions'][number]
type Making = { name: string; permission?: string[]; expires?: string }

/** Adds `tokens create`, `tokens list` and `tokens delete`. */
export function addTokens(program: Command, context: Context): void {
  const tokens = program.command('tokens').description('the API tokens of the organization')
  tokens
    .command('create')
    .description('make a token; its text is printed once')
    .requiredOption('-n, --name <name>', 'what it is for')
    .option('-p, --permission <name...>', 'what it may do; by default all but domains and tokens')
    .option('-e, --expires <time>', 'when it expires, such as 2030-01-31T09:00:00Z; by default never')
    .action((options: Making) => createToken(context, options))
  tokens
    .command('list')
    .description('list the tokens, newest first')
    .action(() => listTokens(context))
  tokens
    .command('delete')
    .description('revoke a token at once')
    .argument('<id>', 'its id (tok_…)')
    .option('-y, --confirm', 'do not ask')
    .action((id: string, options: { confirm?: boolean }) =>
      deleteToken(context, id, options.confirm === true),
    )
}

async function createToken(
  { connect, output }: Context,
  { name, permission, expires }: Making,
): Promise<void> {
  const { client } = await connect()
  const made = dataOf(
    await client.tokens.create({
      name,
      ...(permission && { permissions: permissionsIn(permission) }),
      ...(expires && { expiresAt: expires }),
    }),
  )
  output.note(`The token "${made.name}" (${made.id}) is made. This is the only time its text is shown:`)
  output.result(made, made.token ?? '')
}

/** The cast is unchecked because the service refuses unknown permissions by name. */
function permissionsIn(given: readonly string[]): Permission[] {
  return given.flatMap((each) => each.split(',')) as Permission[]
}

async function listTokens({ connect, output }: Context): Promise<void> {
  const { client } = await connect()
  const tokens: Token[] = []
  for await (const each of client.tokens.each()) tokens.push(dataOf(each))
  output.result(
    { tokens },
    table(
      ['ID', 'NAME', 'ENDS IN', 'LAST USED', 'EXPIRES', 'PERMISSIONS'],
      tokens.map((token) => [
        token.id,
        token.name,
        `…${token.lastFour}`,
        token.lastUsedAt,
        token.expiresAt,
        token.permissions.join(', '),
      ]),
    ),
  )
}

async function deleteToken({ connect, output }: Context, id: string, isConfirmed: boolean): Promise<void> {
  const { client } = await connect()
  await requireConfirmation(output, isConfirmed, `Ending the token ${id}`)
  const gone = dataOf(await client.tokens.delete(id))
  output.result(gone, facts([['Ended', gone.id]]))
}
