import { CommanderError } from 'commander'

import { CommandFailure } from './failure.ts'
import { createOutput } from './output.ts'
import { createProgram } from './program.ts'

/** The command `postloom`: 0 when it did what it was asked, 1 when that was refused or failed, 2 when it was written wrongly. */
const parameters = process.argv.slice(2)
const output = createOutput(parameters)

process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  // Whoever read us may have seen enough (`| head`).
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
    // Help and the version end in this way as well; what was wrong has been said.
    if (error.exitCode === 0) return 0
    if (output.isJson) output.result({ error: { code: 'USAGE', message: error.message } }, '')
    return 2
  }
  const failure = error instanceof CommandFailure ? error : asFailure(error)
  output.failed(failure)
  return failure.exitCode
}

/** What nobody foresaw is told as shortly; where in the code it happened helps nobody here. */
function asFailure(error: unknown): CommandFailure {
  const message = error instanceof Error ? error.message : String(error)
  return new CommandFailure('FAULT', message, { cause: error })
}
