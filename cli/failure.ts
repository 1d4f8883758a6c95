/** 1: it was refused or failed. 2: the command was not used as it is meant. */
type ExitCode = 1 | 2

/** What ends a command: one sentence for people, a code and what else there is for programs. */
export class CommandFailure extends Error {
  readonly code: string
  readonly exitCode: ExitCode
  /** Members that stand beside code and message in the answer of --json. */
  readonly body: Record<string, unknown>

  constructor(
    code: string,
    message: string,
    {
      exitCode = 1,
      body = {},
      cause,
    }: { exitCode?: ExitCode; body?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.name = 'CommandFailure'
    this.code = code
    this.exitCode = exitCode
    this.body = body
  }
}

/** Refuses a command that was written wrongly; the sentence says how to write it. */
export function misused(message: string): never {
  throw new CommandFailure('USAGE', message, { exitCode: 2 })
}
