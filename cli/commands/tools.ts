import type { ToolDescription } from '@postloom/sdk'
import type { Command } from 'commander'

import { dataOf } from '../api.ts'
import type { Context } from '../context.ts'
import { bold } from '../output.ts'
import { toolHelp } from '../schema-help.ts'
import { keepToolNames } from '../tool-names.ts'

const MOST_COLUMNS = 110

/** Adds `tools`, which lists the tools of the service, filtered by words, or shows one tool. */
export function addTools(program: Command, { connect, env, output }: Context): void {
  program
    .command('tools')
    .description('list the tools of the service, or show one with its parameters')
    .argument('[name]', 'show this tool')
    .option(
      '-f, --filter <words>',
      'only those that have all of these words in their name, group or description',
    )
    .action(async (name: string | undefined, { filter = '' }: { filter?: string }) => {
      const { client, connection } = await connect()
      if (name !== undefined) {
        const tool = dataOf(await client.catalogue.get(name))
        output.result(tool, toolHelp(tool, helpWidth()))
        return
      }
      const known = dataOf(await client.catalogue.list())
      keepToolNames(env, connection.baseUrl, known.tools)
      const tools = known.tools.filter((tool) => matches(tool, filter))
      output.result({ tools, total: tools.length }, toolList(tools))
    })
}

/** Returns the width of help texts in columns. */
export function helpWidth(): number {
  return Math.min(process.stdout.columns || MOST_COLUMNS, MOST_COLUMNS)
}

function matches({ name, group, annotations, description }: ToolDescription, filter: string): boolean {
  const text = `${name} ${group} ${annotations.title} ${description}`.toLowerCase()
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

function toolList(tools: readonly ToolDescription[]): string {
  const width = Math.max(0, ...tools.map(({ name }) => name.length))
  const groups = Map.groupBy(tools, ({ group }) => group)
  const lines = [...groups].flatMap(([group, members]) => [
    bold(group),
    ...members.map(
      ({ name, annotations, requiresConfirmation }) =>
        `  ${name.padEnd(width)} ${requiresConfirmation ? '!' : ' '} ${annotations.title}`,
    ),
  ])
  const count = `${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}`
  return [...lines, `${count}; ! asks for a confirmation. "postloom tools NAME" shows one.`].join('\n')
}
