import { CommandFailure, misused } from './failure.ts'
import type { Output } from './output.ts'

const UTF_8 = new TextDecoder('utf-8', { fatal: true })

/** Reads standard input to its end. */
export async function readInput(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk))
  return decodeText(Buffer.concat(chunks), 'Standard input')
}

/**
 * Returns text without its byte order mark. Throws `USAGE` for an encoding other than UTF-8, whose letters would be
 * replaced without anybody noticing.
 */
export function decodeText(bytes: Buffer, name: string): string {
  try {
    return UTF_8.decode(bytes)
  } catch {
    misused(`${name} is not in UTF-8; save it in UTF-8.`)
  }
}

/** Asks the user for a line of text, which `isOptional` lets be empty. With `isSecret`, the input is not shown. */
export async function ask(
  question: string,
  {
    isSecret = false,
    isOptional = false,
    initial,
  }: { isSecret?: boolean; isOptional?: boolean; initial?: string } = {},
): Promise<string> {
  const { isCancel, password, text } = await import('@clack/prompts')
  const validate = (value: string | undefined) =>
    isOptional || value?.trim() ? undefined : 'Something is needed here.'
  const answer = isSecret
    ? await password({ message: question, validate, output: process.stderr })
    : await text({
        message: question,
        validate,
        output: process.stderr,
        ...(initial && { initialValue: initial }),
      })
  if (isCancel(answer)) throw declined()
  // A password may begin or end with a space.
  return isSecret ? answer : answer.trim()
}

/**
 * Asks for a confirmation before an irreversible command, unless `--confirm` was given. Throws `NOT_CONFIRMED` with
 * exit code 2 when nobody at a terminal can answer.
 */
export async function requireConfirmation(
  output: Output,
  isConfirmed: boolean,
  what: string,
  body: Record<string, unknown> = {},
): Promise<void> {
  if (isConfirmed) return
  if (!output.isInteractive) {
    throw new CommandFailure(
      'NOT_CONFIRMED',
      `${what} needs a confirmation: repeat the command with --confirm. Nothing was done.`,
      {
        exitCode: 2,
        body,
      },
    )
  }
  const { confirm, isCancel } = await import('@clack/prompts')
  const answer = await confirm({ message: `${what}: go ahead?`, initialValue: false, output: process.stderr })
  if (isCancel(answer) || !answer) throw declined()
}

function declined(): CommandFailure {
  return new CommandFailure('DECLINED', 'Nothing was done.')
}
