import type { Command } from 'commander'

import { createClient, dataOf } from '../api.ts'
import type { Context } from '../context.ts'
import { CommandFailure, misused } from '../failure.ts'
import { facts } from '../output.ts'
import {
  type Environment,
  findConnection,
  readBaseUrl,
  readLogin,
  removeLogin,
  STANDARD_URL,
  writeLogin,
} from '../settings.ts'
import { ask, readInput } from '../terminal.ts'

/** Adds `login`, `logout` and `whoami`. */
export function addSession(program: Command, context: Context): void {
  program
    .command('login')
    .description(
      'store the address of a service and a token; without a terminal, the token is read from standard input',
    )
    .option('-b, --base-url <address>', `the address of the service; by default ${STANDARD_URL}`)
    .action((options: { baseUrl?: string }) => login(context, options))
  program
    .command('logout')
    .description('delete the stored login; the token itself stays valid')
    .action(() => logout(context))
  program
    .command('whoami')
    .description('show the service and the token in use, and what the token may do')
    .action(() => whoami(context))
}

async function login({ env, output }: Context, options: { baseUrl?: string }): Promise<void> {
  const preset = env['POSTLOOM_BASE_URL'] || knownAddress(env) || STANDARD_URL
  const address =
    options.baseUrl ??
    (output.isInteractive ? await ask('Address of the service', { initial: preset }) : preset)
  const baseUrl = readBaseUrl(address, '--base-url')
  const given = process.stdin.isTTY ? await ask('API token (pl_…)', { isSecret: true }) : await readInput()
  const secret = given.trim()
  if (secret === '') misused('There is no token on standard input; write it there, or log in at a terminal.')
  const token = dataOf(await createClient({ baseUrl, token: secret }).tokens.current())
  const file = writeLogin(env, { baseUrl, token: secret })
  output.result(
    { baseUrl, token, file },
    `Logged in at ${baseUrl} with the token "${token.name}" (…${token.lastFour}), kept in ${file}.`,
  )
  if (env['POSTLOOM_API_KEY']) output.note('POSTLOOM_API_KEY is set and takes precedence.')
}

function logout({ env, output }: Context): void {
  const wasThere = removeLogin(env)
  output.result({ loggedOut: wasThere }, wasThere ? 'Logged out.' : 'There was no login.')
}

const SOURCES = {
  environment: 'POSTLOOM_API_KEY',
  login: 'postloom login',
  checkout: 'the service of this checkout (npm start)',
}

async function whoami({ env, output }: Context): Promise<void> {
  const connection = await findConnection(env)
  const { baseUrl, source } = connection
  const token = dataOf(await createClient(connection).tokens.current())
  const value = { baseUrl, source, token }
  const text = facts([
    ['Service', baseUrl],
    ['Token', `${token.name} (…${token.lastFour}, ${token.id})`],
    ['From', SOURCES[source]],
    ['Permissions', token.permissions.join(', ')],
    ['Expires', token.expiresAt ?? 'never'],
  ])
  output.result(value, text)
}

/** Returns the address of the stored login. An unreadable login is ignored, because it must not prevent a new login. */
function knownAddress(env: Environment): string | undefined {
  try {
    return readLogin(env)?.baseUrl
  } catch (error) {
    if (error instanceof CommandFailure) return undefined
    throw error
  }
}
