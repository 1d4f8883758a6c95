import { Argument, type Command } from 'commander'

import { createClient, dataOf } from '../api.ts'
import type { Context } from '../context.ts'
import { type Environment, findConnection } from '../settings.ts'
import { keepToolNames, readToolNames } from '../tool-names.ts'

/** A short timeout, because a person who pressed Tab is waiting. */
const TAB_MS = 2_000

/** Both scripts ask the hidden command `complete` for candidates. When there are none, the shell offers file names. */
const SCRIPTS = {
  bash: `_postloom() {
  local IFS=$'\\n'
  COMPREPLY=($(postloom complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _postloom postloom`,
  zsh: `#compdef postloom
_postloom() {
  local -a found
  found=(\${(f)"$(postloom complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -a found; else _files; fi
}
compdef _postloom postloom`,
} as const

/** Adds `completion`, and the hidden command that its scripts call. */
export function addCompletion(program: Command, { env }: Context): void {
  program
    .command('completion')
    .description(
      'print the script that lets a shell complete the words of postloom: source <(postloom completion bash)',
    )
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh']))
    .action((shell: keyof typeof SCRIPTS) => void process.stdout.write(`${SCRIPTS[shell]}\n`))
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: string[]) => {
      const found = await candidates(program, env, words)
      if (found.length > 0) process.stdout.write(`${found.join('\n')}\n`)
    })
}

/** Returns the candidates that complete the last word. */
async function candidates(program: Command, env: Environment, words: readonly string[]): Promise<string[]> {
  const last = words.at(-1) ?? ''
  let command = program
  let place = 0
  for (const word of words.slice(0, -1)) {
    const child = command.commands.find((each) => each.name() === word)
    if (child) [command, place] = [child, 0]
    else if (!word.startsWith('-')) place += 1
  }
  return (await everyCandidate(program, command, place, env, last)).filter((each) => each.startsWith(last))
}

async function everyCandidate(
  program: Command,
  command: Command,
  place: number,
  env: Environment,
  last: string,
): Promise<string[]> {
  if (last.startsWith('-')) {
    const options = [...command.options, ...program.options, ...command.createHelp().visibleOptions(command)]
    return [...new Set(options.flatMap(({ long }) => long ?? []))]
  }
  if (command.commands.length > 0) {
    const visible = command.createHelp().visibleCommands(command)
    return visible.map((each) => each.name()).filter((name) => name !== 'help')
  }
  const argument = command.registeredArguments[place]
  if (argument?.argChoices) return [...argument.argChoices]
  const takesTool = command.parent === program && ['run', 'tools'].includes(command.name())
  return takesTool && place === 0 ? await toolNames(env) : []
}

/** Returns the cached names of the tools, or asks the service. Returns none when it does not answer. */
async function toolNames(env: Environment): Promise<string[]> {
  try {
    const connection = await findConnection(env)
    const kept = readToolNames(env, connection.baseUrl)
    if (kept) return kept
    const { tools } = dataOf(await createClient(connection, { timeout: TAB_MS }).catalogue.list())
    keepToolNames(env, connection.baseUrl, tools)
    return tools.map(({ name }) => name)
  } catch {
    return []
  }
}
