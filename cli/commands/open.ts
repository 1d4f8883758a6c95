import { spawn } from 'node:child_process'

import { Argument, type Command } from 'commander'

import type { Context } from '../context.ts'
import { CommandFailure } from '../failure.ts'
import { developmentService } from '../installation.ts'
import { type Environment, findConnection } from '../settings.ts'

const PLACES = ['dashboard', 'docs', 'temporal', 'mailbox'] as const
type Place = (typeof PLACES)[number]

/** Adds `open`, which opens pages of the service in a browser. */
export function addOpen(program: Command, context: Context): void {
  program
    .command('open')
    .description('open a page of the service in the browser and print its address')
    .addArgument(new Argument('<place>', 'what to open').choices(PLACES))
    .action((place: Place) => open(context, place))
}

async function open({ env, output }: Context, place: Place): Promise<void> {
  const url = await addressOf(env, place)
  output.result({ url }, url)
  if (process.stdout.isTTY && !output.isJson) startBrowser(env['BROWSER'] || standardOpener(), url)
}

async function addressOf(env: Environment, place: Place): Promise<string> {
  if (place === 'temporal')
    return (env['TEMPORAL_UI_URL'] || (await developmentService())?.temporal.uiUrl) ?? unknown(place)
  if (place === 'mailbox') return (await developmentService())?.mailbox.url || unknown(place)
  const { baseUrl } = await findConnection(env)
  return place === 'docs' ? `${baseUrl}/docs` : `${baseUrl}/`
}

function unknown(place: Place): never {
  const repair =
    place === 'temporal' ? 'set TEMPORAL_UI_URL to it' : 'only "npm start" runs one, in its checkout'
  throw new CommandFailure('UNKNOWN_ADDRESS', `The address of the ${place} is not known: ${repair}.`)
}

function standardOpener(): string {
  return process.platform === 'darwin' ? 'open' : 'xdg-open'
}

/** Errors are ignored: the URL was printed, so the user can open it without a browser. */
function startBrowser(program: string, url: string): void {
  const browser = spawn(program, [url], { stdio: 'ignore', detached: true })
  browser.on('error', () => undefined)
  browser.unref()
}
