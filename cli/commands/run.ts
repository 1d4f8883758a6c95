import { readFileSync } from 'node:fs'

import type { Challenge } from '@postloom/sdk'
import type { Command } from 'commander'

import { dataOf } from '../api.ts'
import type { Context } from '../context.ts'
import { misused } from '../failure.ts'
import { type Output, toJson } from '../output.ts'
import { toolHelp } from '../schema-help.ts'
import { decodeText, readInput, requireConfirmation } from '../terminal.ts'
import { helpWidth } from './tools.ts'

type Options = { input?: string; confirm?: boolean; help?: boolean }

/** Adds `run`, which runs one tool; it repeats the call with the code if the tool asks for a confirmation. */
export function addRun(program: Command, context: Context): void {
  const command = program
    .command('run')
    .description('run a tool of the service and print its data as JSON')
    .argument('[tool]', 'its name; "postloom tools" lists them')
    .option(
      '-i, --input <json>',
      'its parameters: a JSON object, @FILE, or - for standard input; {} without it',
    )
    .option('-y, --confirm', 'confirm if the tool asks for a confirmation')
    .helpOption(false)
    .option('-h, --help', 'show help; with a tool, that of the tool')
    .action(async (name: string | undefined, options: Options) => {
      if (options.help && name === undefined) return command.outputHelp()
      if (name === undefined) misused('Name the tool to run; "postloom tools" lists them.')
      await (options.help ? showTool(context, name) : runTool(context, name, options))
    })
}

async function showTool({ connect, output }: Context, name: string): Promise<void> {
  const { client } = await connect()
  const tool = dataOf(await client.catalogue.get(name))
  output.result(tool, toolHelp(tool, helpWidth()))
}

async function runTool({ connect, output }: Context, name: string, options: Options): Promise<void> {
  const input = await readToolInput(options.input ?? '{}')
  const { client } = await connect()
  let answer = await client.catalogue.run(name, input)
  const challenge = answer.error?.challenge
  if (challenge) {
    describe(output, challenge)
    const { summary, confirmationCode } = challenge
    await requireConfirmation(output, options.confirm === true, summary.action, { summary })
    answer = await client.catalogue.run(name, { ...input, confirmationCode })
  }
  const data = dataOf(answer)
  output.result(data, toJson(data, 2))
}

async function readToolInput(given: string): Promise<Record<string, unknown>> {
  const text =
    given === '-' ? await readInput() : given.startsWith('@') ? readInputFile(given.slice(1)) : given
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    misused(
      `--input is not JSON (${error instanceof Error ? error.message : ''}); write '{"name": "value"}', @FILE or -.`,
    )
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  misused('--input is not a JSON object; write \'{"name": "value"}\'.')
}

function readInputFile(file: string): string {
  let content: Buffer
  try {
    content = readFileSync(file)
  } catch (error) {
    misused(`--input: ${file} cannot be read (${String(Object(error).code)}).`)
  }
  return decodeText(content, `--input: ${file}`)
}

/** Prints the effects of a gated call before it is confirmed. */
function describe(output: Output, { summary }: Challenge): void {
  const { action, target, recipients, effects, warnings } = summary
  output.note(`${action}: ${target}`)
  if (recipients !== undefined)
    output.note(`  ${recipients} ${recipients === 1 ? 'recipient' : 'recipients'}`)
  for (const effect of effects) output.note(`  ${effect}`)
  for (const warning of warnings) output.note(`  Warning: ${warning}`)
}
