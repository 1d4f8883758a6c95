/** 1: refused or failed. 2: wrong usage of the command. */
type ExitCode = 1 | 2

/** An error that ends a command: one sentence for people, and a code with further members for programs. */
export class CommandFailure extends Error {
  readonly code: string
  readonly exitCode: ExitCode
  /** Members that `--json` prints next to code and message. */
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

/** Throws `USAGE` with exit code 2; the message says how to write the command. */
export function misused(message: string): never {
  throw new CommandFailure('USAGE', message, { exitCode: 2 })
}
