import { readFileSync } from 'node:fs'

import { Command } from 'commander'

import { createClient } from './api.ts'
import { addCompletion } from './commands/completion.ts'
import { addImport } from './commands/imports.ts'
import { addInstallation } from './commands/installation.ts'
import { addOpen } from './commands/open.ts'
import { addRun } from './commands/run.ts'
import { addSession } from './commands/session.ts'
import { addTail } from './commands/tail.ts'
import { addTokens } from './commands/tokens.ts'
import { addTools } from './commands/tools.ts'
import type { Context } from './context.ts'
import { CommandFailure } from './failure.ts'
import type { Output } from './output.ts'
import { type Environment, findConnection } from './settings.ts'

const EXIT_CODES = `
Exit codes: 0 done, 1 refused or failed, 2 wrong usage or no confirmation (--confirm).
Set POSTLOOM_API_KEY and POSTLOOM_BASE_URL, or "postloom login" once.`

/** Returns the program with all commands, ready to parse a command line. */
export function createProgram(env: Environment, output: Output): Command {
  const context: Context = {
    env,
    output,
    async connect() {
      const connection = await findConnection(env)
      return { client: createClient(connection), connection }
    },
  }
  const program = new Command('postloom')
    .description('Postloom from the command line: every tool of the service, and the installation itself.')
    .version(readVersion(), '-v, --version', 'show the version')
    .option('--json', 'print the result as one JSON document')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .showHelpAfterError('(see --help)')
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .exitOverride()
    .addHelpText('after', EXIT_CODES)
  const add = [
    addTools,
    addRun,
    addSession,
    addTokens,
    addImport,
    addTail,
    addOpen,
    addInstallation,
    addCompletion,
  ]
  for (const addCommands of add) addCommands(program, context)
  return program
}

function readVersion(): string {
  // In a checkout, package.json is next to this file; in the published package, one directory up.
  for (const place of ['./package.json', '../package.json']) {
    try {
      const { name, version }: Record<string, unknown> = Object(
        JSON.parse(readFileSync(new URL(place, import.meta.url), 'utf8')),
      )
      if (name === '@postloom/cli') return String(version)
    } catch {
      continue
    }
  }
  throw new CommandFailure('FAULT', 'The package of the command line is not whole: install it again.')
}
