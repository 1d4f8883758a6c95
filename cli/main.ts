import { CommanderError } from 'commander'

import { CommandFailure } from './failure.ts'
import { createOutput } from './output.ts'
import { createProgram } from './program.ts'

/** The command `postloom`. Exit codes: 0 done, 1 refused or failed, 2 wrong usage. */
const parameters = process.argv.slice(2)
const output = createOutput(parameters)

process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  // The reader of our output may close it early (`| head`).
  if (code === 'EPIPE') process.exit(0)
  process.stderr.write(`The result could not be written: ${message}\n`)
  process.exit(1)
})

try {
  await createProgram(process.env, output).parseAsync(parameters, { from: 'user' })
} catch (error) {
  process.exitCode = tell(error)
}

function tell(error: unknown): number {
  if (error instanceof CommanderError) {
    // Help and version also end with a CommanderError. Commander has already printed the message.
    if (error.exitCode === 0) return 0
    if (output.isJson) output.result({ error: { code: 'USAGE', message: error.message } }, '')
    return 2
  }
  const failure = error instanceof CommandFailure ? error : asFailure(error)
  output.failed(failure)
  return failure.exitCode
}

/** Unexpected errors are reported as briefly as others; a stack trace would not help the user. */
function asFailure(error: unknown): CommandFailure {
  const message = error instanceof Error ? error.message : String(error)
  return new CommandFailure('FAULT', message, { cause: error })
}
