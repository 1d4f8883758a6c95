import { TOOL_EFFECTS, type Tools } from './catalogue.ts'
import { failed, PostloomError, type Challenge, type Result } from './result.ts'
import type { CallOptions, WriteOptions } from './settings.ts'
import type { Transport } from './transport.ts'

/** The options of a call of a tool. */
export type ToolOptions = WriteOptions & {
  /**
   * Answers the confirmation of a gated tool: `true` confirms; a function gets the challenge and decides. Without it,
   * or when the function returns false, the result is the error CONFIRMATION_REQUIRED with its `challenge`.
   */
  confirm?: boolean | ((challenge: Challenge) => boolean | Promise<boolean>)
}

// An input with only optional members is itself optional.
type ToolArguments<Input> =
  Record<never, never> extends Input
    ? [input?: Input, options?: ToolOptions]
    : [input: Input, options?: ToolOptions]

/** Every tool of the catalogue as a method with its name. */
export type ToolMethods = {
  readonly [Name in keyof Tools]: (
    ...call: ToolArguments<Tools[Name]['input']>
  ) => Promise<Result<Tools[Name]['output']>>
}

/** A tool as the service describes it. */
export type ToolDescription = {
  name: string
  description: string
  group: string
  /** JSON Schema. */
  inputSchema: Record<string, unknown>
  /** JSON Schema of `data`. */
  outputSchema: Record<string, unknown>
  annotations: {
    title: string
    readOnlyHint: boolean
    destructiveHint: boolean
    idempotentHint: boolean
    openWorldHint: boolean
  }
  requiresConfirmation: boolean
}

/** The tools that the service has now, including those that this version of the SDK does not know. */
export class Catalogue {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Returns every tool with its schemas. */
  async list(options?: CallOptions): Promise<Result<{ tools: ToolDescription[]; total: number }>> {
    return await this.#send('GET', '/tools', [], undefined, options)
  }

  /** Returns one tool. */
  async get(name: string, options?: CallOptions): Promise<Result<ToolDescription>> {
    return await this.#send('GET', '/tools/:name', [name], undefined, options)
  }

  /** Runs a tool by name. `tools.<name>()` does the same with types. */
  async run(name: string, input: object = {}, options: ToolOptions = {}): Promise<Result<unknown>> {
    const first = await this.#send('POST', '/tools/:name', [name], input, options)
    const challenge = first.error?.challenge
    if (!challenge) return first
    try {
      const { confirm = false } = options
      const isConfirmed = typeof confirm === 'function' ? await confirm(challenge) : confirm
      if (!isConfirmed) return first
    } catch (error) {
      return failed(new PostloomError('aborted', `confirm() failed: ${String(error)}`, { cause: error }))
    }
    const { confirmationCode } = challenge
    return await this.#send('POST', '/tools/:name', [name], { ...input, confirmationCode }, options)
  }

  async #send<Data>(
    method: string,
    path: string,
    parameters: readonly string[],
    body: object | undefined,
    options: ToolOptions | undefined,
  ): Promise<Result<Data>> {
    const [name = ''] = parameters
    const isSafe = method === 'GET' || effectOf(name) === 'read'
    const read = (text: string) => readData(text) as Data | undefined
    return await this.#transport.send({ method, path, parameters, body, isSafe, read }, options)
  }
}

/** Returns methods for the tools that this version knows, and for any other name that looks like a tool's. */
export function toolMethods(catalogue: Catalogue): ToolMethods {
  const methodOf = (name: string) => (input?: object, options?: ToolOptions) =>
    catalogue.run(name, input, options)
  const known = Object.fromEntries(Object.keys(TOOL_EFFECTS).map((name) => [name, methodOf(name)]))
  // The cast is safe because the service checks its answers against the schemas of these types.
  return new Proxy(known, {
    get: (methods, name) =>
      methods[String(name)] ?? (TOOL_NAME.test(String(name)) ? methodOf(String(name)) : undefined),
  }) as ToolMethods
}

/** Requires an underscore, because runtimes look up names without one, such as `then`, on any object. */
const TOOL_NAME = /^[a-z]+(?:_[a-z0-9]+)+$/

function effectOf(name: string): string | undefined {
  return Object.entries(TOOL_EFFECTS).find(([known]) => known === name)?.[1]
}

/** The cast of the caller is safe because the service checks its answers against the schemas of these types. */
function readData(text: string): unknown {
  const { success, data }: Record<string, unknown> = JSON.parse(text)
  return success === true ? data : undefined
}
